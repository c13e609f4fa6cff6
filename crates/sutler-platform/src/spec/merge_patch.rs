//! JSON Merge Patch (RFC 7396) between JSON objects: apply, difference, composition.
//!
//! An object in a patch is merged member by member, `null` removes, everything else replaces; arrays are never merged.
//! Knows no specs; the types that guarantee the assumptions below are in `parameters.rs`.

use serde_json::{Map, Value};

/// Applies a patch in place. No `null` member of the patch reaches the target, except inside arrays.
pub(crate) fn apply(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        match change {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(change) => {
                if let Some(Value::Object(inside)) = target.get_mut(key) {
                    apply(inside, change);
                } else {
                    let mut inside = Map::new();
                    apply(&mut inside, change);
                    target.insert(key.clone(), Value::Object(inside));
                }
            }
            change => {
                target.insert(key.clone(), change.clone());
            }
        }
    }
}

/// The smallest patch that makes `to` of `from`.
///
/// # Assumptions
/// `to` has no `null` members outside arrays: a merge patch cannot set them.
pub(super) fn diff(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        let change = match (from.get(key), value) {
            (Some(Value::Object(before)), Value::Object(value)) => {
                let inside = diff(before, value);
                (!inside.is_empty()).then_some(Value::Object(inside))
            }
            (before, value) => (before != Some(value)).then(|| value.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    patch
}

/// One patch with the effect of both, on every target; `None` if there is none.
///
/// There is none where `first` removes a member or replaces it by something that is no object, and `later` merges an
/// object into it: together they replace the member by exactly that object, but in one merge patch an object is merged
/// into what the target has there.
pub(super) fn compose(
    first: &Map<String, Value>,
    later: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut both = first.clone();
    for (key, change) in later {
        let change = match (first.get(key), change) {
            (Some(Value::Object(before)), Value::Object(change)) => {
                Value::Object(compose(before, change)?)
            }
            (Some(_), Value::Object(_)) => return None,
            (_, change) => change.clone(),
        };
        both.insert(key.clone(), change);
    }
    Some(both)
}
