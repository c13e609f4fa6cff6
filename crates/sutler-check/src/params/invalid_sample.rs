//! Derives parameters that break a schema, one rule at a time, with a description.

use super::flatten::{FlatSchema, flats, types};
use super::limits::{TEXT_MAX, WIDTH_MAX};
use super::schema::Schema;
use super::valid_sample::{as_number, size};
use super::{InvalidSample, Parameters};
use serde_json::{Map, Value, json};

/// Maximum samples.
const FOUND_MAX: usize = 8;
/// Maximum samples tried.
const TRIED_MAX: usize = 400;
/// Maximum depth of broken values.
const DEPTH_MAX: usize = 3;
/// Name of an entry that no closed schema allows.
const NOBODY: &str = "sutler-check-is-not-allowed";

/// Invalid parameters, each with another fault. The first of each kind shows best whether a broker applies
/// the schema, so kinds alternate: one of each before a second of any.
pub(super) fn parameters(schema: &Schema<'_>, valid: Option<&Parameters>) -> Vec<InvalidSample> {
    let empty = Map::new();
    let base = Value::Object(valid.unwrap_or(&empty).clone());
    let mut broken = Vec::new();
    for flat in flats(schema, schema.root) {
        broken.extend(of_object(schema, &flat, &base, 0));
    }
    let mut kinds: Vec<&str> = Vec::new();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for BrokenValue { kind, what, value } in broken.into_iter().take(TRIED_MAX) {
        let Value::Object(parameters) = value else {
            continue;
        };
        if !schema.forbids(&Value::Object(parameters.clone())) {
            continue;
        }
        let sample = InvalidSample { what, parameters };
        if kinds.contains(&kind) {
            second.push(sample);
        } else {
            kinds.push(kind);
            first.push(sample);
        }
    }
    first.append(&mut second);
    let mut found: Vec<InvalidSample> = Vec::new();
    for sample in first {
        let known = found.iter().any(|it| it.parameters == sample.parameters);
        if found.len() < FOUND_MAX && !known {
            found.push(sample);
        }
    }
    found
}

/// A value that breaks one rule.
struct BrokenValue {
    kind: &'static str,
    what: String,
    value: Value,
}

fn broken(kind: &'static str, what: impl Into<String>, value: Value) -> BrokenValue {
    BrokenValue {
        kind,
        what: what.into(),
        value,
    }
}

/// Ways to break an object, and the entries in it.
fn of_object(
    schema: &Schema<'_>,
    flat: &FlatSchema,
    base: &Value,
    depth: usize,
) -> Vec<BrokenValue> {
    let empty = Map::new();
    let base = base.as_object().unwrap_or(&empty);
    let mut all = Vec::new();
    let required = flat.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let mut less = base.clone();
        less.remove(name);
        all.push(broken("missing", format!("without {name:?}"), less.into()));
    }
    let mut more = base.clone();
    more.insert(NOBODY.to_owned(), json!(true));
    let what = format!("with {NOBODY:?}, which the schema does not know");
    all.push(broken("additional", what, more.into()));
    let properties = flat.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        for its in of_entry(schema, property, base.get(name), depth) {
            let mut other = base.clone();
            other.insert(name.clone(), its.value);
            let what = format!("{name:?} {}", its.what);
            all.push(broken(its.kind, what, other.into()));
        }
    }
    all
}

/// Ways to break one value.
fn of_entry(
    schema: &Schema<'_>,
    its: &Value,
    base: Option<&Value>,
    depth: usize,
) -> Vec<BrokenValue> {
    let mut all = Vec::new();
    for flat in flats(schema, its) {
        all.extend(wrong_type(&flat));
        if flat.contains_key("enum") || flat.contains_key("const") {
            let what = "is none of the values that are allowed";
            all.push(broken("enum", what, json!(NOBODY)));
            all.push(broken("enum", what, json!(-987_654_321)));
        }
        all.extend(out_of_bounds(&flat));
        all.extend(wrong_text(&flat));
        all.extend(wrong_items(&flat));
        if depth < DEPTH_MAX && flat.contains_key("properties") {
            let empty = json!({});
            all.extend(of_object(schema, &flat, base.unwrap_or(&empty), depth + 1));
        }
    }
    all
}

fn wrong_type(flat: &FlatSchema) -> Option<BrokenValue> {
    let known = types(flat);
    if known.is_empty() {
        return None;
    }
    let is = |name: &str| known.contains(&name);
    let (what, value) = if !is("string") {
        ("is a text", json!(NOBODY))
    } else if !is("object") {
        ("is an object", json!({}))
    } else if !is("boolean") {
        ("is a boolean", json!(true))
    } else {
        ("is a list", json!([]))
    };
    Some(broken("type", what, value))
}

fn out_of_bounds(flat: &FlatSchema) -> Vec<BrokenValue> {
    let mut all = Vec::new();
    for (name, step, what) in [
        ("minimum", -1.0, "is too small"),
        ("exclusiveMinimum", -1.0, "is too small"),
        ("maximum", 1.0, "is too large"),
        ("exclusiveMaximum", 1.0, "is too large"),
    ] {
        let bound = flat.get(name).and_then(Value::as_f64);
        if let Some(value) = bound.and_then(|it| as_number(it + step)) {
            all.push(broken("bounds", what, value));
        }
    }
    let step = flat.get("multipleOf").and_then(Value::as_f64);
    if let Some(value) = step.and_then(|it| as_number(it * 1.5)) {
        all.push(broken("multiple", "is no multiple of its step", value));
    }
    all
}

fn wrong_text(flat: &FlatSchema) -> Vec<BrokenValue> {
    let mut all = Vec::new();
    let length = |name: &str| size(flat, name);
    if let Some(least) = length("minLength").filter(|it| *it > 0 && *it <= TEXT_MAX) {
        let text = "a".repeat(least - 1);
        all.push(broken("length", "is too short", json!(text)));
    }
    if let Some(most) = length("maxLength").filter(|it| *it < TEXT_MAX) {
        let text = "a".repeat(most + 1);
        all.push(broken("length", "is too long", json!(text)));
    }
    if flat.contains_key("pattern") || flat.contains_key("format") {
        for text in ["", "\u{1}", "§ sutler check §", "a", "0"] {
            let what = "does not match what it has to look like";
            all.push(broken("pattern", what, json!(text)));
        }
    }
    all
}

fn wrong_items(flat: &FlatSchema) -> Vec<BrokenValue> {
    let mut all = Vec::new();
    if size(flat, "minItems").is_some_and(|it| it > 0) {
        all.push(broken("items", "has too few items", json!([])));
    }
    if let Some(most) = size(flat, "maxItems").filter(|it| *it < WIDTH_MAX) {
        let items = vec![NOBODY; most + 1];
        all.push(broken("items", "has too many items", json!(items)));
    }
    if flat.contains_key("items") {
        for item in [json!(NOBODY), json!(-987_654_321), json!({})] {
            let what = "holds an item that is not allowed";
            all.push(broken("items", what, json!([item])));
        }
    }
    all
}
