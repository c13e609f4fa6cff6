//! Waiting for an operation: a request without `accepts_incomplete` gets its result.
//!
//! A disconnect cancels nothing: the operation runs in the engine. Polling and the in-flight result:
//! `sutler_records`.

use super::{Desk, Problem, refusal_of};
use crate::lifecycle::Verb;
use crate::records::Detail;
use sutler_journal::{Key, OperationId, Outcome};
use sutler_records::{OperationEnd, ResultReceiver, WaitResult};
use tokio::time::Instant;

/// How a wait ended.
pub(super) enum Waited<S> {
    /// The operation succeeded; the resource after it, where that is known.
    Succeeded(Option<S>),
    /// Time is up; it still runs.
    Overdue,
}

impl Desk {
    /// Waits until an operation is done, or for as long as a request may wait.
    pub(super) async fn wait_for<S>(
        &self,
        lane: &Key,
        id: OperationId,
        result: Option<ResultReceiver<S, Detail>>,
        verb: Verb,
    ) -> Result<Waited<S>, Problem> {
        let deadline = Instant::now() + self.stock.settings.sync_wait;
        let documents = &self.stock.records;
        let waited = documents.wait_for_end(&self.engine, (lane, id), result, deadline);
        match waited.await {
            WaitResult::Ended { state, end } => {
                succeeded(end, verb).map(|()| Waited::Succeeded(state))
            }
            WaitResult::Overdue => Ok(Waited::Overdue),
        }
    }

    /// How an operation ended, if it has.
    pub(super) async fn result_of(
        &self,
        lane: &Key,
        id: OperationId,
        verb: Verb,
    ) -> Result<Option<Result<(), Problem>>, Problem> {
        let end = self.stock.records.end_of(lane, id).await?;
        Ok(end.map(|end| succeeded(end, verb)))
    }
}

fn succeeded(end: OperationEnd<Detail>, verb: Verb) -> Result<(), Problem> {
    let detail = end.detail;
    match (end.outcome, detail.refused) {
        (Outcome::Succeeded, _) => Ok(()),
        (_, Some(as_)) => Err(Problem::Refused(refusal_of(as_, &detail))),
        (_, None) => Err(Problem::Failed { verb, detail }),
    }
}
