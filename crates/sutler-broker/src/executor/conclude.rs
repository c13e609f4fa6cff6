//! The end of a run: its result and the resource's next state, in one commit.
//!
//! What the end means is decided by `lifecycle/`; if somebody wrote first, it is decided again.

use super::{BrokerExecutor, instance_id};
use crate::audit::audits;
use crate::handover::{Concluded, Conclusion};
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{Decision, Effect, End, Verb};
use crate::operation_log;
use crate::records::{BINDING, Detail, Kept};
use crate::refusal::Refusal;
use sutler_journal::{
    Commit, CommitRejected, CommitSizeError, Key, Lost, Next, OperationId, Outcome, Run, RunResult,
    Write,
};

/// A resource whose operations end.
pub(super) trait Ends: Kept {
    /// What comes of a run.
    type Made: Clone + Send;
    fn ended(self, id: OperationId, end: End<Self::Made>) -> Result<Decision<Self>, Refusal>;
    /// Whether the operation was given up while it ran: then it did not succeed, whatever it says.
    fn is_halted(&self, id: OperationId) -> bool;
}

impl Ends for Instance {
    type Made = instance::Made;

    fn ended(
        self,
        operation: OperationId,
        end: End<Self::Made>,
    ) -> Result<Decision<Self>, Refusal> {
        instance::decide(self, instance::Event::Ended { operation, end })
    }

    fn is_halted(&self, id: OperationId) -> bool {
        match self {
            Self::Deleting { over, .. } => *over == Some(id),
            Self::Updating {
                thing, given_up, ..
            } => *given_up && thing.last == id,
            Self::Absent
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Gone { .. } => false,
        }
    }
}

impl Ends for Binding {
    type Made = binding::Made;

    fn ended(
        self,
        operation: OperationId,
        end: End<Self::Made>,
    ) -> Result<Decision<Self>, Refusal> {
        binding::decide(self, binding::Event::Ended { operation, end })
    }

    fn is_halted(&self, id: OperationId) -> bool {
        matches!(self, Self::Deleting { over, .. } if *over == Some(id))
    }
}

impl BrokerExecutor {
    /// Commits the end of an operation together with its resource's next state, and tells whoever
    /// waits for it in this process.
    pub(super) async fn conclude<S: Ends>(
        &self,
        run: &Run,
        conclusion: Conclusion<S, S::Made>,
    ) -> Result<(), Lost> {
        let Conclusion {
            mut end,
            mut detail,
            mut was,
            result,
        } = conclusion;
        let records = &self.0.records;
        let lane = &run.operation().row.lane;
        loop {
            let was = match was.take() {
                Some(was) => was,
                None => records.load_for_run::<S>(run, lane).await?,
            };
            let Ok(decision) = was.state.clone().ended(run.id(), end.clone()) else {
                return self.end_orphaned(run).await.map(|_| ());
            };
            let outcome = outcome_of(&end, was.state.is_halted(run.id()));
            let commit = records.put(Commit::new(), lane, &was, &decision.next);
            let commit = self.ending(commit, run, outcome, &detail, &decision);
            let commit = self.waking_the_instance(commit, run, lane).await?;
            match run.commit(commit).await? {
                Ok(()) => {
                    self.tell_end(run, outcome);
                    let state = decision.next;
                    let concluded = Concluded {
                        state,
                        outcome,
                        detail,
                    };
                    // A caller that went away cancels nothing and misses nothing.
                    result.map(|result| result.send(concluded));
                    return Ok(());
                }
                Err(CommitRejected::Stale(_)) => {}
                Err(CommitRejected::TooLarge(why)) => {
                    (end, detail) = (End::Failed, too_large(run, why))
                }
            }
        }
    }

    /// The line, the numbers and the audit of an end. Only the audit needs to know who asked.
    fn tell_end(&self, run: &Run, outcome: Outcome) {
        let Some(verb) = Verb::of(&run.operation().row.verb) else {
            return;
        };
        let request = audits().then(|| self.0.records.open_request(run.operation()));
        operation_log::ended(run, verb, outcome, request.and_then(Result::ok).as_ref());
    }

    /// Whoever wants the instance alone may be waiting for this binding.
    async fn waking_the_instance(
        &self,
        commit: Commit,
        run: &Run,
        lane: &Key,
    ) -> Result<Commit, Lost> {
        if lane.kind() != BINDING.as_str() {
            return Ok(commit);
        }
        let key = self.0.records.instance_key(&instance_id(lane));
        let above = self.0.records.load_for_run::<Instance>(run, &key).await?;
        Ok(match &above.state {
            Instance::Updating { thing, .. } | Instance::Deleting { thing, .. } => {
                commit.write(Write::Wake(thing.last))
            }
            Instance::Absent
            | Instance::Creating { .. }
            | Instance::CreateFailed { .. }
            | Instance::Live { .. }
            | Instance::Gone { .. } => commit,
        })
    }

    fn ending<S>(
        &self,
        commit: Commit,
        run: &Run,
        outcome: Outcome,
        detail: &Detail,
        decision: &Decision<S>,
    ) -> Commit {
        let sealed = self.0.records.seal_detail(run.id(), detail);
        let commit = commit.advance(run.id(), Next::Done(outcome), Some(sealed), None);
        decision
            .effects
            .iter()
            .fold(commit, |commit, effect| match effect {
                Effect::Wake(id) => commit.write(Write::Wake(*id)),
                Effect::Cancel(id) => commit.write(Write::Cancel(*id)),
                // The end of a run starts nothing, and ends nothing but itself.
                Effect::Start(..) | Effect::StartWaiting(..) | Effect::End(_) => commit,
            })
    }

    /// Ends an operation whose resource does not know it: purged, or imported half.
    pub(super) async fn end_orphaned(&self, run: &Run) -> Result<RunResult, Lost> {
        let message = "The resource of this operation is gone.".to_owned();
        let detail = Detail {
            description: Some(message),
            ..Detail::default()
        };
        let sealed = self.0.records.seal_detail(run.id(), &detail);
        let commit = Commit::new()
            .advance(run.id(), Next::Done(Outcome::Cancelled), Some(sealed), None)
            .write(Write::Unpin(run.id()));
        run.commit(commit).await?.map_err(|_| Lost)?;
        self.tell_end(run, Outcome::Cancelled);
        Ok(RunResult::Finished)
    }
}

/// No store would take the result: the operation fails, rather than being tried for ever.
fn too_large(run: &Run, why: CommitSizeError) -> Detail {
    tracing::error!(operation.id = %run.id(), error = %why, "the result cannot be kept");
    let message = "The result of the operation is too large to be kept.";
    Detail {
        description: Some(message.to_owned()),
        ..Detail::default()
    }
}

/// A create that was halted, or an update that was given up, did not succeed, whatever its hook
/// says.
fn outcome_of<T>(end: &End<T>, halted: bool) -> Outcome {
    match end {
        End::Succeeded(_) | End::Failed | End::Refused if halted => Outcome::Cancelled,
        End::Succeeded(_) => Outcome::Succeeded,
        End::Failed | End::Refused => Outcome::Failed,
    }
}
