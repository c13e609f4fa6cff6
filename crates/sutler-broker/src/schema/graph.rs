//! The subschemas of a schema, and which of them each applies to what.
//!
//! Knows the keywords of all drafts, and what follows the rules of none is no subschema here. Takes no
//! decision but to refuse what it cannot follow; `shape.rs` counts.

use super::shape::Fault;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Most subschemas. Large schemas in the field have some hundred.
const SUBSCHEMAS_MAX: usize = 2_000;

/// Most patterns; compiling each takes some milliseconds.
const PATTERNS_MAX: usize = 200;

/// Keywords that apply one subschema to the same value.
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that apply a list of subschemas to the same value.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that apply a mapping of subschemas to the same value.
const SAME_VALUE_MAPPINGS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that hold subschemas for others to refer to.
const DEFINITIONS: [&str; 2] = ["definitions", "$defs"];
/// Keywords that stand for a subschema elsewhere.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords that give a subschema a name.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];

/// All subschemas; the whole schema is the first.
pub(super) struct Graph<'a> {
    pub(super) subschemas: Vec<Subschema<'a>>,
    pub(super) patterns: usize,
    /// By where they stand in memory, which is where they stand in the schema.
    known: HashMap<*const Value, usize>,
}

/// A subschema, and the ones it applies, by number.
#[derive(Default)]
pub(super) struct Subschema<'a> {
    /// Where it stands, e.g. `.properties.size`.
    pub(super) pointer: String,
    /// Applied to the same value.
    pub(super) same_value: Vec<usize>,
    /// Applied to one entry, or to one item.
    pub(super) own: BTreeMap<Slot<'a>, usize>,
    /// Applied to the entries that have none of their own.
    pub(super) other_entries: Vec<usize>,
    /// Applied to the items that have none of their own.
    pub(super) other_items: Vec<usize>,
    /// Perhaps applied to any entry.
    pub(super) every_entry: Vec<usize>,
    /// Perhaps applied to any item.
    pub(super) every_item: Vec<usize>,
}

/// A place one level further into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot<'a> {
    Entry(&'a str),
    OtherEntry,
    Item(usize),
    OtherItem,
}

impl Slot<'_> {
    pub(super) fn is_item(self) -> bool {
        match self {
            Self::Item(_) | Self::OtherItem => true,
            Self::Entry(_) | Self::OtherEntry => false,
        }
    }
}

/// Subschemas found and not yet looked into, and what was found on the way.
struct Search<'a> {
    graph: Graph<'a>,
    open: Vec<(usize, &'a Map<String, Value>)>,
    anchors: HashMap<&'a str, usize>,
    /// Who refers to what.
    references: Vec<(usize, &'a str)>,
}

impl<'a> Graph<'a> {
    /// Finds the subschemas.
    pub(super) fn of(schema: &'a Value) -> Result<Self, Fault> {
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
                search.look_into(number, object)?;
                search.check_size()?;
            }
            // A reference may lead to a place that is no subschema but for the reference.
            let Some(&(from, target)) = search.references.get(resolved) else {
                return Ok(search.graph);
            };
            resolved += 1;
            if let Some(target) = search.resolve(schema, target) {
                search.graph.subschemas[from].same_value.push(target);
            }
        }
    }
}

impl<'a> Search<'a> {
    /// The number of a subschema; `true` and `false` have one too.
    fn find(&mut self, schema: &'a Value, pointer: String) -> usize {
        let address = std::ptr::from_ref(schema);
        if let Some(&number) = self.graph.known.get(&address) {
            return number;
        }
        let number = self.graph.subschemas.len();
        self.graph.known.insert(address, number);
        self.graph.subschemas.push(Subschema {
            pointer,
            ..Subschema::default()
        });
        if let Value::Object(object) = schema {
            self.open.push((number, object));
        }
        number
    }

    fn look_into(&mut self, number: usize, object: &'a Map<String, Value>) -> Result<(), Fault> {
        let here = self.graph.subschemas[number].pointer.clone();
        let mut subschema = Subschema::default();
        self.identify(number, object, &here)?;
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
        subschema.pointer = here;
        self.graph.subschemas[number] = subschema;
        Ok(())
    }

    /// Notes the names of a subschema. One with an address of its own would change what every `#`
    /// inside it means.
    fn identify(
        &mut self,
        number: usize,
        object: &'a Map<String, Value>,
        here: &str,
    ) -> Result<(), Fault> {
        let texts = |keyword: &str| object.get(keyword).and_then(Value::as_str);
        for name in ANCHORS.into_iter().filter_map(texts) {
            self.anchors.insert(name, number);
        }
        for id in ["$id", "id"].into_iter().filter_map(texts) {
            match id.strip_prefix('#') {
                Some(name) => {
                    self.anchors.insert(name, number);
                }
                None if number == 0 => (),
                None => {
                    let reason = "must not have an address of its own (`$id` or `id`)".to_owned();
                    return Err((here.to_owned(), reason));
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

    /// The subschema a reference leads to. What leads nowhere is the validator's to refuse.
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

    fn check_size(&self) -> Result<(), Fault> {
        let reason = if self.graph.subschemas.len() > SUBSCHEMAS_MAX {
            format!("must not have more than {SUBSCHEMAS_MAX} subschemas")
        } else if self.graph.patterns > PATTERNS_MAX {
            format!("must not have more than {PATTERNS_MAX} patterns")
        } else {
            return Ok(());
        };
        Err((String::new(), reason))
    }
}

impl Subschema<'_> {
    /// Where a keyword with a single subschema applies it.
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
