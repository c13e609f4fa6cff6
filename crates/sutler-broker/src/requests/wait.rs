//! Waiting for an operation: a request without `accepts_incomplete` gets its result.
//!
//! A disconnect cancels nothing: the operation runs in the engine. Polling and the in-flight result:
//! `sutler_records`.

use super::{RequestError, RequestHandler, refusal_of};
use crate::lifecycle::Verb;
use crate::resources::Detail;
use sutler_journal::{Key, OperationId, Outcome};
use sutler_records::{OperationEnd, ResultReceiver, WaitResult};
use tokio::time::Instant;

/// Outcome of a wait.
pub(super) enum WaitOutcome<S> {
    /// The operation succeeded; the resource after it, if known.
    Succeeded(Option<S>),
    /// The time limit has passed and the operation still runs.
    Overdue,
}

impl RequestHandler {
    /// Waits for the end of an operation, within the time limit of a request.
    pub(super) async fn wait_for<S>(
        &self,
        lane: &Key,
        id: OperationId,
        result: Option<ResultReceiver<S, Detail>>,
        verb: Verb,
    ) -> Result<WaitOutcome<S>, RequestError> {
        let deadline = Instant::now() + self.realm_context.settings.sync_wait;
        let documents = &self.realm_context.records;
        let waited = documents.wait_for_end(&self.engine, (lane, id), result, deadline);
        match waited.await {
            WaitResult::Ended { state, end } => {
                succeeded(end, verb).map(|()| WaitOutcome::Succeeded(state))
            }
            WaitResult::Overdue => Ok(WaitOutcome::Overdue),
        }
    }

    /// Outcome of an operation, if it has ended.
    pub(super) async fn result_of(
        &self,
        lane: &Key,
        id: OperationId,
        verb: Verb,
    ) -> Result<Option<Result<(), RequestError>>, RequestError> {
        let end = self.realm_context.records.end_of(lane, id).await?;
        Ok(end.map(|end| succeeded(end, verb)))
    }
}

fn succeeded(end: OperationEnd<Detail>, verb: Verb) -> Result<(), RequestError> {
    let detail = end.detail;
    match (end.outcome, detail.refused) {
        (Outcome::Succeeded, _) => Ok(()),
        (_, Some(as_)) => Err(RequestError::Refused(refusal_of(as_, &detail))),
        (_, None) => Err(RequestError::Failed { verb, detail }),
    }
}
