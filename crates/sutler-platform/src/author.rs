//! The person behind an intent: who asked for a change, and for whom.
//!
//! Not here: how a broker is told of an author (`broker_request/originating_identity.rs`), and who may do what.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The author of an intent, as the caller was authenticated when the intent was accepted. Never changed afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Author {
    /// Name for people; not an identity.
    pub username: String,
    /// Stable id, unique among all authors.
    pub uid: String,
    /// Groups, sorted.
    pub groups: Vec<String>,
    /// Other attributes, e.g. scopes.
    pub extra: BTreeMap<String, Vec<String>>,
    /// Uid of the front end that acted for this author, if any.
    pub impersonated_by: Option<String>,
}

impl Author {
    /// Whether two intents come from one person with the same rights, so that one request can carry both.
    pub fn is_same_person(&self, other: &Self) -> bool {
        self.uid == other.uid && self.groups == other.groups
    }
}
