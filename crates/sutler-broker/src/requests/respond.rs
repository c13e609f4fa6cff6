//! Reply to a change of an instance or a binding: at once, with 202, or after waiting for the result.
//!
//! A disconnect cancels nothing: the operation runs in the engine. Polling and the in-flight result:
//! `sutler_records`.

use super::{
    ChangeOutcome, CommittedDecision, RequestError, RequestHandler, RequestInfo, TRIES, draft,
    refusal_of, too_contended,
};
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{Asynchrony, Decision, Reply, ResponseMode, Verb};
use crate::refusal::Refusal;
use crate::resources::{Detail, RequestBody};
use crate::service::Policy;
use sutler_journal::{Key, OperationId, Outcome};
use sutler_records::{OperationEnd, Resource, WaitResult};
use tokio::time::Instant;

const STILL_RUNS: &str = "The same request still runs; wait for it to end, then repeat, or send accepts_incomplete=true.";

/// A resource that decides the time limit of a waiting request.
pub(super) trait CanTimeOut: Resource {
    fn overdue(self, late: OperationId, cleanup: OperationId) -> Result<Decision<Self>, Refusal>;
}

impl CanTimeOut for Instance {
    fn overdue(
        self,
        operation: OperationId,
        cleanup: OperationId,
    ) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, instance::Event::Overdue { operation, cleanup })
    }
}

impl CanTimeOut for Binding {
    fn overdue(
        self,
        operation: OperationId,
        cleanup: OperationId,
    ) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, binding::Event::Overdue { operation, cleanup })
    }
}

impl RequestHandler {
    /// Replies to a committed change; a synchronous request waits for the end of its operation, within the time limit.
    pub(super) async fn respond<S: CanTimeOut>(
        &self,
        key: &Key,
        committed: CommittedDecision<S>,
        info: &RequestInfo,
        policy: &Policy,
        verb: Verb,
    ) -> Result<ChangeOutcome<S>, RequestError> {
        let CommittedDecision { decision, result } = committed;
        let (id, waits, mine) = match decision.reply {
            Reply::AlreadyDone | Reply::Nothing => {
                return Ok(ChangeOutcome::AlreadyDone(decision.next));
            }
            Reply::Started(id, mode) => (id, mode == ResponseMode::Inline, true),
            Reply::Joined(id) => (id, joiner_waits(info, policy), false),
        };
        if let Some(context) = &info.context {
            context.set_operation(id.0);
        }
        if !waits {
            return Ok(ChangeOutcome::Running(id, decision.next));
        }
        let documents = &self.realm_context.records;
        let deadline = Instant::now() + self.realm_context.settings.sync_wait;
        let waited = documents.wait_for_end(&self.engine, (key, id), result, deadline);
        let known = match waited.await {
            WaitResult::Ended { state, end } => {
                check_success(end, verb)?;
                state
            }
            WaitResult::Overdue if mine => {
                let stopped = self.give_up::<S>(key, id, info).await?;
                // An operation that could not be cancelled may have ended since the last check: then the
                // caller gets its result, not a timeout.
                match documents.end_of(key, id).await? {
                    Some(end) if !stopped => check_success(end, verb)?,
                    Some(_) | None => return Err(RequestError::Overdue { verb }),
                }
                None
            }
            WaitResult::Overdue => return Err(Refusal::Busy(STILL_RUNS).into()),
        };
        let state = match known {
            Some(state) => state,
            None => documents.load_changed::<S>(key).await?,
        };
        Ok(match mine {
            true => ChangeOutcome::Done(state),
            false => ChangeOutcome::AlreadyDone(state),
        })
    }

    /// Cancels an operation whose timeout is reported as a failure, so that it does not take effect later.
    /// Returns whether there was an operation to cancel.
    async fn give_up<S: CanTimeOut>(
        &self,
        key: &Key,
        late: OperationId,
        info: &RequestInfo,
    ) -> Result<bool, RequestError> {
        let draft = draft(
            RequestBody::Named("overdue"),
            &RequestInfo::broker(info.context.clone()),
        );
        for _ in 0..TRIES {
            let was = self.realm_context.records.load::<S>(key).await?;
            let decision = was.state.clone().overdue(late, OperationId::fresh())?;
            let stops = !decision.effects.is_empty();
            let committed = self
                .commit_and_start(key, &was, decision, &draft, None)
                .await?;
            if committed.is_some() {
                return Ok(stops);
            }
        }
        Err(too_contended())
    }
}

/// Whether a request that joins a running operation waits for its result. A plan that is always synchronous never
/// answers 202 (B-085), also because such a binding could not be fetched later (B-113).
fn joiner_waits(info: &RequestInfo, policy: &Policy) -> bool {
    !info.accepts_incomplete || policy.asynchrony == Asynchrony::Never
}

/// Fails with the stored result of an operation that did not succeed.
fn check_success(end: OperationEnd<Detail>, verb: Verb) -> Result<(), RequestError> {
    let detail = end.detail;
    match (end.outcome, detail.refused) {
        (Outcome::Succeeded, _) => Ok(()),
        (_, Some(as_)) => Err(RequestError::Refused(refusal_of(as_, &detail))),
        (_, None) => Err(RequestError::Failed { verb, detail }),
    }
}
