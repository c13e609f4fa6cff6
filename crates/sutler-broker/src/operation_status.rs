//! Status of an operation, for extensions that hold resources per operation.

use sutler_journal::{OperationId, State, Store, StoreError};
use uuid::Uuid;

/// Status of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationStatus {
    /// It waits or runs.
    Open,
    /// It ended, and its end is stored.
    Ended,
    /// It is not in the store: cleaned up long after its end, or never accepted here.
    Unknown,
}

/// Reads the status of an operation.
pub(crate) async fn operation_status(
    store: &dyn Store,
    operation: Uuid,
) -> Result<OperationStatus, StoreError> {
    let found = store.operation(OperationId(operation)).await?;
    Ok(match found.map(|it| it.row.state) {
        None => OperationStatus::Unknown,
        Some(State::Done(_)) => OperationStatus::Ended,
        Some(State::Waiting | State::Ready | State::Running) => OperationStatus::Open,
    })
}
