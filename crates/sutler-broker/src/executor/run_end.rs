//! The end of a run of an instance or a binding: its meaning, its log lines, and waking the instance.
//!
//! The commit is made by `sutler_records`; the meaning of an end is decided by `lifecycle/`.

use super::{BrokerExecutor, instance_id};
use crate::audit::audit_enabled;
use crate::lifecycle::binding::{self, Binding};
use crate::lifecycle::instance::{self, Instance};
use crate::lifecycle::{Decision, End, Reply, Verb};
use crate::operation_log;
use crate::resources::{BINDING, Detail, Request, ResourceKeys as _};
use sutler_journal::{
    Commit, CommitSizeError, Lost, OperationId, Outcome, Queue, Run, RunResult, Write,
};
use sutler_records::{EndContext, EndResult, EndedResource, RunEnd};

impl EndedResource for Instance {
    type Verb = Verb;
    type Reply = Reply;
    type Output = instance::HookOutput;

    fn ended(self, operation: OperationId, end: End<Self::Output>) -> Option<Decision<Self>> {
        instance::decide(self, instance::Event::Ended { operation, end }).ok()
    }

    fn is_halted(&self, id: OperationId) -> bool {
        match self {
            Self::Deleting { pending_create, .. } => *pending_create == Some(id),
            Self::Updating {
                data: instance_data,
                given_up,
                ..
            } => *given_up && instance_data.last == id,
            Self::Absent
            | Self::Creating { .. }
            | Self::CreateFailed { .. }
            | Self::Live { .. }
            | Self::Gone { .. } => false,
        }
    }
}

impl EndedResource for Binding {
    type Verb = Verb;
    type Reply = Reply;
    type Output = binding::HookOutput;

    fn ended(self, operation: OperationId, end: End<Self::Output>) -> Option<Decision<Self>> {
        binding::decide(self, binding::Event::Ended { operation, end }).ok()
    }

    fn is_halted(&self, id: OperationId) -> bool {
        matches!(self, Self::Deleting { pending_create, .. } if *pending_create == Some(id))
    }
}

impl EndContext<Verb, Detail> for BrokerExecutor {
    fn queue(&self) -> &Queue {
        &self.0.queue
    }

    fn verb_name(&self, verb: Verb) -> &'static str {
        verb.word()
    }

    fn too_large(&self, run: &Run, why: CommitSizeError) -> Detail {
        tracing::error!(operation.id = %run.id(), error = %why, "the result cannot be kept");
        let message = "The result of the operation is too large to be kept.";
        Detail {
            description: Some(message.to_owned()),
            ..Detail::default()
        }
    }

    /// Wakes an update or a deprovision of the instance that may wait for this binding.
    async fn extend(&self, commit: Commit, run: &Run) -> Result<Commit, Lost> {
        let lane = &run.operation().row.lane;
        if lane.kind() != BINDING.as_str() {
            return Ok(commit);
        }
        let key = self.0.records.instance_key(&instance_id(lane));
        let above = self.0.records.load_for_run::<Instance>(run, &key).await?;
        Ok(match above.state.awaits_bindings() {
            Some(waiting) => commit.write(Write::Wake(waiting)),
            None => commit,
        })
    }

    /// Log line, metrics and audit of an end. Only the audit needs the request.
    fn committed(&self, run: &Run, outcome: Outcome) {
        let Some(verb) = Verb::of(&run.operation().row.verb) else {
            return;
        };
        let open = || self.0.records.open_request::<Request>(run.operation()).ok();
        let request = audit_enabled().then(open).flatten();
        operation_log::ended(run, verb, outcome, request.as_ref());
    }
}

impl BrokerExecutor {
    /// Commits the end of an operation together with its resource's next state.
    pub(super) async fn conclude<S>(&self, run: &Run, end: RunEnd<S, Detail>) -> Result<(), Lost>
    where
        S: EndedResource<Verb = Verb> + Sync,
    {
        match self.0.records.commit_end(run, end, self).await? {
            EndResult::Committed => Ok(()),
            EndResult::Orphaned => self.end_orphaned(run).await.map(|_| ()),
        }
    }

    /// Ends an operation that its resource does not know: purged, or imported without it.
    pub(super) async fn end_orphaned(&self, run: &Run) -> Result<RunResult, Lost> {
        let message = "The resource of this operation is gone.".to_owned();
        let detail = Detail {
            description: Some(message),
            ..Detail::default()
        };
        self.0.records.end_orphaned(run, &detail).await?;
        self.committed(run, Outcome::Cancelled);
        Ok(RunResult::Finished)
    }
}
