//! A path to a value inside credentials: a JSON pointer (RFC 6901), e.g. `/hosts/0`, or the simple part of JSONPath, e.g.
//! `$.hosts[0]` or `$['host name']`.
//!
//! Only names and indexes; a path never selects more than one value. Used by `transforms.rs`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Most names and indexes of a path.
pub const PATH_SEGMENTS_MAX: usize = 64;

/// A path to one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialPath {
    text: String,
    segments: Vec<String>,
}

/// A text that is not a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialPathError {
    /// Longer than [`PATH_BYTES_MAX`].
    #[error("a path must not be longer than {PATH_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`PATH_SEGMENTS_MAX`] names and indexes.
    #[error("a path must not have more than {PATH_SEGMENTS_MAX} names and indexes")]
    TooManySegments,
    /// It begins otherwise.
    #[error("a path must begin with `$` or `/`")]
    WrongBeginning,
    /// A `~` of a pointer without `0` or `1` behind it.
    #[error("a `~` in a JSON pointer must be written as `~0`")]
    BrokenEscape,
    /// Something else than names and indexes behind `$`.
    #[error("behind `$` a path may only have names and indexes: `.name`, `['name']`, `[0]`")]
    NotSimple,
}

impl CredentialPath {
    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value at the path, if there is one.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.segments
            .iter()
            .try_fold(document, |value, segment| match value {
                Value::Object(object) => object.get(segment),
                Value::Array(items) => items.get(index(segment)?),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            })
    }
}

impl TryFrom<String> for CredentialPath {
    type Error = CredentialPathError;

    fn try_from(text: String) -> Result<Self, CredentialPathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(CredentialPathError::TooLong);
        }
        let segments = match (text.strip_prefix('$'), text.strip_prefix('/')) {
            (Some(rest), _) => of_json_path(rest)?,
            (None, Some(rest)) => rest.split('/').map(unescaped).collect::<Result<_, _>>()?,
            (None, None) => return Err(CredentialPathError::WrongBeginning),
        };
        if segments.len() > PATH_SEGMENTS_MAX {
            return Err(CredentialPathError::TooManySegments);
        }
        Ok(Self { text, segments })
    }
}

impl From<CredentialPath> for String {
    fn from(path: CredentialPath) -> Self {
        path.text
    }
}

/// An index as RFC 6901 writes it: without leading zeros.
fn index(segment: &str) -> Option<usize> {
    let is_canonical = segment == "0" || segment.starts_with(|it: char| ('1'..='9').contains(&it));
    let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_number).then(|| segment.parse().ok())?
}

/// A segment of a JSON pointer without its escapes.
fn unescaped(segment: &str) -> Result<String, CredentialPathError> {
    let mut parts = segment.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match (part.strip_prefix('0'), part.strip_prefix('1')) {
            (Some(rest), _) => ('~', rest),
            (None, Some(rest)) => ('/', rest),
            (None, None) => return Err(CredentialPathError::BrokenEscape),
        };
        text.push(character);
        text.push_str(rest);
    }
    Ok(text)
}

/// The segments behind a `$`.
fn of_json_path(mut rest: &str) -> Result<Vec<String>, CredentialPathError> {
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, behind) = next_segment(rest).ok_or(CredentialPathError::NotSimple)?;
        segments.push(segment);
        rest = behind;
    }
    Ok(segments)
}

/// The first segment, and what is behind it.
fn next_segment(text: &str) -> Option<(String, &str)> {
    if let Some(named) = text.strip_prefix('.') {
        let end = named.find(['.', '[']).unwrap_or(named.len());
        let (name, behind) = named.split_at_checked(end)?;
        let is_name = !name.is_empty() && !name.contains(['*', ']', '\'', '"', '(', '?', '@']);
        return is_name.then(|| (name.to_owned(), behind));
    }
    let inside = text.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, behind) = quoted.split_once(quote)?;
            let is_plain = !name.is_empty() && !name.contains('\\');
            return is_plain.then_some((name.to_owned(), behind.strip_prefix(']')?));
        }
    }
    let (number, behind) = inside.split_once(']')?;
    index(number).map(|_| (number.to_owned(), behind))
}
