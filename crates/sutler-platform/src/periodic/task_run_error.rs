//! Why a run of a periodic task ends early.

use sutler_journal::{Lost, StoreError};
use sutler_records::RecordError;

/// Why a run ends early. The next one does what this one could not.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskRunError {
    /// Another worker has the claim, or the process stops.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The store does not answer, or a record cannot be opened.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl From<StoreError> for TaskRunError {
    fn from(error: StoreError) -> Self {
        Self::Record(error.into())
    }
}
