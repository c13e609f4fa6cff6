//! One claim of an intent of a binding: its turn, at most one exchange with the broker, and the answer.
//!
//! As `instance_run.rs`: the request is written down with the state *sending* before it is sent, and the answer with the
//! next state before anything else begins. `prepared_turn.rs` finds out what the turn depends on and builds the request,
//! `answer.rs` sends, polls and commits, `observation.rs` asks what the broker has, `bound_body.rs` judges what a broker
//! returned.
//!
//! If a broker takes one operation per instance at a time, a binding waits while one of its instance is in progress. An
//! instance does not look at its bindings: the broker refuses what comes too early, and it is sent again after a wait that
//! grows. So neither waits for the other without end.

mod answer;
mod bound_body;
mod observation;
mod prepared_turn;

use super::poll_times::ClaimLag;
use super::request_material::ReadSecrets;
use super::retry_wait::turn_wait;
use super::run_error::RunError;
use super::{NEWER_VERSION, Takeovers};
use crate::binding_changes::{after_commit, decide};
use crate::brokers::BrokerView;
use crate::context::{PlatformContext, journal_id};
use crate::lifecycle::binding::{
    Binding, BindingDecision, BindingEffect, BindingEventError, Event, IntentChange, PendingIntent,
    PreparedTurn,
};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::{CancelledBy, IntentEnd, IntentState};
use crate::records::Record;
use crate::writes::{BindingChange, NextClaim, OwnOperation, binding_commit};
use std::sync::Arc;
use std::time::Duration;
use sutler_client::PollSchedule;
use sutler_journal::{Commit, CommitRejectedError, Key, Lost, Run, RunResult, Version};
use sutler_records::LoadedDocument;

/// Steps of one claim, e.g. a turn after a takeover and the sending. More are never needed.
const STEPS_MAX: usize = 16;
/// The claim is given back, and wanted again at once.
const AT_ONCE: Duration = Duration::ZERO;
/// Why a bind waits for a person whose request cannot be written down.
const NO_ROOM: &str = "the request does not fit into one record with what the binding has already; make the parameters \
                       smaller";

/// The instance of a binding, and its broker.
#[derive(Clone)]
pub(super) struct BoundInstance {
    /// The instance as it was read last.
    instance: Instance,
    /// The broker.
    view: Arc<BrokerView>,
}

/// What follows from a committed decision.
pub(super) struct CommittedBindingDecision {
    /// The decision.
    decision: BindingDecision,
    /// The document as it was written.
    stored: LoadedDocument<Record<Binding>>,
}

/// One claim.
pub(super) struct BindingRun<'a> {
    context: &'a PlatformContext,
    run: &'a Run,
    key: Key,
    takeovers: Takeovers,
    own: OwnOperation,
    lag: ClaimLag,
    /// The secrets of the request that this turn has built.
    read_secrets: ReadSecrets,
}

/// Carries out one claim of an intent of a binding.
pub(super) async fn run_binding(
    context: &PlatformContext,
    run: &Run,
    takeovers: Takeovers,
) -> Result<RunResult, RunError> {
    let operation = run.operation();
    let documents = &context.records.documents;
    let progress = documents.open_progress(operation)?;
    let detail = documents.open_detail(run.id(), &operation.row.detail)?;
    let mut claim = BindingRun {
        context,
        run,
        key: operation.row.lane.clone(),
        takeovers,
        own: OwnOperation::claimed(run.id(), progress, detail),
        lag: ClaimLag::of_claim(&context.records, run),
        read_secrets: ReadSecrets::default(),
    };
    for _ in 0..STEPS_MAX {
        if let Some(result) = claim.step().await? {
            return Ok(result);
        }
    }
    Err(RunError::Contended)
}

impl BindingRun<'_> {
    /// One turn of the intent. `None`: the next step follows, on what is stored then.
    async fn step(&mut self) -> Result<Option<RunResult>, RunError> {
        let documents = &self.context.records.documents;
        let was = documents
            .load_for_run::<Record<Binding>>(self.run, &self.key)
            .await?;
        let binding = match &was.state {
            Record::Newer(_) => return Ok(Some(RunResult::Yield(NEWER_VERSION))),
            Record::Absent => return self.end_unknown().await,
            Record::Present(binding) => binding.as_ref().clone(),
        };
        let Some(intent) = self.own_intent(&binding).cloned() else {
            return self.end_unknown().await;
        };
        if binding.active() != Some(intent.number) {
            return self.wait_for_turn(&was).await;
        }
        let bound = self.bound_instance(&binding).await?;
        let turn = self.prepare(&binding, &intent, &bound).await?;
        let Some(committed) = self.commit_turn(&was, &intent, turn, &bound).await? else {
            return Ok(None);
        };
        if self.own.next != NextClaim::Held {
            return Ok(Some(self.own.result()));
        }
        self.act(committed, bound).await
    }

    fn own_intent<'b>(&self, binding: &'b Binding) -> Option<&'b PendingIntent> {
        let mut pending = binding.pending.iter();
        pending.find(|intent| journal_id(intent.operation) == self.own.id)
    }

    async fn bound_instance(&self, binding: &Binding) -> Result<BoundInstance, RunError> {
        let instance = match self.instance_of(binding).await? {
            Record::Present(instance) => *instance,
            Record::Newer(_) => return Err(RunError::NewerVersion),
            // Retention keeps the tombstone of an instance as long as it has bindings.
            Record::Absent => return Err(RunError::NoInstance),
        };
        let view = self.context.brokers.view(instance.broker).await?;
        Ok(BoundInstance { instance, view })
    }

    async fn instance_of(&self, binding: &Binding) -> Result<Record<Instance>, Lost> {
        let records = &self.context.records;
        let key = records.keys.instance(&binding.namespace, binding.instance);
        let found = records.documents.load_for_run(self.run, &key).await?;
        Ok(found.state)
    }

    /// Carries out what the turn asks for.
    async fn act(
        &mut self,
        committed: CommittedBindingDecision,
        bound: BoundInstance,
    ) -> Result<Option<RunResult>, RunError> {
        for effect in &committed.decision.effects {
            match effect {
                BindingEffect::Send => return self.send(&committed, bound).await.map(Some),
                BindingEffect::Look => return self.look(&committed, &bound).await,
                BindingEffect::Poll(number) => {
                    return self.poll(&committed, *number, bound).await.map(Some);
                }
                BindingEffect::Start(..)
                | BindingEffect::Wake(_)
                | BindingEffect::Suspend(_)
                | BindingEffect::End(..)
                | BindingEffect::DiscardRequest(_)
                | BindingEffect::PollAfter(_)
                | BindingEffect::TryAgainAfter(_)
                | BindingEffect::TryAgainNow
                | BindingEffect::RecordOrphan(_)
                | BindingEffect::TakeName(_)
                | BindingEffect::FreeName(_) => {}
            }
        }
        Ok(None)
    }

    /// Decides a turn and commits it. `None`: another writer was first, or the state has changed meanwhile.
    async fn commit_turn(
        &mut self,
        was: &LoadedDocument<Record<Binding>>,
        intent: &PendingIntent,
        turn: PreparedTurn,
        bound: &BoundInstance,
    ) -> Result<Option<CommittedBindingDecision>, RunError> {
        let event = Event::Turn(intent.number, turn);
        let own = self.own.clone();
        match self.commit(was, event, bound, own, self.turn_waits()).await {
            Err(RunError::TooLarge(_)) if is_unsent_bind(intent) => {
                self.own.forget_unwritten();
                let turn = PreparedTurn::Unfit(vec![NO_ROOM.to_owned()]);
                let event = Event::Turn(intent.number, turn);
                let own = self.own.clone();
                self.commit(was, event, bound, own, self.turn_waits()).await
            }
            committed => committed,
        }
    }

    /// When the operation is claimed again after a turn in which nothing was sent: the wait grows with the claims.
    fn turn_waits(&self) -> impl Fn(&BindingEffect) -> Option<NextClaim> + use<> {
        let wait = turn_wait(self.run.fence().0);
        move |effect| match effect {
            BindingEffect::TryAgainAfter(_) => Some(NextClaim::After(wait)),
            BindingEffect::TryAgainNow => Some(NextClaim::Held),
            BindingEffect::PollAfter(_) => Some(NextClaim::After(PollSchedule::default().first)),
            BindingEffect::Start(..)
            | BindingEffect::Wake(_)
            | BindingEffect::Suspend(_)
            | BindingEffect::End(..)
            | BindingEffect::DiscardRequest(_)
            | BindingEffect::Send
            | BindingEffect::Look
            | BindingEffect::Poll(_)
            | BindingEffect::RecordOrphan(_)
            | BindingEffect::TakeName(_)
            | BindingEffect::FreeName(_) => None,
        }
    }

    /// Decides an event and commits it with the own operation.
    async fn commit(
        &mut self,
        was: &LoadedDocument<Record<Binding>>,
        event: Event,
        bound: &BoundInstance,
        mut own: OwnOperation,
        waits: impl Fn(&BindingEffect) -> Option<NextClaim>,
    ) -> Result<Option<CommittedBindingDecision>, RunError> {
        let now = self.context.records.now();
        let binding = was.state.get().cloned();
        let decision = match decide(self.context, &bound.view, binding, event) {
            Ok(decision) => decision,
            Err(
                BindingEventError::OutOfDate
                | BindingEventError::NotFound
                | BindingEventError::Gone,
            ) => {
                self.own.forget_unwritten();
                return Ok(None);
            }
            Err(error) => {
                tracing::error!(operation.id = %self.run.id(), %error, "a turn was refused");
                return Err(RunError::Refused);
            }
        };
        if decision.effects.contains(&BindingEffect::Send)
            && let Some(intent) = self.own_intent(&decision.next)
            && let IntentState::Sending { attempt } = intent.state
        {
            own.progress.attempts.begin(attempt, now);
        }
        let change = BindingChange {
            context: self.context,
            key: &self.key,
            instance: &bound.instance,
            was,
            decision: &decision,
            now,
        };
        let commit = binding_commit(&change, Some(&mut own), waits).await?;
        let id = commit.id();
        let read_secrets = std::mem::take(&mut self.read_secrets);
        if !commit.writes().is_empty() {
            match self.run.commit(read_secrets.expect(commit)).await? {
                Ok(()) => {}
                Err(CommitRejectedError::Stale(_)) => {
                    self.own.forget_unwritten();
                    return Ok(None);
                }
                Err(CommitRejectedError::TooLarge(why)) => return Err(RunError::TooLarge(why)),
            }
        }
        own.written(self.run, &self.context.records);
        self.own = own;
        after_commit(self.context, &bound.instance, &decision).await;
        let version = match was.state.get() == Some(&decision.next) {
            true => was.version,
            false => Some(Version(id)),
        };
        let stored = LoadedDocument {
            state: Record::of(decision.next.clone()),
            version,
            ..LoadedDocument::absent()
        };
        Ok(Some(CommittedBindingDecision { decision, stored }))
    }

    /// The intent has no turn: its operation waits, unless the document has changed meanwhile.
    async fn wait_for_turn(
        &mut self,
        was: &LoadedDocument<Record<Binding>>,
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
        tracing::error!(operation.id = %self.run.id(), "the binding does not know this operation; it ends");
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
}

/// Whether an intent is a bind that waits to be sent.
fn is_unsent_bind(intent: &PendingIntent) -> bool {
    let is_queued = matches!(intent.state, IntentState::Queued { .. });
    match &intent.change {
        IntentChange::Bind(_) => is_queued,
        IntentChange::Unbind(_) | IntentChange::Delete => false,
    }
}
