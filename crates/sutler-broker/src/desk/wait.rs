//! Waiting for an operation: a request without `accepts_incomplete` is answered with its result.
//!
//! A disconnect cancels nothing: the operation runs in the engine, not in the request.

use super::{Desk, Problem, refusal_of};
use crate::lifecycle::Verb;
use crate::records::Detail;
use std::time::Duration;
use sutler_journal::{Finished, Key, OperationId, Outcome, Polled, State};
use tokio::time::Instant;

/// First and longest pause between looks at an operation that runs elsewhere.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// How a wait ended.
pub(super) enum Waited {
    /// The operation ended well.
    Succeeded,
    /// Time is up; it still runs.
    Overdue,
}

impl Desk {
    /// Waits until an operation is done, or for as long as a request may wait.
    pub(super) async fn wait_for(
        &self,
        lane: &Key,
        id: OperationId,
        finished: Option<Finished>,
        verb: Verb,
    ) -> Result<Waited, Problem> {
        let deadline = Instant::now() + self.stock.settings.sync_wait;
        let mut here = finished.or_else(|| self.engine.finished(id));
        let mut pause = LOOK_FIRST;
        loop {
            if let Some(finished) = here.take()
                && tokio::time::timeout_at(deadline, finished.wait())
                    .await
                    .is_err()
            {
                return Ok(Waited::Overdue);
            }
            if let Some(result) = self.result_of(lane, id, verb).await? {
                return result.map(|()| Waited::Succeeded);
            }
            if Instant::now() + pause > deadline {
                return Ok(Waited::Overdue);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LAST);
            here = self.engine.finished(id);
        }
    }

    async fn result_of(
        &self,
        lane: &Key,
        id: OperationId,
        verb: Verb,
    ) -> Result<Option<Result<(), Problem>>, Problem> {
        let records = &self.stock.records;
        let Some(Polled { state, detail, .. }) = records.store.poll(lane, id).await? else {
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
                let problem = match detail.refused {
                    Some(as_) => Problem::Refused(refusal_of(as_, &detail)),
                    None => Problem::Failed { verb, detail },
                };
                Ok(Some(Err(problem)))
            }
        }
    }
}
