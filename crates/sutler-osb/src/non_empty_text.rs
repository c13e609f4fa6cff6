//! A string that is not empty: the spec's "MUST be a non-empty string" as a type.
//!
//! For names that belong to the platform (organisation, space, app). Ids are in `ids.rs`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A non-empty string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NonEmptyText(String);

/// The text was empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must not be empty")]
pub struct EmptyTextError;

impl NonEmptyText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NonEmptyText {
    type Error = EmptyTextError;
    fn try_from(text: String) -> Result<Self, EmptyTextError> {
        if text.is_empty() {
            Err(EmptyTextError)
        } else {
            Ok(Self(text))
        }
    }
}

impl TryFrom<&str> for NonEmptyText {
    type Error = EmptyTextError;
    fn try_from(text: &str) -> Result<Self, EmptyTextError> {
        text.to_owned().try_into()
    }
}

impl From<NonEmptyText> for String {
    fn from(text: NonEmptyText) -> String {
        text.0
    }
}

impl fmt::Display for NonEmptyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
