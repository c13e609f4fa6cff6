//! What became of an operation, told to whoever keeps something for it outside the broker.

use crate::broker::Running;
use sutler_journal::{OperationId, State, StoreError};
use uuid::Uuid;

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits or runs.
    Open,
    /// It ended, and how is written down.
    Ended,
    /// Nobody knows it: cleaned up long after its end, or never accepted here.
    Unknown,
}

impl Running {
    /// What became of an operation of any platform of this broker.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn fate(&self, operation: Uuid) -> Result<Fate, StoreError> {
        let Some(stock) = self.0.stocks().next() else {
            return Ok(Fate::Unknown);
        };
        let found = stock.records.store.operation(OperationId(operation));
        Ok(match found.await?.map(|it| it.row.state) {
            None => Fate::Unknown,
            Some(State::Done(_)) => Fate::Ended,
            Some(State::Waiting | State::Ready | State::Running) => Fate::Open,
        })
    }
}
