//! What is known of a broker at present, shared by all replicas: its breaker, its catalog's revision, what was learned.

use super::record::TypedRecord;
use crate::catalog::SyncFaults;
use crate::lifecycle::breaker::Breaker;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sutler_journal::{OperationId, Term};

/// State of a broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BrokerState {
    /// Whether anything is sent to it.
    pub breaker: Breaker,
    /// The operation that probes it, while there is one.
    pub probe: Option<OperationId>,
    /// That it takes one operation per instance at a time, if it said so.
    pub serialization: Option<LearnedSerialization>,
    /// Entity tag of the catalog that was read last.
    pub entity_tag: Option<String>,
    /// Number of the catalog: it grows with each sync that changed something.
    pub catalog_revision: u64,
    /// The last sync.
    pub sync: SyncStatus,
}

/// A broker takes one operation per instance at a time (P-061).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedSerialization {
    /// When it said so last. Forgotten a day later.
    pub last_conflict: Timestamp,
}

/// How the last sync of a catalog ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncStatus {
    /// When the catalog was read last.
    pub read_at: Option<Timestamp>,
    /// Why the last attempt to read it failed, if it did.
    pub failure: Option<String>,
    /// Items of the catalog that are not usable.
    pub faults: SyncFaults,
}

impl TypedRecord for BrokerState {
    fn terms(&self) -> Vec<Term> {
        let state = match &self.breaker {
            Breaker::Closed { .. } => "closed",
            Breaker::Open(_) => "open",
            Breaker::Paused { .. } => "paused",
        };
        vec![Term::new(super::terms::STATE_TERM, state)]
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.probe.into_iter().collect()
    }
}
