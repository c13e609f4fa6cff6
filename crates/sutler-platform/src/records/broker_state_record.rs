//! What is known of a broker at present, shared by all replicas: its breaker, its catalog's revision, what was learned.

use super::record::TypedRecord;
use crate::catalog::SyncFaults;
use crate::lifecycle::breaker::Breaker;
use crate::lifecycle::intent::Abandonment;
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
    /// The syncs of its catalog.
    pub sync: SyncStatus,
    /// When its removal was decided, if it was: nothing takes that back, and the documents of its catalog are being
    /// removed.
    #[serde(default)]
    pub removal: Option<Timestamp>,
    /// Who deregisters it with everything that it has and why, if somebody does: nothing takes that back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandonment: Option<Abandonment>,
}

/// A broker takes one operation per instance at a time (P-061).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedSerialization {
    /// When it said so last. Forgotten a day later.
    pub last_conflict: Timestamp,
}

/// How the last sync of a catalog ended, and the operation that makes the next one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncStatus {
    /// The operation that syncs, again and again; its lane is not that of the probe.
    #[serde(default)]
    pub operation: Option<OperationId>,
    /// Number of the last request for a sync.
    #[serde(default)]
    pub requested: u64,
    /// Number of the last request that is served: the catalog was read after it, or could not be read.
    #[serde(default)]
    pub served: u64,
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
        let both = [self.probe, self.sync.operation];
        both.into_iter().flatten().collect()
    }
}
