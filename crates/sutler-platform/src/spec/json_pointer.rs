//! JSON pointers (RFC 6901) of the leaves of a JSON object: the paths that a change touches.
//!
//! A leaf is everything but an object with members, so `null` and `{}` are leaves, and so is each array. The empty
//! pointer (the whole document) never occurs.

use serde_json::{Map, Value};

/// Appends one segment, escaped.
pub(crate) fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// The members of an object that has any; `None` for a leaf.
pub(crate) fn members(value: &Value) -> Option<&Map<String, Value>> {
    match value {
        Value::Object(object) if !object.is_empty() => Some(object),
        _ => None,
    }
}

/// Pointers of all leaves, in the order of the document.
pub(crate) fn leaves(document: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    collect(document, &mut String::new(), &mut found);
    found
}

fn collect(object: &Map<String, Value>, at: &mut String, found: &mut Vec<String>) {
    for (key, value) in object {
        let above = at.len();
        push_segment(at, key);
        match members(value) {
            Some(inside) => collect(inside, at, found),
            None => found.push(at.clone()),
        }
        at.truncate(above);
    }
}

/// The pointer if it fits into so many bytes, else the longest of its ancestors that does.
pub(crate) fn shortened(pointer: &str, bytes_max: usize) -> &str {
    if pointer.len() <= bytes_max {
        return pointer;
    }
    let ends = pointer.match_indices('/').map(|(end, _)| end);
    let longest = ends.take_while(|end| *end <= bytes_max).last();
    longest.and_then(|end| pointer.get(..end)).unwrap_or("")
}
