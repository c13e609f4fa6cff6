//! Waiting for an operation: a request without `accepts_incomplete` is answered with its result.
//!
//! A disconnect cancels nothing: the operation runs in the engine, not in the request.

use super::{Desk, Problem, refusal_of};
use crate::handover::Concluded;
use crate::lifecycle::Verb;
use crate::records::{Detail, Kept};
use std::time::Duration;
use sutler_journal::{Key, OperationId, Outcome, PolledOperation, State};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// First and longest pause between looks at an operation that runs elsewhere.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(250);
/// How often a resource that was changed is read again before its caller is told of a failure.
const RELOADS: u32 = 20;

/// How a wait ended.
pub(super) enum Waited<S> {
    /// The operation ended well; the resource as it left it, where that is known.
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
        result: Option<oneshot::Receiver<Concluded<S>>>,
        verb: Verb,
    ) -> Result<Waited<S>, Problem> {
        let deadline = Instant::now() + self.stock.settings.sync_wait;
        if let Some(result) = result {
            match tokio::time::timeout_at(deadline, result).await {
                Ok(Ok(concluded)) => return told(concluded, verb).map(Waited::Succeeded),
                // It will be tried again, or goes on elsewhere.
                Ok(Err(_)) => {}
                Err(_) => return Ok(Waited::Overdue),
            }
        }
        let mut pause = LOOK_FIRST;
        loop {
            if let Some(finished) = self.engine.finished(id)
                && tokio::time::timeout_at(deadline, finished.wait())
                    .await
                    .is_err()
            {
                return Ok(Waited::Overdue);
            }
            match self.result_of(lane, id, verb).await {
                Ok(Some(result)) => return result.map(|()| Waited::Succeeded(None)),
                Ok(None) => {}
                // It goes on whether we can see it or not, so no answer is given before time is up.
                Err(Problem::Unavailable(error)) => {
                    tracing::warn!(operation.id = %id, %error, "no look at an operation; looking again");
                }
                Err(problem) => return Err(problem),
            }
            if Instant::now() + pause > deadline {
                return Ok(Waited::Overdue);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LAST);
        }
    }

    /// Reads a resource whose operation succeeded. A caller told of a failure now would not expect
    /// the change to have come true (B-037), so a store that does not answer is asked again.
    pub(super) async fn load_changed<S: Kept>(&self, key: &Key) -> Result<S, Problem> {
        let mut pause = LOOK_FIRST;
        for _ in 0..RELOADS {
            match self.stock.records.load::<S>(key).await {
                Ok(loaded) => return Ok(loaded.state),
                Err(error) => {
                    tracing::warn!(%error, "a changed resource could not be read; trying again")
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LAST);
        }
        Ok(self.stock.records.load::<S>(key).await?.state)
    }

    /// How an operation ended, if it has.
    pub(super) async fn result_of(
        &self,
        lane: &Key,
        id: OperationId,
        verb: Verb,
    ) -> Result<Option<Result<(), Problem>>, Problem> {
        let records = &self.stock.records;
        let Some(PolledOperation { state, detail, .. }) = records.store.poll(lane, id).await?
        else {
            // Swept before we looked: it had succeeded or failed long ago.
            return Ok(Some(Err(Problem::Failed {
                verb,
                detail: Detail::default(),
            })));
        };
        match state {
            State::Waiting | State::Ready | State::Running => Ok(None),
            State::Done(Outcome::Succeeded) => Ok(Some(Ok(()))),
            State::Done(Outcome::Failed | Outcome::Cancelled) => {
                let detail = records.open_detail(id, &detail)?;
                Ok(Some(Err(problem_of(detail, verb))))
            }
        }
    }
}

fn told<S>(concluded: Concluded<S>, verb: Verb) -> Result<Option<S>, Problem> {
    match concluded.outcome {
        Outcome::Succeeded => Ok(Some(concluded.state)),
        Outcome::Failed | Outcome::Cancelled => Err(problem_of(concluded.detail, verb)),
    }
}

fn problem_of(detail: Detail, verb: Verb) -> Problem {
    match detail.refused {
        Some(as_) => Problem::Refused(refusal_of(as_, &detail)),
        None => Problem::Failed { verb, detail },
    }
}
