//! One claim of an intent of an instance: its turn, at most one exchange with the broker, and the answer.
//!
//! The order is what makes a crash harmless: the request is written down with the state *sending* before it is sent, and
//! the answer with the next state before anything else begins. `prepared_request.rs` builds the request, `answer.rs` sends
//! and reads, `observation.rs` asks what the broker has, `bindings.rs` deletes bindings first and wakes waiting ones.

mod answer;
mod bindings;
mod observation;
mod prepared_request;

pub(super) use answer::{plan_ids, sources_of};
pub(crate) use bindings::bindings_of;

use super::poll_times::ClaimLag;
use super::request_material::ReadSecrets;
use super::retry_wait::retry_wait;
use super::run_error::RunError;
use super::{NEWER_VERSION, Takeovers};
use crate::brokers::BrokerView;
use crate::context::{PlatformContext, fresh_uuid, journal_id};
use crate::lifecycle::instance::{
    self, Context, Event, Instance, InstanceDecision, InstanceEffect, InstanceEventError, NewIds,
    OperationStart, PendingIntent, PreparedTurn,
};
use crate::lifecycle::intent::{CancelledBy, IntentEnd, IntentState, OperationId};
use crate::records::Record;
use crate::writes::{InstanceChange, NextClaim, OwnOperation, instance_commit};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::PollSchedule;
use sutler_journal::{Commit, CommitRejectedError, Key, Run, RunResult};
use sutler_osb::{InstanceId, PinnedPlan};
use sutler_records::LoadedDocument;

/// Steps of one claim, e.g. a turn after a takeover and the sending. More are never needed.
const STEPS_MAX: usize = 16;
/// Wait of a delete while its bindings are deleted, unless the last of them wakes it.
const BINDINGS_WAIT: Duration = Duration::from_secs(5);

/// What follows from a committed decision.
pub(super) struct CommittedInstanceDecision {
    /// The decision.
    decision: InstanceDecision,
    /// The document as it was written.
    stored: LoadedDocument<Record<Instance>>,
}

/// What of the past a commit keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeptHistory {
    /// All of it.
    All,
    /// What the rules need; there is no room for more.
    Essential,
}

/// One claim.
pub(super) struct InstanceRun<'a> {
    context: &'a PlatformContext,
    run: &'a Run,
    key: Key,
    takeovers: Takeovers,
    own: OwnOperation,
    lag: ClaimLag,
    /// The secrets of the request that this turn has built.
    read_secrets: ReadSecrets,
    history: KeptHistory,
}

/// Carries out one claim of an intent of an instance.
pub(super) async fn run_instance(
    context: &PlatformContext,
    run: &Run,
    takeovers: Takeovers,
) -> Result<RunResult, RunError> {
    let operation = run.operation();
    let documents = &context.records.documents;
    let progress = documents.open_progress(operation)?;
    let detail = documents.open_detail(run.id(), &operation.row.detail)?;
    let mut claim = InstanceRun {
        context,
        run,
        key: operation.row.lane.clone(),
        takeovers,
        own: OwnOperation::claimed(run.id(), progress, detail),
        lag: ClaimLag::of_claim(&context.records, run),
        read_secrets: ReadSecrets::default(),
        history: KeptHistory::All,
    };
    for _ in 0..STEPS_MAX {
        if let Some(result) = claim.step().await? {
            return Ok(result);
        }
    }
    Err(RunError::Contended)
}

impl InstanceRun<'_> {
    /// One turn of the intent. `None`: the next step follows, on what is stored then.
    async fn step(&mut self) -> Result<Option<RunResult>, RunError> {
        let documents = &self.context.records.documents;
        let was = documents
            .load_for_run::<Record<Instance>>(self.run, &self.key)
            .await?;
        let instance = match &was.state {
            Record::Newer(_) => return Ok(Some(RunResult::Yield(NEWER_VERSION))),
            Record::Absent => return self.end_unknown().await,
            Record::Present(instance) => instance.as_ref().clone(),
        };
        let Some(intent) = self.own_intent(&instance).cloned() else {
            return self.end_unknown().await;
        };
        if instance.active() != Some(intent.number) {
            return self.wait_for_turn(&was).await;
        }
        let view = self.context.brokers.view(instance.broker).await?;
        prepare_schemas(&instance, &view).await;
        let turn = match self.takeovers {
            Takeovers::Few => self.prepare(&instance, &intent, &view).await?,
            Takeovers::TooMany => PreparedTurn::TakenOverTooOften,
        };
        let event = Event::Turn(intent.number, turn);
        let Some(committed) = self.commit_turn(&was, event, &view).await? else {
            return Ok(None);
        };
        self.after_commit(&committed).await;
        if self.own.next != NextClaim::Held {
            return Ok(Some(self.released()));
        }
        self.act(committed, &view).await
    }

    fn own_intent<'i>(&self, instance: &'i Instance) -> Option<&'i PendingIntent> {
        let mut pending = instance.pending.iter();
        pending.find(|intent| journal_id(intent.operation) == self.own.id)
    }

    /// Carries out what the turn asks for.
    async fn act(
        &mut self,
        committed: CommittedInstanceDecision,
        view: &Arc<BrokerView>,
    ) -> Result<Option<RunResult>, RunError> {
        for effect in &committed.decision.effects {
            match effect {
                InstanceEffect::Send => return self.send(&committed, view).await.map(Some),
                InstanceEffect::Look => return self.look(&committed, view).await,
                InstanceEffect::Poll(number) => {
                    return self.poll(&committed, *number, view).await.map(Some);
                }
                InstanceEffect::Start(..)
                | InstanceEffect::Wake(_)
                | InstanceEffect::Suspend(_)
                | InstanceEffect::End(..)
                | InstanceEffect::PollAfter(_)
                | InstanceEffect::TryAgainAfter(_)
                | InstanceEffect::TryAgainNow
                | InstanceEffect::RecordOrphan(_)
                | InstanceEffect::TakeName(_)
                | InstanceEffect::FreeName(_)
                | InstanceEffect::WakeBindings
                | InstanceEffect::Unbind(_)
                | InstanceEffect::AbandonBindings(_)
                | InstanceEffect::Fetch => {}
            }
        }
        Ok(None)
    }

    /// Decides a turn and commits it. `None`: another writer was first, or the state has changed meanwhile.
    async fn commit_turn(
        &mut self,
        was: &LoadedDocument<Record<Instance>>,
        event: Event,
        view: &BrokerView,
    ) -> Result<Option<CommittedInstanceDecision>, RunError> {
        let mut own = self.own.clone();
        own.next = NextClaim::Held;
        let attempts = was.state.get().and_then(|it| self.own_intent(it));
        let attempts = attempts.map_or(0, |intent| intent.attempts);
        let run = self.run;
        let now = self.context.records.now();
        let waits = move |effect: &InstanceEffect| match effect {
            InstanceEffect::TryAgainAfter(after) => {
                let wait = retry_wait(attempts, *after, now.into(), run.id());
                Some(NextClaim::After(wait.max(BINDINGS_WAIT)))
            }
            InstanceEffect::TryAgainNow => Some(NextClaim::Held),
            InstanceEffect::PollAfter(_) => Some(NextClaim::After(PollSchedule::default().first)),
            _ => None,
        };
        match self
            .commit(was, event.clone(), view, own.clone(), waits)
            .await
        {
            Err(RunError::TooLarge(_)) if self.history == KeptHistory::All => {
                self.history = KeptHistory::Essential;
                self.commit(was, event, view, own, waits).await
            }
            committed => committed,
        }
    }

    /// Leaves out what there is no room for.
    fn shorten(&self, decision: &mut InstanceDecision, own: &mut OwnOperation) {
        if self.history == KeptHistory::Essential {
            decision.next.forget_history();
            own.progress.attempts.keep_last();
            own.detail.description = None;
        }
    }

    /// Decides an event and commits it with the own operation.
    async fn commit(
        &mut self,
        was: &LoadedDocument<Record<Instance>>,
        event: Event,
        view: &BrokerView,
        mut own: OwnOperation,
        waits: impl Fn(&InstanceEffect) -> Option<NextClaim>,
    ) -> Result<Option<CommittedInstanceDecision>, RunError> {
        let now = self.context.records.now();
        let instance = was.state.get().cloned();
        let mut decision = match decide(self.context, view, instance, event) {
            Ok(decision) => decision,
            Err(
                InstanceEventError::OutOfDate
                | InstanceEventError::NotFound
                | InstanceEventError::Gone,
            ) => return Ok(None),
            Err(error) => {
                tracing::error!(operation.id = %self.run.id(), %error, "a turn was refused");
                return Err(RunError::Refused);
            }
        };
        if sends(&decision)
            && let Some(intent) = self.own_intent(&decision.next)
            && let IntentState::Sending { attempt } = intent.state
        {
            own.progress.attempts.begin(attempt, now);
        }
        self.shorten(&mut decision, &mut own);
        let change = InstanceChange {
            context: self.context,
            broker: view,
            key: &self.key,
            was,
            decision: &decision,
            now,
        };
        let commit = instance_commit(&change, Some(&mut own), waits).await?;
        let id = commit.id();
        // Kept until the commit is made: a smaller one is tried if this one is too large.
        let read_secrets = self.read_secrets.clone();
        if !commit.writes().is_empty() {
            match self.run.commit(read_secrets.expect(commit)).await? {
                Ok(()) => {}
                Err(CommitRejectedError::Stale(_)) => {
                    self.read_secrets = ReadSecrets::default();
                    self.own.forget_unwritten();
                    return Ok(None);
                }
                Err(CommitRejectedError::TooLarge(why)) => return Err(RunError::TooLarge(why)),
            }
        }
        self.read_secrets = ReadSecrets::default();
        own.written(self.run, &self.context.records);
        self.own = own;
        let version = match was.state.get() == Some(&decision.next) {
            true => was.version,
            false => Some(sutler_journal::Version(id)),
        };
        let stored = LoadedDocument {
            state: Record::of(decision.next.clone()),
            version,
            ..LoadedDocument::absent()
        };
        Ok(Some(CommittedInstanceDecision { decision, stored }))
    }

    /// How the engine goes on after a commit that gave the claim back.
    fn released(&self) -> RunResult {
        self.own.result()
    }

    /// The intent has no turn: its operation waits, unless the document has changed meanwhile.
    async fn wait_for_turn(
        &mut self,
        was: &LoadedDocument<Record<Instance>>,
    ) -> Result<Option<RunResult>, RunError> {
        let Some(version) = was.version else {
            return Ok(None);
        };
        let mut own = self.own.clone();
        own.next = NextClaim::Waiting;
        let commit = Commit::new().unchanged(self.key.clone(), version);
        let commit = own.add_to(commit, &self.context.records);
        match self.run.commit(commit).await? {
            Ok(()) => Ok(Some(RunResult::Released(None))),
            Err(_) => Ok(None),
        }
    }

    /// The document does not know the operation: nothing waits for it.
    async fn end_unknown(&mut self) -> Result<Option<RunResult>, RunError> {
        tracing::error!(operation.id = %self.run.id(), "the instance does not know this operation; it ends");
        let mut own = self.own.clone();
        own.next = NextClaim::Ended(IntentEnd::Cancelled(
            CancelledBy::Delete(Default::default()),
        ));
        let commit = own.add_to(Commit::new(), &self.context.records);
        match self.run.commit(commit).await? {
            Ok(()) => Ok(Some(RunResult::Finished)),
            Err(_) => Ok(None),
        }
    }

    /// What follows from a commit in other lanes, and for callers that wait.
    async fn after_commit(&self, committed: &CommittedInstanceDecision) {
        after_commit(self.context, &committed.decision).await;
    }
}

/// Compiles the schemas that the turn of an intent may need.
async fn prepare_schemas(instance: &Instance, view: &BrokerView) {
    let patches = instance.pending.iter().filter_map(|it| it.change.patch());
    let wanted = patches.filter_map(|it| it.plan.as_ref());
    let plans: BTreeSet<_> = wanted.chain([&instance.basis.spec().plan]).collect();
    for plan in plans {
        view.catalog.prepare_schemas(&instance.service, plan).await;
    }
}

fn sends(decision: &InstanceDecision) -> bool {
    decision.effects.contains(&InstanceEffect::Send)
}

/// What follows from a committed decision in other lanes, and for callers that wait. None of it is lost by a crash:
/// bindings read the instance again within a minute, and callers within half a second.
pub(crate) async fn after_commit(context: &PlatformContext, decision: &InstanceDecision) {
    for effect in &decision.effects {
        match effect {
            InstanceEffect::End(operation, _) => context.waiters.ended(journal_id(*operation)),
            InstanceEffect::Start(_, OperationStart::Ready) | InstanceEffect::Wake(_) => {
                context.brokers.operation_is_ready(decision.next.broker);
            }
            InstanceEffect::WakeBindings => {
                bindings::wake_waiting(context, &decision.next).await;
            }
            InstanceEffect::Unbind(by) => {
                bindings::unbind_all(context, &decision.next, by).await;
            }
            InstanceEffect::Start(_, OperationStart::Waiting)
            | InstanceEffect::Suspend(_)
            | InstanceEffect::Send
            | InstanceEffect::Look
            | InstanceEffect::Poll(_)
            | InstanceEffect::PollAfter(_)
            | InstanceEffect::TryAgainAfter(_)
            | InstanceEffect::TryAgainNow
            | InstanceEffect::RecordOrphan(_)
            | InstanceEffect::TakeName(_)
            | InstanceEffect::FreeName(_)
            | InstanceEffect::AbandonBindings(_)
            | InstanceEffect::Fetch => {}
        }
    }
}

/// Asks the rules what follows from an event.
pub(crate) fn decide(
    context: &PlatformContext,
    view: &BrokerView,
    instance: Option<Instance>,
    event: Event,
) -> Result<InstanceDecision, InstanceEventError> {
    let plan = instance.as_ref().and_then(|it| plan_of(view, it));
    let policy = view.instance_policy(plan.as_deref(), context.lease);
    let service = instance.as_ref().map(|it| it.service.clone());
    let service = service.or_else(|| requested_service(&event));
    let osb_id = InstanceId::try_from(fresh_uuid().to_string());
    let decision_context = Context {
        now: context.records.now(),
        ids: NewIds {
            operation: OperationId(fresh_uuid()),
            uid: fresh_uuid(),
            osb_id: osb_id.expect("a UUID is a valid id"),
        },
        policy: &policy,
        fits: &|spec| {
            service
                .as_ref()
                .is_none_or(|it| view.catalog.fits(it, spec))
        },
    };
    instance::decide(instance, event, &decision_context)
}

/// The plan that the instance has, or that its create asks for.
pub(crate) fn plan_of(view: &BrokerView, instance: &Instance) -> Option<Arc<PinnedPlan>> {
    let plan = &instance.basis.spec().plan;
    view.catalog.plan(&instance.service, plan)
}

fn requested_service(event: &Event) -> Option<sutler_osb::ServiceId> {
    use instance::InstanceCommand::{Adopt, Create};
    match event {
        Event::Command(command) => match command.as_ref() {
            Create(request) | Adopt(request) => Some(request.service.clone()),
            _ => None,
        },
        Event::Turn(..) | Event::Answer(..) | Event::OrphanSettled(..) | Event::Fetched(_) => None,
    }
}
