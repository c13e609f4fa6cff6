//! Parses bytes into a typed body, with a sentence for every failure.
//!
//! The messages name the field by its path and never quote a value: a misplaced value may be a secret.
//! The server limits the size of a body.

use serde::de::DeserializeOwned;

/// Longest piece of a parser's message that is passed on, in characters.
const REASON_CHARS_MAX: usize = 300;
/// Deepest body, in levels of objects and arrays. The parser's limit is 127, but a body is stored inside
/// other objects and must be readable from there.
const DEPTH_MAX: usize = 100;
/// Keys of objects that begin like this have a meaning for the parser: the object is not stored as it was sent, or
/// cannot be read again.
const RESERVED: &str = "$serde_json::private::";

/// Why bytes are not the expected body. `Display` is a sentence for the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// There are no bytes, or only white space.
    #[error("the body is empty: a JSON object is expected")]
    Empty,
    /// The bytes are not JSON.
    #[error("the body is not valid JSON: {reason}")]
    NotJson {
        /// Message of the parser, with the position.
        reason: String,
    },
    /// The JSON text is not an object.
    #[error("the body is not a JSON object")]
    NotAnObject,
    /// Nested too deeply.
    #[error(
        "the body is nested too deeply: at most {DEPTH_MAX} levels of objects and arrays are read"
    )]
    TooDeep,
    /// A key has a meaning for the parser.
    #[error("the body has a key that begins with `{RESERVED}`, which is reserved")]
    Reserved,
    /// A mandatory field is missing.
    #[error("field `{path}` is required")]
    Missing {
        /// Expected path, e.g. `volume_mounts[0].driver`.
        path: String,
    },
    /// Each field is valid, but not their combination.
    #[error("the body is not as it should be: {reason}")]
    Whole {
        /// Reason.
        reason: String,
    },
    /// A field has a wrong type or value.
    #[error("field `{path}`{} {reason}", joint(reason))]
    Field {
        /// Path, e.g. `bind_resource.app_guid`.
        path: String,
        /// Reason.
        reason: String,
    },
}

/// Reads a body.
///
/// Unknown fields are ignored (B-003); a known field that appears twice is an error.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyError> {
    // Derived types would also accept an array for an object.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => return Err(BodyError::Empty),
        Some(b'{') => (),
        Some(_) => return Err(not_an_object(bytes)),
    }
    match check_json_text(bytes) {
        Ok(()) => (),
        Err(JsonTextError::TooDeep) => return Err(BodyError::TooDeep),
        Err(JsonTextError::Reserved) => return Err(BodyError::Reserved),
    }
    // Nearly all bodies are valid: the path is computed only for those that are not.
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
        return BodyError::NotJson {
            reason: shortened(&first.to_string()),
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
    // A message that begins by naming its field (see `IdError`) would name it twice.
    let reason = match reason
        .strip_prefix('`')
        .and_then(|rest| rest.split_once("` "))
    {
        Some((_, predicate)) => predicate,
        None => reason,
    };
    let reason = shortened(&without_value(reason));
    if parent.is_empty() {
        return BodyError::Whole { reason };
    }
    BodyError::Field {
        path: parent.to_owned(),
        reason,
    }
}

/// Why a JSON text must not be parsed: it could not be read again after it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    /// Nested too deeply.
    #[error("is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// A key has a meaning for the parser.
    #[error("has a key that begins with `{RESERVED}`")]
    Reserved,
}

/// Checks a JSON text before it is parsed: depth, and keys that are reserved. The result for invalid JSON is undefined:
/// the parser refuses it.
pub fn check_json_text(bytes: &[u8]) -> Result<(), JsonTextError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    // Whether the last string begins with a reserved text: it is a key if a colon follows.
    let mut is_reserved_text = false;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => {
                in_string = !in_string;
                if in_string {
                    is_reserved_text = is_reserved(&bytes[at + 1..]);
                }
            }
            b':' if !in_string && is_reserved_text => return Err(JsonTextError::Reserved),
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => (),
        }
        if depth > DEPTH_MAX {
            return Err(JsonTextError::TooDeep);
        }
    }
    Ok(())
}

/// Whether a string of a JSON text, without its first quote, begins with [`RESERVED`]. Each character may be escaped.
fn is_reserved(string: &[u8]) -> bool {
    let mut rest = string;
    RESERVED.bytes().all(|wanted| {
        let (found, after) = match rest {
            [b'\\', b'u', digits @ ..] if digits.len() >= 4 => {
                let (digits, after) = digits.split_at(4);
                let code = std::str::from_utf8(digits).ok();
                (code.and_then(|it| u32::from_str_radix(it, 16).ok()), after)
            }
            [byte, after @ ..] => (Some(u32::from(*byte)), after),
            [] => (None, rest),
        };
        rest = after;
        found == Some(u32::from(wanted))
    })
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

/// Removes the offending value from serde's `invalid type: string "…", expected …` and
/// `unknown variant …, expected …`.
fn without_value(reason: &str) -> String {
    let is_about_value =
        reason.starts_with("invalid type: ") || reason.starts_with("invalid value: ");
    match reason.rsplit_once(", expected ") {
        Some((found, expected)) if found.starts_with("unknown variant ") => {
            format!("must be {expected}")
        }
        Some((found, expected)) if is_about_value => {
            let kind = found.split(['"', '`']).next().unwrap_or(found).trim_end();
            format!("{kind}, expected {expected}")
        }
        Some(_) | None => reason.to_owned(),
    }
}

/// Shortens a reason to one line of a message.
fn shortened(reason: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let kept = reason.chars().take(REASON_CHARS_MAX);
    let mut text: String = kept.map(one_line).collect();
    if reason.chars().nth(REASON_CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}
