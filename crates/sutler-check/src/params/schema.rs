//! A schema from an unknown broker, compiled only if its work on a sample is bounded. Fetches nothing.
//!
//! A validator follows subschemas: one that applies itself to the same value never ends, and nested double
//! references take exponential time, here and while samples are derived (`flatten.rs`). So the applications to
//! the largest sample are counted before anything is derived. `sutler-schema` bounds a validation of a known
//! value instead, which is not enough here: a schema that it accepts can still be too much to derive from.

use super::limits::{
    APPLICATIONS_MAX, BACKTRACKS_MAX, CHAIN_MAX, DEPTH_MAX, PATTERN_BYTES_MAX, PATTERNS_MAX,
    SCHEMA_BYTES_MAX, SCHEMA_VALUES_MAX, WIDTH_MAX, is_small,
};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Applied to the same value: one subschema, a list of them, a mapping of them.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_MAPPINGS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Applied once to a part of the value.
const PART_MAPPINGS: [&str; 1] = ["properties"];
/// Applied to any part of the value.
const PARTS: [&str; 8] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
];
const PARTS_LISTS: [&str; 2] = ["items", "prefixItems"];
const PARTS_MAPPINGS: [&str; 1] = ["patternProperties"];
/// References by names that only a full implementation of the dialect can follow.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// A schema that small values can be checked against.
pub(super) struct Schema<'a> {
    pub(super) root: &'a Value,
    validator: Validator,
}

impl<'a> Schema<'a> {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason, as the rest of a sentence that begins with "the schema".
    pub(super) fn compile(root: &'a Value) -> Result<Self, String> {
        bounded(root)?;
        let validator = compiled(root)?;
        Ok(Self { root, validator })
    }

    /// Whether a value is small and fits.
    pub(super) fn fits(&self, value: &Value) -> bool {
        is_small(value) && self.validator.is_valid(value)
    }

    /// Whether a value is small and does not fit.
    pub(super) fn forbids(&self, value: &Value) -> bool {
        is_small(value) && !self.validator.is_valid(value)
    }

    /// The target of a reference inside the document.
    pub(super) fn resolve(&self, reference: &str) -> Option<&'a Value> {
        resolve(self.root, reference)
    }
}

/// The reason why a schema is not a JSON Schema, if it is not, as the rest of a sentence that begins with
/// "the schema". Does not report limits of the check: work, unknown dialects, and patterns,
/// which have a language of their own.
pub(crate) fn fault(root: &Value) -> Option<String> {
    if !root.is_object() {
        return Some("is not an object".to_owned());
    }
    let is_foreign = root.get("$schema").is_some() && draft(root).is_none();
    if is_foreign || bounded(root).is_err() || !external_references(root).is_empty() {
        return None;
    }
    let mut plain = root.clone();
    without_patterns(&mut plain);
    compiled(&plain).err()
}

/// Removes the patterns; entries that are only named like one stay.
fn without_patterns(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            entries.retain(|name, it| name != "pattern" || !it.is_string());
            entries.remove("patternProperties");
            entries.values_mut().for_each(without_patterns);
        }
        Value::Array(items) => items.iter_mut().for_each(without_patterns),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The references of a schema that lead outside of it.
pub(crate) fn external_references(root: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut references = BTreeSet::new();
    each_object(root, |object| {
        for name in ["$id", "id"] {
            if let Some(Value::String(text)) = object.get(name) {
                names.insert(text.trim_end_matches('#').to_owned());
            }
        }
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(text)) = object.get(name) {
                references.insert(text.clone());
            }
        }
    });
    // A name inside the document is recognised by its end: it may be relative to another.
    let inside = |reference: &str| {
        let document = reference.split('#').next().unwrap_or_default();
        document.is_empty()
            || names
                .iter()
                .any(|it| !it.is_empty() && (it.ends_with(document) || document.ends_with(&**it)))
    };
    references.retain(|it| !inside(it));
    references
}

fn compiled(root: &Value) -> Result<Validator, String> {
    let mut schema = root.clone();
    let draft = draft(root).unwrap_or(Draft::Draft4);
    if let Some(object) = schema.as_object_mut() {
        // Decided here; the validator would look up an unknown dialect.
        object.remove("$schema");
    }
    // Patterns may have look-around and back-references: not in linear time, so limited.
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(patterns)
        .offline()
        .build(&schema)
        .map_err(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "its top" } else { &place };
            format!("is not valid at {place}: {error}")
        })
}

/// The dialect that a schema names, if it is known here.
fn draft(schema: &Value) -> Option<Draft> {
    let dialect = schema.get("$schema")?.as_str()?.trim_end_matches('#');
    match dialect.rsplit_once("json-schema.org/")?.1 {
        "schema" | "draft-04/schema" => Some(Draft::Draft4),
        "draft-06/schema" => Some(Draft::Draft6),
        "draft-07/schema" => Some(Draft::Draft7),
        "draft/2019-09/schema" => Some(Draft::Draft201909),
        "draft/2020-12/schema" => Some(Draft::Draft202012),
        _ => None,
    }
}

fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') {
        return None;
    }
    root.pointer(pointer)
}

fn each_object<'a>(root: &'a Value, mut see: impl FnMut(&'a serde_json::Map<String, Value>)) {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(entries) => {
                see(entries);
                open.extend(entries.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Refuses references that cannot be followed, and too much work.
fn bounded(root: &Value) -> Result<(), String> {
    if root.to_string().len() > SCHEMA_BYTES_MAX {
        return Err(format!("is longer than {SCHEMA_BYTES_MAX} bytes"));
    }
    let (mut objects, mut patterns, mut dynamic) = (0, 0, false);
    each_object(root, |object| {
        objects += object.len();
        patterns += usize::from(object.contains_key("pattern"));
        if let Some(Value::Object(named)) = object.get("patternProperties") {
            patterns += named.len();
        }
        dynamic |= DYNAMIC.iter().any(|it| object.contains_key(*it));
    });
    if objects > SCHEMA_VALUES_MAX || patterns > PATTERNS_MAX {
        return Err("is too large to be derived from".to_owned());
    }
    if dynamic {
        return Err("has references that only its own dialect can follow".to_owned());
    }
    let mut count = ApplicationCount {
        root,
        known: HashMap::new(),
    };
    if count.applied(root, DEPTH_MAX, CHAIN_MAX)? > APPLICATIONS_MAX {
        return Err("makes too much work to be tried out".to_owned());
    }
    Ok(())
}

/// Counts the subschemas that can be applied to a value of a depth.
struct ApplicationCount<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, usize), u64>,
}

impl<'a> ApplicationCount<'a> {
    fn applied(&mut self, schema: &'a Value, depth: usize, chain: usize) -> Result<u64, String> {
        let Value::Object(object) = schema else {
            return Ok(1);
        };
        let key = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if chain == 0 {
            return Err("applies rules to the same value without end".to_owned());
        }
        let mut sum = 1_u64;
        if let Some(Value::String(reference)) = object.get("$ref") {
            let target = resolve(self.root, reference)
                .ok_or_else(|| format!("refers to {reference:?}, which cannot be followed"))?;
            sum = sum.saturating_add(self.applied(target, depth, chain - 1)?);
        }
        for child in children(object, &SAME, &SAME_LISTS, &SAME_MAPPINGS) {
            sum = sum.saturating_add(self.applied(child, depth, chain - 1)?);
        }
        if depth > 0 {
            for child in children(object, &[], &[], &PART_MAPPINGS) {
                sum = sum.saturating_add(self.applied(child, depth - 1, CHAIN_MAX)?);
            }
            for child in children(object, &PARTS, &PARTS_LISTS, &PARTS_MAPPINGS) {
                let one = self.applied(child, depth - 1, CHAIN_MAX)?;
                sum = sum.saturating_add(one.saturating_mul(parts(depth)));
            }
        }
        self.known.insert(key, sum);
        Ok(sum)
    }
}

/// Assumed number of parts of a value: samples are wide at the top only.
fn parts(depth: usize) -> u64 {
    if depth == DEPTH_MAX {
        WIDTH_MAX as u64
    } else {
        4
    }
}

fn children<'a>(
    object: &'a serde_json::Map<String, Value>,
    plain: &[&str],
    lists: &[&str],
    mappings: &[&str],
) -> Vec<&'a Value> {
    let mut found = Vec::new();
    for name in plain {
        found.extend(object.get(*name).filter(|it| it.is_object()));
    }
    for name in lists {
        if let Some(Value::Array(all)) = object.get(*name) {
            found.extend(all);
        }
    }
    for name in mappings {
        if let Some(Value::Object(all)) = object.get(*name) {
            found.extend(all.values());
        }
    }
    found
}
