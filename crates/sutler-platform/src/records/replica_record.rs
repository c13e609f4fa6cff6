//! A process of the platform: which build it is, and when it wrote that it lives.

use super::record::TypedRecord;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sutler_journal::Term;
use uuid::Uuid;

/// A process as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaRecord {
    /// Its id; another one after each start.
    pub id: Uuid,
    /// Name for people, e.g. that of its host.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// When it started.
    pub started: Timestamp,
    /// When it wrote this last.
    pub written: Timestamp,
}

impl TypedRecord for ReplicaRecord {
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }
}
