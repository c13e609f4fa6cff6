//! Flattens a schema into alternatives, each one mapping without references, combinations and conditions.
//!
//! Approximate: the validator checks every sample in the end.

use super::limits::CANDIDATES_MAX;
use super::schema::Schema;
use serde_json::{Map, Value, json};

/// Keywords that are expanded here, or only exist to be referenced.
const TAKEN_APART: [&str; 9] = [
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "definitions",
    "$defs",
];
/// Of two such bounds the greater one applies.
const LOWER: [&str; 5] = [
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];
/// Of two such bounds the smaller one applies.
const UPPER: [&str; 5] = [
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];
/// Maximum depth of references and combinations followed.
const FOLLOWED_MAX: usize = 16;

/// One alternative of a schema.
pub(super) type FlatSchema = Map<String, Value>;

/// The alternatives of a schema, the most likely first.
pub(super) fn flats(schema: &Schema<'_>, value: &Value) -> Vec<FlatSchema> {
    alternatives(schema, value, FOLLOWED_MAX)
}

fn alternatives(schema: &Schema<'_>, value: &Value, left: usize) -> Vec<FlatSchema> {
    let object = match value {
        Value::Object(object) if left > 0 => object,
        Value::Bool(false) => return Vec::new(),
        _ => return vec![FlatSchema::new()],
    };
    let is_kept = |name: &&String| !TAKEN_APART.contains(&name.as_str());
    let kept = object.iter().filter(|it| is_kept(&it.0));
    let plain: FlatSchema = kept.map(|(name, it)| (name.clone(), it.clone())).collect();
    let mut all = vec![plain];
    let join = |all: &mut Vec<FlatSchema>, others: &[FlatSchema]| {
        let mut joined = Vec::new();
        for one in all.iter() {
            joined.extend(others.iter().filter_map(|other| merged(one, other)));
        }
        joined.truncate(CANDIDATES_MAX);
        *all = joined;
    };
    if let Some(Value::String(reference)) = object.get("$ref") {
        match schema.resolve(reference) {
            Some(target) => join(&mut all, &alternatives(schema, target, left - 1)),
            None => return Vec::new(),
        }
    }
    if let Some(Value::Array(parts)) = object.get("allOf") {
        for part in parts {
            join(&mut all, &alternatives(schema, part, left - 1));
        }
    }
    for name in ["oneOf", "anyOf"] {
        if let Some(Value::Array(branches)) = object.get(name) {
            let either: Vec<FlatSchema> = branches
                .iter()
                .take(CANDIDATES_MAX)
                .flat_map(|it| alternatives(schema, it, left - 1))
                .collect();
            join(&mut all, &either);
        }
    }
    if let Some(condition) = object.get("if") {
        let mut either = Vec::new();
        let fulfilled = alternatives(schema, condition, left - 1);
        let then = object.get("then").unwrap_or(&Value::Bool(true));
        for then in alternatives(schema, then, left - 1) {
            either.extend(fulfilled.iter().filter_map(|it| merged(it, &then)));
        }
        let otherwise = object.get("else").unwrap_or(&Value::Bool(true));
        either.extend(alternatives(schema, otherwise, left - 1));
        join(&mut all, &either);
    }
    all
}

/// Conjunction of both; `None` if they contradict each other.
fn merged(one: &FlatSchema, other: &FlatSchema) -> Option<FlatSchema> {
    let mut all = one.clone();
    for (name, theirs) in other {
        let Some(ours) = all.get(name) else {
            all.insert(name.clone(), theirs.clone());
            continue;
        };
        if ours == theirs {
            continue;
        }
        let joined = join(name, ours, theirs)?;
        all.insert(name.clone(), joined);
    }
    Some(all)
}

/// Combines two values of a keyword; `None` if they contradict each other.
fn join(name: &str, ours: &Value, theirs: &Value) -> Option<Value> {
    let number = |it: &Value| it.as_f64();
    match (name, ours, theirs) {
        ("type", _, _) => types_of_both(ours, theirs),
        ("const", _, _) => None,
        ("enum", Value::Array(ours), Value::Array(theirs)) => {
            let both: Vec<Value> = ours
                .iter()
                .filter(|it| theirs.contains(it))
                .cloned()
                .collect();
            (!both.is_empty()).then_some(Value::Array(both))
        }
        ("required", Value::Array(ours), Value::Array(theirs)) => {
            let new = theirs.iter().filter(|it| !ours.contains(it));
            Some(ours.iter().chain(new).cloned().collect())
        }
        ("properties" | "patternProperties", Value::Object(ours), Value::Object(theirs)) => {
            let mut all = ours.clone();
            for (name, theirs) in theirs {
                let both = match all.get(name) {
                    Some(ours) if ours != theirs => json!({ "allOf": [ours, theirs] }),
                    _ => theirs.clone(),
                };
                all.insert(name.clone(), both);
            }
            Some(Value::Object(all))
        }
        ("additionalProperties" | "items", Value::Bool(true), it)
        | ("additionalProperties" | "items", it, Value::Bool(true)) => Some(it.clone()),
        ("additionalProperties", _, _) => Some(json!({ "allOf": [ours, theirs] })),
        ("items", Value::Object(_), Value::Object(_)) => Some(json!({ "allOf": [ours, theirs] })),
        (name, _, _) if LOWER.contains(&name) && number(theirs) > number(ours) => {
            Some(theirs.clone())
        }
        (name, _, _) if UPPER.contains(&name) && number(theirs) < number(ours) => {
            Some(theirs.clone())
        }
        _ => Some(ours.clone()),
    }
}

/// The types that a schema allows, as words; empty for all.
pub(super) fn types(flat: &FlatSchema) -> Vec<&str> {
    flat.get("type").map(words).unwrap_or_default()
}

fn words(types: &Value) -> Vec<&str> {
    match types {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn types_of_both(ours: &Value, theirs: &Value) -> Option<Value> {
    let (ours, theirs) = (words(ours), words(theirs));
    let allows =
        |all: &[&str], it: &str| all.contains(&it) || (it == "integer" && all.contains(&"number"));
    let mut both: Vec<&str> = Vec::new();
    for it in ours.iter().chain(&theirs) {
        if allows(&ours, it) && allows(&theirs, it) && !both.contains(it) {
            both.push(it);
        }
    }
    (!both.is_empty()).then(|| json!(both))
}
