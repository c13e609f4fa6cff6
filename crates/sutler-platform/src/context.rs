//! What commands and runs share: documents, brokers, the wait for ends, and the ids and moments of decisions.

use crate::brokers::Brokers;
use crate::end_waiters::EndWaiters;
use crate::lifecycle::intent::OperationId;
use crate::platform_records::PlatformRecords;
use crate::retention::RetentionSettings;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Parts of a running platform.
pub(crate) struct PlatformContext {
    /// Documents.
    pub(crate) records: PlatformRecords,
    /// Registered brokers.
    pub(crate) brokers: Arc<Brokers>,
    /// Callers that wait for the end of an operation.
    pub(crate) waiters: EndWaiters,
    /// Lifetime of a worker's lease: a process may be paused for so long before it sends.
    pub(crate) lease: Duration,
    /// How long what has ended is kept.
    pub(crate) retention: RetentionSettings,
}

/// A fresh id. Operations, resources and their ids at brokers have the same source, which a simulation replaces.
pub(crate) fn fresh_uuid() -> Uuid {
    sutler_journal::OperationId::fresh().0
}

/// The journal's id of an operation.
pub(crate) fn journal_id(operation: OperationId) -> sutler_journal::OperationId {
    sutler_journal::OperationId(operation.0)
}
