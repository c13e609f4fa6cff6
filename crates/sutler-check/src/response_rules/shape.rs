//! Small checks of JSON values for all bodies. Each failure completes a sentence that names the field.

use serde_json::{Map, Value};

/// The body as an object.
pub(super) fn object(json: Option<&Value>) -> Result<&Map<String, Value>, String> {
    match json {
        Some(Value::Object(body)) => Ok(body),
        Some(_) => Err("the body is JSON, and no object".to_owned()),
        None => Err("the body is not JSON".to_owned()),
    }
}

/// An optional object.
pub(super) fn optional_object<'a>(
    body: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Map<String, Value>>, String> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(format!("`{name}` is not an object")),
    }
}

/// An optional string.
pub(super) fn optional_string(body: &Map<String, Value>, name: &str) -> Result<(), String> {
    match body.get(name) {
        None | Some(Value::String(_)) => Ok(()),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}

/// An optional string or null.
pub(super) fn nullable_string(body: &Map<String, Value>, name: &str) -> Result<(), String> {
    match body.get(name) {
        Some(Value::Null) => Ok(()),
        _ => optional_string(body, name),
    }
}

/// An optional non-empty string.
pub(super) fn optional_words(body: &Map<String, Value>, name: &str) -> Result<(), String> {
    match body.get(name) {
        Some(Value::String(text)) if text.is_empty() => Err(format!("`{name}` is empty")),
        _ => optional_string(body, name),
    }
}

/// An optional boolean.
pub(super) fn optional_bool(body: &Map<String, Value>, name: &str) -> Result<(), String> {
    match body.get(name) {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => Err(format!("`{name}` is neither true nor false")),
    }
}

/// A required non-empty string.
pub(super) fn words<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match body.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(_) => Err(format!("`{name}` is not a non-empty string")),
        None => Err(format!("there is no `{name}`")),
    }
}

/// Whether a text needs no encoding in a URL (RFC 3986).
pub(super) fn is_unreserved(text: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_' | '~');
    text.chars().all(plain)
}

/// Fails unless every field is known or has a prefix.
pub(super) fn prefixed(body: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    let bare = |name: &&String| {
        !known.contains(&name.as_str()) && !name.contains(['-', '_', '.', ':', '/'])
    };
    match body.keys().find(bare) {
        Some(name) => Err(format!("the field `{name}` has no prefix")),
        None => Ok(()),
    }
}
