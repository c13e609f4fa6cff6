//! Waiting for the end of an operation that runs in this process or elsewhere.
//!
//! A caller that stops waiting cancels nothing: the operation runs in the engine. The reply to the
//! caller is made by the crate above.

use crate::{Documents, OperationEnd, RecordError, Resource, ResultReceiver};
use serde::de::DeserializeOwned;
use std::time::Duration;
use sutler_journal::{Engine, Key, OperationId, Outcome, PolledOperation, State};
use tokio::time::Instant;

/// First and longest pause between polls of an operation that runs elsewhere.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_LAST: Duration = Duration::from_millis(250);
/// How often a changed document is read again before the read fails.
const RELOADS: u32 = 20;

/// Result of waiting for an operation.
#[derive(Debug)]
pub enum WaitResult<S, D> {
    /// The operation ended.
    Ended {
        /// The resource as committed with the end, if the operation ran in this process.
        state: Option<S>,
        /// Outcome and detail.
        end: OperationEnd<D>,
    },
    /// The deadline passed and the operation still runs.
    Overdue,
}

impl Documents {
    /// Waits until an operation ends or the deadline passes. A store that does not answer is polled
    /// again: the operation continues whether it can be polled or not.
    pub async fn wait_for_end<S, D: DeserializeOwned + Default>(
        &self,
        engine: &Engine,
        (lane, id): (&Key, OperationId),
        result: Option<ResultReceiver<S, D>>,
        deadline: Instant,
    ) -> WaitResult<S, D> {
        if let Some(result) = result {
            match tokio::time::timeout_at(deadline, result).await {
                Ok(Ok(ended)) => {
                    let (state, end) = (Some(ended.state), ended.end);
                    return WaitResult::Ended { state, end };
                }
                // It will be tried again, or another process continues it.
                Ok(Err(_)) => {}
                Err(_) => return WaitResult::Overdue,
            }
        }
        let mut pause = PAUSE_FIRST;
        loop {
            if let Some(finished) = engine.finished(id)
                && tokio::time::timeout_at(deadline, finished.wait())
                    .await
                    .is_err()
            {
                return WaitResult::Overdue;
            }
            match self.end_of(lane, id).await {
                Ok(Some(end)) => return WaitResult::Ended { state: None, end },
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(operation.id = %id, %error, "an operation could not be polled; polling again");
                }
            }
            if Instant::now() + pause > deadline {
                return WaitResult::Overdue;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LAST);
        }
    }

    /// The end of an operation; `None` while it waits or runs. One that was swept counts as failed:
    /// its end was long ago.
    ///
    /// # Errors
    /// The store does not answer, or the detail cannot be opened.
    pub async fn end_of<D: DeserializeOwned + Default>(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<OperationEnd<D>>, RecordError> {
        let Some(PolledOperation { state, detail, .. }) = self.store.poll(lane, id).await? else {
            return Ok(Some(OperationEnd {
                outcome: Outcome::Failed,
                detail: D::default(),
            }));
        };
        let State::Done(outcome) = state else {
            return Ok(None);
        };
        let detail = match outcome {
            Outcome::Succeeded => D::default(),
            Outcome::Failed | Outcome::Cancelled => self.open_detail(id, &detail)?,
        };
        Ok(Some(OperationEnd { outcome, detail }))
    }

    /// Reads a resource whose operation succeeded. The read is repeated for a while, because a caller that
    /// gets an error assumes that nothing changed.
    ///
    /// # Errors
    /// The store does not answer, or the document cannot be opened.
    pub async fn load_changed<S: Resource>(&self, key: &Key) -> Result<S, RecordError> {
        let mut pause = PAUSE_FIRST;
        for _ in 0..RELOADS {
            match self.load::<S>(key).await {
                Ok(loaded) => return Ok(loaded.state),
                Err(error) => {
                    tracing::warn!(%error, "a changed resource could not be read; trying again");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LAST);
        }
        Ok(self.load::<S>(key).await?.state)
    }
}
