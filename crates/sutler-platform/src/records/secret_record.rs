//! Secrets of users, and which instances use them. Values never leave the platform but in requests to brokers.

use super::record::TypedRecord;
use crate::author::Author;
use crate::broker_request::SecretContent;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use sutler_journal::Term;

/// Largest secret, in bytes of its keys and values.
pub const SECRET_BYTES_MAX: usize = 256 * 1024;

/// A secret as it is stored. `Debug` shows its keys only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRecord {
    /// Keys and values.
    pub values: BTreeMap<String, Vec<u8>>,
    /// Number of the contents: it grows with each change.
    pub revision: u64,
    /// When it was changed last.
    pub changed: Timestamp,
    /// The person who changed it: updates that follow from it carry this identity.
    pub changed_by: Author,
}

impl fmt::Debug for SecretRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl SecretRecord {
    /// The contents, for resolving parameters.
    pub fn content(&self) -> SecretContent {
        SecretContent::from(self.values.clone())
    }
}

impl TypedRecord for SecretRecord {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}

/// An instance or a binding uses a secret: the secret cannot be deleted, and an instance may be informed of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretUse {
    /// Whether a change of the secret causes an update; never of a binding.
    pub watch: bool,
}

impl TypedRecord for SecretUse {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
