//! Names of namespaces, brokers, instances, bindings and secrets: those of Kubernetes' objects.
//!
//! A name that is checked once is a valid part of a key and of a path everywhere after that.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 253;

/// The name of an object of the platform.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceName(String);

/// A text that is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must have 1 to {NAME_BYTES_MAX} lower-case letters, digits, `-` and `.`, and begin and end with a letter or digit"
)]
pub struct ResourceNameError;

impl ResourceName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ResourceName {
    type Error = ResourceNameError;

    fn try_from(text: String) -> Result<Self, ResourceNameError> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let fits = (1..=NAME_BYTES_MAX).contains(&bytes.len())
            && bytes.first().copied().is_some_and(is_plain)
            && bytes.last().copied().is_some_and(is_plain)
            && bytes
                .iter()
                .all(|byte| is_plain(*byte) || matches!(byte, b'-' | b'.'));
        match fits {
            true => Ok(Self(text)),
            false => Err(ResourceNameError),
        }
    }
}

impl TryFrom<&str> for ResourceName {
    type Error = ResourceNameError;

    fn try_from(text: &str) -> Result<Self, ResourceNameError> {
        Self::try_from(text.to_owned())
    }
}

impl From<ResourceName> for String {
    fn from(name: ResourceName) -> Self {
        name.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
