//! A namespace: the tenant that instances, bindings, secrets and some brokers belong to.

use super::record::TypedRecord;
use crate::broker_request::Namespace;
use crate::lifecycle::instance::Tombstone;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use sutler_journal::Term;

/// A namespace as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// The facts of it that are sent to brokers in `context`.
    pub facts: Namespace,
    /// Labels, for the visibility of plans.
    pub labels: BTreeMap<String, String>,
    /// When it was created.
    pub created: Timestamp,
    /// Whether something may be created in it.
    pub state: NamespaceState,
}

/// Whether something may be created in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NamespaceState {
    /// Yes.
    Active,
    /// It is being deleted, since then.
    Deleting(Timestamp),
}

impl NamespaceRecord {
    /// Whether a resource of this name of a namespace is one of this namespace. What was gone when it was created belonged to
    /// an earlier one of the same name: that had to be empty.
    pub fn owns(&self, tombstone: Option<&Tombstone>) -> bool {
        tombstone.is_none_or(|it| it.at() > self.created)
    }
}

impl TypedRecord for NamespaceRecord {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
