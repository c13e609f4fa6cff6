//! From bytes to a typed body, with a sentence for every way that fails.
//!
//! The messages name the field by its path and never quote a value: what stands in the wrong place
//! may be a secret. How large a body may be is the server's limit, not ours.

use serde::de::DeserializeOwned;

/// Longest piece of a parser's message that is passed on, in characters.
const REASON_CHARS_MAX: usize = 300;

/// Why bytes are not the body that was expected. `Display` is a sentence for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// There are no bytes, or only white space.
    #[error("the body is empty: a JSON object is expected")]
    Empty,
    /// The bytes are no JSON text.
    #[error("the body is not valid JSON: {reason}")]
    NotJson {
        /// What the parser met, and where.
        reason: String,
    },
    /// The JSON text is something other than an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// Nested deeper than the parser goes.
    #[error("the body is nested too deeply: at most 127 levels of objects and arrays are read")]
    TooDeep,
    /// A mandatory field is not there.
    #[error("field `{path}` is required")]
    Missing {
        /// Where it should be, e.g. `volume_mounts[0].driver`.
        path: String,
    },
    /// A field has a wrong type or value.
    #[error("field `{path}`{} {reason}", joint(reason))]
    Field {
        /// Where it is, e.g. `bind_resource.app_guid`.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads a body.
///
/// Unknown fields are ignored (B-003); a known field that appears twice is an error.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyError> {
    // Derived types would also take an array for an object.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(BodyError::Empty),
        Some(b'{') => (),
        Some(_) => return Err(not_an_object(bytes)),
    }
    // Bodies are nearly always fine: the path is worked out only for those that are not.
    serde_json::from_slice(bytes).map_err(|error| explain::<T>(bytes, error))
}

fn not_an_object(bytes: &[u8]) -> BodyError {
    match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Ok(_) => BodyError::NotAnObject,
        Err(error) => BodyError::NotJson {
            reason: shortened(&error.to_string()),
        },
    }
}

fn explain<T: DeserializeOwned>(bytes: &[u8], first: serde_json::Error) -> BodyError {
    if !first.is_data() {
        let reason = first.to_string();
        if reason.starts_with("recursion limit exceeded") {
            return BodyError::TooDeep;
        }
        return BodyError::NotJson {
            reason: shortened(&reason),
        };
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => BodyError::NotJson {
            reason: shortened(&first.to_string()),
        },
        Err(error) => field_error(&error.path().to_string(), &error.into_inner()),
    }
}

fn field_error(path: &str, error: &serde_json::Error) -> BodyError {
    let parent = if path == "." { "" } else { path };
    let message = error.to_string();
    let reason = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(reason, _)| reason);
    if let Some(field) = quoted_after(reason, "missing field `") {
        return BodyError::Missing {
            path: joined(parent, field),
        };
    }
    if let Some(field) = quoted_after(reason, "duplicate field `") {
        return BodyError::Field {
            path: joined(parent, field),
            reason: "must not appear more than once".to_owned(),
        };
    }
    // A message that begins by naming its field (see `InvalidId`) would name it twice.
    let reason = match reason
        .strip_prefix('`')
        .and_then(|rest| rest.split_once("` "))
    {
        Some((_, predicate)) => predicate,
        None => reason,
    };
    BodyError::Field {
        path: parent.to_owned(),
        reason: shortened(&without_value(reason)),
    }
}

fn joint(reason: &str) -> &'static str {
    if reason.starts_with("must ") { "" } else { ":" }
}

fn joined(parent: &str, field: &str) -> String {
    if parent.is_empty() {
        field.to_owned()
    } else {
        format!("{parent}.{field}")
    }
}

fn quoted_after<'a>(reason: &'a str, start: &str) -> Option<&'a str> {
    reason.strip_prefix(start)?.strip_suffix('`')
}

/// Takes the offending value out of serde's `invalid type: string "…", expected …`.
fn without_value(reason: &str) -> String {
    let is_about_value =
        reason.starts_with("invalid type: ") || reason.starts_with("invalid value: ");
    match reason.rsplit_once(", expected ") {
        Some((found, expected)) if is_about_value => {
            let kind = found.split(['"', '`']).next().unwrap_or(found).trim_end();
            format!("{kind}, expected {expected}")
        }
        Some(_) | None => reason.to_owned(),
    }
}

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}
