//! The subschemas of a schema, and the subschemas that each of them applies.
//!
//! Knows the keywords of all drafts; a value under any other keyword is not a subschema. Refuses only
//! schemas that it cannot follow; `bounds.rs` does the counting.

use crate::compiled_schema::{CompileError, CompileOptions};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Most subschemas. Large schemas in the field have some hundred.
const SUBSCHEMAS_MAX: usize = 2_000;

/// Keywords that apply one subschema to the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that apply a list of subschemas to the same value.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that apply a mapping of subschemas to the same value.
const SAME_VALUE_MAPPINGS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that hold subschemas for others to refer to.
const DEFINITIONS: [&str; 2] = ["definitions", "$defs"];
/// Keywords that refer to a subschema elsewhere.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that give a subschema a name.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// All subschemas; the first is the whole schema.
pub(crate) struct Graph<'a> {
    pub(crate) subschemas: Vec<Subschema<'a>>,
    pub(crate) patterns: usize,
    /// Numbers of the subschemas, by their address in memory.
    known: HashMap<*const Value, usize>,
}

/// A subschema, and the ones it applies, by number.
#[derive(Default)]
pub(crate) struct Subschema<'a> {
    /// Path in the schema, e.g. `.properties.size`.
    pub(crate) path: String,
    /// Applied to the same value.
    pub(crate) same_value: Vec<usize>,
    /// Applied to one entry, or to one item.
    pub(crate) own: BTreeMap<Slot<'a>, usize>,
    /// Applied to the entries that have none of their own.
    pub(crate) other_entries: Vec<usize>,
    /// Applied to the items that have none of their own.
    pub(crate) other_items: Vec<usize>,
    /// May apply to any entry.
    pub(crate) every_entry: Vec<usize>,
    /// May apply to any item.
    pub(crate) every_item: Vec<usize>,
}

/// A place one level further into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot<'a> {
    Entry(&'a str),
    OtherEntry,
    Item(usize),
    OtherItem,
}

impl Slot<'_> {
    pub(crate) fn is_item(self) -> bool {
        match self {
            Self::Item(_) | Self::OtherItem => true,
            Self::Entry(_) | Self::OtherEntry => false,
        }
    }
}

/// State of the search for subschemas.
struct Search<'a> {
    graph: Graph<'a>,
    /// Subschemas that are found but not read yet.
    open: Vec<(usize, &'a Map<String, Value>)>,
    anchors: HashMap<&'a str, usize>,
    /// References: the subschema that refers, and its target.
    references: Vec<(usize, &'a str)>,
}

impl<'a> Graph<'a> {
    /// Finds the subschemas.
    ///
    /// # Errors
    /// Too many subschemas or patterns, or one that `options` refuse.
    pub(crate) fn of(schema: &'a Value, options: &CompileOptions) -> Result<Self, CompileError> {
        let mut search = Search {
            graph: Self {
                subschemas: Vec::new(),
                patterns: 0,
                known: HashMap::new(),
            },
            open: Vec::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
        };
        search.find(schema, String::new());
        let mut resolved = 0;
        loop {
            while let Some((number, object)) = search.open.pop() {
                search.look_into(number, object, options)?;
                search.check_size(options)?;
            }
            // The target of a reference is a subschema even under an unknown keyword.
            let Some(&(from, target)) = search.references.get(resolved) else {
                return Ok(search.graph);
            };
            resolved += 1;
            match search.resolve(schema, target) {
                Some(target) => search.graph.subschemas[from].same_value.push(target),
                None if options.refuse_unresolved => {
                    return Err(CompileError::Unbounded {
                        path: search.graph.subschemas[from].path.clone(),
                        reason: format!("refers to {target:?}, which cannot be followed"),
                    });
                }
                None => (),
            }
        }
    }
}

impl<'a> Search<'a> {
    /// The number of a subschema; `true` and `false` have one too.
    fn find(&mut self, schema: &'a Value, path: String) -> usize {
        let address = std::ptr::from_ref(schema);
        if let Some(&number) = self.graph.known.get(&address) {
            return number;
        }
        let number = self.graph.subschemas.len();
        self.graph.known.insert(address, number);
        self.graph.subschemas.push(Subschema {
            path,
            ..Subschema::default()
        });
        if let Value::Object(object) = schema {
            self.open.push((number, object));
        }
        number
    }

    fn look_into(
        &mut self,
        number: usize,
        object: &'a Map<String, Value>,
        options: &CompileOptions,
    ) -> Result<(), CompileError> {
        let here = self.graph.subschemas[number].path.clone();
        let mut subschema = Subschema::default();
        self.identify(number, object, &here, options)?;
        for (keyword, value) in object {
            let at = format!("{here}.{keyword}");
            let word = keyword.as_str();
            match (word, value) {
                (_, Value::String(target)) if REFERENCES.contains(&word) => {
                    self.references.push((number, target));
                }
                ("pattern", Value::String(_)) => self.graph.patterns += 1,
                (_, Value::Array(list)) if SAME_VALUE_LISTS.contains(&word) => {
                    subschema.same_value.extend(self.find_list(list, &at));
                }
                (_, Value::Object(mapping)) if SAME_VALUE_MAPPINGS.contains(&word) => {
                    let found = self.find_mapping(mapping, &at);
                    subschema
                        .same_value
                        .extend(found.into_iter().map(|(_, one)| one));
                }
                (_, Value::Object(mapping)) if DEFINITIONS.contains(&word) => {
                    self.find_mapping(mapping, &at);
                }
                ("properties", Value::Object(mapping)) => {
                    let found = self.find_mapping(mapping, &at).into_iter();
                    let entries = found.map(|(name, one)| (Slot::Entry(name), one));
                    subschema.own.extend(entries);
                }
                ("patternProperties", Value::Object(mapping)) => {
                    self.graph.patterns += mapping.len();
                    let found = self.find_mapping(mapping, &at);
                    subschema
                        .every_entry
                        .extend(found.into_iter().map(|(_, one)| one));
                }
                ("items" | "prefixItems", Value::Array(list)) => {
                    let found = self.find_list(list, &at).into_iter().enumerate();
                    subschema
                        .own
                        .extend(found.map(|(nth, one)| (Slot::Item(nth), one)));
                }
                (_, Value::Object(_) | Value::Bool(_)) => {
                    if let Some(applied) = subschema.single(word) {
                        applied.push(self.find(value, at));
                    }
                }
                _ => (),
            }
        }
        subschema.path = here;
        self.graph.subschemas[number] = subschema;
        Ok(())
    }

    /// Records the names of a subschema. An address of its own would change the meaning of each `#`
    /// inside it.
    fn identify(
        &mut self,
        number: usize,
        object: &'a Map<String, Value>,
        here: &str,
        options: &CompileOptions,
    ) -> Result<(), CompileError> {
        let texts = |keyword: &str| object.get(keyword).and_then(Value::as_str);
        for name in ANCHORS.into_iter().filter_map(texts) {
            self.anchors.insert(name, number);
        }
        for id in ["$id", "id"].into_iter().filter_map(texts) {
            match id.strip_prefix('#') {
                Some(name) => {
                    self.anchors.insert(name, number);
                }
                None if number == 0 || options.allow_inner_ids => (),
                None => {
                    return Err(CompileError::Unbounded {
                        path: here.to_owned(),
                        reason: "must not have an address of its own (`$id` or `id`)".to_owned(),
                    });
                }
            }
        }
        Ok(())
    }

    fn find_list(&mut self, list: &'a [Value], at: &str) -> Vec<usize> {
        let numbered = list.iter().enumerate();
        numbered
            .map(|(nth, schema)| self.find(schema, format!("{at}[{nth}]")))
            .collect()
    }

    fn find_mapping(&mut self, mapping: &'a Map<String, Value>, at: &str) -> Vec<(&'a str, usize)> {
        // Under `dependencies` there may also be lists of names.
        let schemas = mapping.iter().filter(|(_, schema)| !schema.is_array());
        schemas
            .map(|(name, schema)| (name.as_str(), self.find(schema, format!("{at}.{name}"))))
            .collect()
    }

    /// The subschema that a reference leads to, if it is inside the schema.
    fn resolve(&mut self, schema: &'a Value, reference: &str) -> Option<usize> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() {
            return Some(0);
        }
        let decoded = percent_decode_str(fragment).decode_utf8().ok()?;
        if !decoded.starts_with('/') {
            return self.anchors.get(decoded.as_ref()).copied();
        }
        let target = schema.pointer(&decoded)?;
        Some(self.find(target, decoded.replace('/', ".")))
    }

    fn check_size(&self, options: &CompileOptions) -> Result<(), CompileError> {
        let reason = if self.graph.subschemas.len() > SUBSCHEMAS_MAX {
            format!("must not have more than {SUBSCHEMAS_MAX} subschemas")
        } else if self.graph.patterns > options.patterns_max {
            format!("must not have more than {} patterns", options.patterns_max)
        } else {
            return Ok(());
        };
        Err(CompileError::whole(reason))
    }
}

impl Subschema<'_> {
    /// The list for the subschema of a keyword that takes exactly one.
    fn single(&mut self, keyword: &str) -> Option<&mut Vec<usize>> {
        match keyword {
            _ if SAME_VALUE.contains(&keyword) => Some(&mut self.same_value),
            "additionalProperties" => Some(&mut self.other_entries),
            "unevaluatedProperties" | "propertyNames" => Some(&mut self.every_entry),
            "items" | "additionalItems" => Some(&mut self.other_items),
            "unevaluatedItems" | "contains" => Some(&mut self.every_item),
            _ => None,
        }
    }
}
