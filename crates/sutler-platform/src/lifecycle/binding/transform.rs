//! A step of the delivery of credentials, and its form in requests. Types only; `transforms.rs` applies them.
//!
//! In requests: `{"rename": {"from": "uri", "to": "URL"}}`, `{"remove": "admin"}`, `{"add": {"key": "PORT", "jsonPath":
//! "$.port"}}`, `{"add": {"key": "MODE", "value": "tls"}}`.

use crate::lifecycle::binding::{CredentialPath, CredentialPathError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A step.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Transform {
    /// A key has another name, in the place of what had that name; nothing happens if the key is missing.
    Rename {
        /// The name that the broker gave it.
        from: String,
        /// The name that is delivered.
        to: String,
    },
    /// A key is not delivered; nothing happens if it is missing.
    Remove(String),
    /// A key is added, in the place of what had that name.
    Add(AddedKey),
}

/// An added key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub struct AddedKey {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: AddedValue,
}

/// The value of an added key.
#[derive(Clone, PartialEq, Eq)]
pub enum AddedValue {
    /// This one.
    Fixed(Value),
    /// A copy of what is at this path.
    Copied(CredentialPath),
}

/// An object that is no added key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddedKeyError {
    /// Other members.
    #[error(
        "an added key has a `key` that is a text, and either a `value` or a `jsonPath` that is a text"
    )]
    WrongMembers,
    /// The path is none.
    #[error("the `jsonPath` of an added key cannot be used")]
    WrongPath(#[source] CredentialPathError),
}

impl TryFrom<Map<String, Value>> for AddedKey {
    type Error = AddedKeyError;

    fn try_from(mut members: Map<String, Value>) -> Result<Self, AddedKeyError> {
        let key = members.remove("key");
        let fixed = members.remove("value");
        let copied = members.remove("jsonPath");
        let (Some(Value::String(key)), true) = (key, members.is_empty()) else {
            return Err(AddedKeyError::WrongMembers);
        };
        let value = match (fixed, copied) {
            (Some(value), None) => AddedValue::Fixed(value),
            (None, Some(Value::String(path))) => {
                AddedValue::Copied(path.try_into().map_err(AddedKeyError::WrongPath)?)
            }
            (Some(_) | None, Some(_) | None) => return Err(AddedKeyError::WrongMembers),
        };
        Ok(Self { key, value })
    }
}

impl From<AddedKey> for Map<String, Value> {
    fn from(added: AddedKey) -> Self {
        let (name, value) = match added.value {
            AddedValue::Fixed(value) => ("value", value),
            AddedValue::Copied(path) => ("jsonPath", Value::String(path.into())),
        };
        let key = ("key".to_owned(), Value::String(added.key));
        Self::from_iter([key, (name.to_owned(), value)])
    }
}

impl Transform {
    /// The keys that it names.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let keys: [Option<&str>; 2] = match self {
            Self::Rename { from, to } => [Some(from), Some(to)],
            Self::Remove(key) => [Some(key), None],
            Self::Add(added) => [Some(&added.key), None],
        };
        keys.into_iter().flatten()
    }
}

/// Shows the keys, and no value: a fixed one may be a secret.
impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rename { from, to } => write!(f, "Rename({from:?} to {to:?})"),
            Self::Remove(key) => write!(f, "Remove({key:?})"),
            Self::Add(added) => added.fmt(f),
        }
    }
}

impl fmt::Debug for AddedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Add({:?}, …)", self.key)
    }
}

impl fmt::Debug for AddedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddedValue(…)")
    }
}
