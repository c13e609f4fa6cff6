//! Secrets of users, and which instances use them. Values never leave the platform but in requests to brokers.

use super::record::TypedRecord;
use super::terms::{NOTICE_DUE, NOTICE_TERM};
use crate::author::Author;
use crate::broker_request::SecretContent;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use sutler_journal::Term;
use uuid::Uuid;

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
    /// Number of the contents of whose change all instances are notified that use it.
    #[serde(default)]
    pub notified: u64,
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
        let is_due = self.notified < self.revision;
        let term = is_due.then(|| Term::new(NOTICE_TERM, NOTICE_DUE));
        term.into_iter().collect()
    }
}

/// An instance or a binding uses a secret: it is notified of changes, and the secret cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretUse {
    /// Whether a change of the secret causes an update; never of a binding.
    pub watch: bool,
    /// Uid of the instance of the binding, if it is a binding that uses the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_of: Option<Uuid>,
}

impl TypedRecord for SecretUse {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
