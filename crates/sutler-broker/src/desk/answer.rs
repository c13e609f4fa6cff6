//! The answer to a change: at once, with 202, or with the result, for instances and bindings alike.

use super::wait::Waited;
use super::{Asker, Changed, CommittedDecision, Desk, Problem, TRIES, crowded, draft};
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{Asynchrony, Decision, Pace, Reply, Verb};
use crate::refusal::Refusal;
use crate::service::Policy;
use sutler_journal::{Key, OperationId};
use sutler_records::Resource;

const STILL_RUNS: &str = "The same request still runs; wait for it to end, then repeat, or send accepts_incomplete=true.";

/// A resource whose caller may have waited as long as it may.
pub(super) trait Awaited: Resource {
    fn overdue(self, late: OperationId, cleanup: OperationId) -> Result<Decision<Self>, Refusal>;
}

impl Awaited for Instance {
    fn overdue(
        self,
        operation: OperationId,
        cleanup: OperationId,
    ) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, instance::Event::Overdue { operation, cleanup })
    }
}

impl Awaited for Binding {
    fn overdue(
        self,
        operation: OperationId,
        cleanup: OperationId,
    ) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, binding::Event::Overdue { operation, cleanup })
    }
}

impl Desk {
    pub(super) async fn answer<S: Awaited>(
        &self,
        key: &Key,
        committed: CommittedDecision<S>,
        asker: &Asker,
        policy: &Policy,
        verb: Verb,
    ) -> Result<Changed<S>, Problem> {
        let CommittedDecision {
            state,
            reply,
            result,
        } = committed;
        let (id, waits, mine) = match reply {
            Reply::AlreadyDone | Reply::Nothing => return Ok(Changed::AlreadyDone(state)),
            Reply::Started(id, pace) => (id, pace == Pace::Inline, true),
            Reply::Joined(id) => (id, joiner_waits(asker, policy), false),
        };
        if let Some(context) = &asker.context {
            context.set_operation(id.0);
        }
        if !waits {
            return Ok(Changed::Running(id, state));
        }
        let known = match self.wait_for(key, id, result, verb).await? {
            Waited::Succeeded(known) => known,
            Waited::Overdue if mine => {
                let stopped = self.give_up::<S>(key, id, asker).await?;
                // What could not be stopped may have ended between the last look and now: its
                // caller must hear that, and not that nothing came of it.
                match self.result_of(key, id, verb).await? {
                    Some(ended) if !stopped => ended.map(|()| None)?,
                    Some(_) | None => return Err(Problem::Overdue { verb }),
                }
            }
            Waited::Overdue => return Err(Refusal::Busy(STILL_RUNS).into()),
        };
        let state = match known {
            Some(state) => state,
            None => self.stock.records.load_changed::<S>(key).await?,
        };
        Ok(if mine {
            Changed::Done(state)
        } else {
            Changed::AlreadyDone(state)
        })
    }

    /// The caller is told it failed: what it asked for must not come true later. Says whether there
    /// was anything to stop.
    async fn give_up<S: Awaited>(
        &self,
        key: &Key,
        late: OperationId,
        asker: &Asker,
    ) -> Result<bool, Problem> {
        let draft = draft(&"overdue", &Asker::broker(asker.context.clone()));
        for _ in 0..TRIES {
            let was = self.stock.records.load::<S>(key).await?;
            let decision = was.state.clone().overdue(late, OperationId::fresh())?;
            let stops = !decision.effects.is_empty();
            let committed = self
                .commit_decision(key, &was, decision, &draft, None)
                .await?;
            if committed.is_some() {
                return Ok(stops);
            }
        }
        Err(crowded())
    }
}

/// Whether one who asks for what already runs is answered with its result. What always works at once
/// never answers 202 (B-085), also because nobody could fetch such a binding later (B-113).
fn joiner_waits(asker: &Asker, policy: &Policy) -> bool {
    !asker.accepts_incomplete || policy.asynchrony == Asynchrony::Never
}
