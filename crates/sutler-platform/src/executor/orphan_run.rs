//! One claim of the deletion of an orphan: its turn, at most one exchange with the broker, and the answer.
//!
//! The lane is the row of the ledger, so an instance is never occupied by it. Requests have no originating identity
//! (P-010), and none is written down: the row says what is deleted, so the bytes are always the same.
//!
//! What waits for the orphan is notified after the commit that settles it, in a commit of its own. If the process ends
//! between the two, `periodic/settled_orphans.rs` finds the document that still waits, and what it waits for.

use super::NEWER_VERSION;
use super::answer_commits::AnswerCommits;
use super::broker_answer::meaning_of;
use super::exchange::{BrokerImpression, Exchange};
use super::poll_times::{ClaimLag, PollTimes};
use super::run_error::RunError;
use super::sent_secrets::{SentSecrets, has_words};
use crate::brokers::BrokerView;
use crate::context::PlatformContext;
use crate::lifecycle::intent::{BrokerStatement, CancelledBy, IntentEnd};
use crate::lifecycle::orphan::{
    self, DeleteStage, OperatorReason, Orphan, OrphanDecision, OrphanEffect, OrphanEvent,
    OrphanState,
};
use crate::metrics;
use crate::orphan_events::notify_waiting;
use crate::records::{OrphanRecord, Record};
use crate::writes::{NextClaim, OwnOperation, put_orphan};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::Request;
use sutler_client::{Meaning, OperationEvent, PollUpdate, RequestBuilder, classify, decode};
use sutler_journal::{Commit, CommitRejectedError, Key, Lost, Run, RunResult};
use sutler_osb::{DeleteResponse, PinnedPlan};
use sutler_records::LoadedDocument;

/// Target of the log lines that call an operator.
pub(super) const ALERT_TARGET: &str = "sutler_platform::orphans";

/// Steps of one claim: more than one only if other writers are first.
const STEPS_MAX: usize = 16;

/// One claim.
struct OrphanRun<'a> {
    context: &'a PlatformContext,
    run: &'a Run,
    key: Key,
    own: OwnOperation,
    lag: ClaimLag,
    /// Whether the broker may have got values of secrets.
    has_secrets: bool,
}

/// Carries out one claim of the deletion of an orphan.
pub(super) async fn run_orphan(
    context: &PlatformContext,
    run: &Run,
) -> Result<RunResult, RunError> {
    let operation = run.operation();
    let documents = &context.records.documents;
    let progress = documents.open_progress(operation)?;
    let detail = documents.open_detail(run.id(), &operation.row.detail)?;
    let mut claim = OrphanRun {
        context,
        run,
        key: operation.row.lane.clone(),
        own: OwnOperation::claimed(run.id(), progress, detail),
        lag: ClaimLag::of_claim(&context.records, run),
        has_secrets: false,
    };
    for _ in 0..STEPS_MAX {
        if let Some(result) = claim.step().await? {
            return Ok(result);
        }
    }
    Err(RunError::Contended)
}

impl OrphanRun<'_> {
    /// The turn of the row. `None`: another writer was first.
    async fn step(&mut self) -> Result<Option<RunResult>, RunError> {
        let was = self.load().await?;
        let record = match &was.state {
            Record::Newer(_) => return Ok(Some(RunResult::Yield(NEWER_VERSION))),
            Record::Absent => return self.end_unknown().await,
            Record::Present(record) => record.as_ref().clone(),
        };
        if record.operation != Some(self.run.id()) {
            return self.end_unknown().await;
        }
        self.has_secrets = record.has_secrets;
        let view = self.context.brokers.view(record.orphan.key.broker).await?;
        let event = match self.run.operation().row.takeovers {
            0 => OrphanEvent::Turn,
            _ => OrphanEvent::TakenOver,
        };
        let own = self.own.clone();
        let Some(decision) = self.commit(&was, record, event, own, &view).await? else {
            return Ok(None);
        };
        let row = &decision.next;
        for effect in &decision.effects {
            match effect {
                OrphanEffect::Send => return self.send(row, view).await.map(Some),
                OrphanEffect::Poll => return self.poll(row, view).await.map(Some),
                OrphanEffect::Start(_)
                | OrphanEffect::PollAfter(_)
                | OrphanEffect::AgainAfter(_)
                | OrphanEffect::End
                | OrphanEffect::NotifyInstance(..)
                | OrphanEffect::Alert(_) => {}
            }
        }
        Ok(Some(self.own.result()))
    }

    async fn load(&self) -> Result<LoadedDocument<Record<OrphanRecord>>, Lost> {
        let documents = &self.context.records.documents;
        documents.load_for_run(self.run, &self.key).await
    }

    async fn send(&mut self, row: &Orphan, view: Arc<BrokerView>) -> Result<RunResult, RunError> {
        let now = self.context.records.now();
        let request = delete_request(&self.builder(), row);
        let exchange = Exchange::with(&view, &request, now).await;
        let plan = plan_of(&view, row);
        let context = view.reply_context(plan.as_deref());
        let reply = decode::delete(exchange.answer);
        let kind = row.key.kind();
        let (meaning, impression) = meaning_of(kind, exchange.begun, reply, &context);
        self.answered(meaning, impression, &view).await
    }

    async fn poll(&mut self, row: &Orphan, view: Arc<BrokerView>) -> Result<RunResult, RunError> {
        let now = self.context.records.now();
        let operation = row.delete_operation(self.own.progress.token.clone());
        let request = self.builder().poll(&operation);
        let exchange = Exchange::with(&view, &request, now).await;
        let reply = decode::poll(exchange.answer);
        let impression = BrokerImpression::of(exchange.begun, &reply);
        let plan = plan_of(&view, row);
        let context = view.reply_context(plan.as_deref());
        let meaning = classify(operation.kind(), OperationEvent::Poll(reply), &context);
        let impression = impression.with_event(meaning.event());
        let meaning = match meaning {
            Meaning::Polling { .. } if self.poll_times(row, &view).is_over() => {
                classify(operation.kind(), OperationEvent::Overdue, &context)
            }
            meaning => meaning,
        };
        self.answered(meaning, impression, &view).await
    }

    /// The builder of its requests: with the id of the operation, without an originating identity.
    fn builder(&self) -> RequestBuilder {
        RequestBuilder::from_uuid(self.run.id().0)
    }

    /// Commits what an answer means, then says of the broker what the exchange showed.
    async fn answered(
        &mut self,
        meaning: Meaning<DeleteResponse>,
        impression: BrokerImpression,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let meaning = self.without_secrets(meaning);
        let result = self.commit_answer(meaning, view).await;
        let BrokerImpression {
            begun,
            outcome,
            event,
        } = impression;
        let broker = view.registration.uid;
        let brokers = &self.context.brokers;
        brokers.exchange_ended(broker, begun, outcome, event).await;
        result
    }

    /// An answer without words of a broker that may have got values of secrets for what became the orphan.
    fn without_secrets(&self, meaning: Meaning<DeleteResponse>) -> Meaning<DeleteResponse> {
        match self.has_secrets && has_words(&meaning) {
            true => SentSecrets::Unknown.hidden_in(meaning),
            false => meaning,
        }
    }

    async fn commit_answer(
        &mut self,
        meaning: Meaning<DeleteResponse>,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let mut tries = AnswerCommits::within(self.context.lease);
        loop {
            let was = self.load().await?;
            let record = match &was.state {
                Record::Newer(_) => return Err(RunError::NewerVersion),
                Record::Absent => return Err(RunError::Lost(Lost)),
                Record::Present(record) => record.as_ref().clone(),
            };
            if record.operation != Some(self.run.id()) {
                // Another commit ended the operation.
                return Err(RunError::Lost(Lost));
            }
            let mut own = self.own.clone();
            own.next = NextClaim::After(Duration::ZERO);
            if let Meaning::Polling {
                update: PollUpdate::Accepted(accepted),
                ..
            } = &meaning
            {
                own.progress.token = accepted.operation.clone();
                own.progress.accepted_at = self.run.fence().0;
            }
            let event = OrphanEvent::Answer(Box::new(meaning.clone()));
            let error = match self.commit(&was, record, event, own, view).await {
                Ok(Some(_)) => return Ok(self.own.result()),
                Ok(None) => RunError::Contended,
                Err(error) => error,
            };
            tries.again(self.run.lost(), error).await?;
        }
    }

    /// Decides an event and commits it with the own operation, then says so to whom it concerns. `None`: another writer was
    /// first, or the state has changed meanwhile.
    async fn commit(
        &mut self,
        was: &LoadedDocument<Record<OrphanRecord>>,
        mut record: OrphanRecord,
        event: OrphanEvent,
        mut own: OwnOperation,
        view: &BrokerView,
    ) -> Result<Option<OrphanDecision>, RunError> {
        let records = &self.context.records;
        let row = Some(record.orphan.clone());
        let Ok(decision) = orphan::decide(row, event, records.now()) else {
            return Ok(None);
        };
        record.orphan = decision.next.clone();
        for effect in &decision.effects {
            match effect {
                OrphanEffect::AgainAfter(wait) => own.next = NextClaim::After(*wait),
                OrphanEffect::PollAfter(after) => {
                    let times = self.poll_times(&decision.next, view);
                    own.next = NextClaim::After(times.wait(*after));
                }
                OrphanEffect::End => {
                    own.next = NextClaim::Ended(end_of(&decision.next.state));
                    record.operation = None;
                }
                OrphanEffect::Send | OrphanEffect::Poll => own.next = NextClaim::Held,
                OrphanEffect::Start(_)
                | OrphanEffect::NotifyInstance(..)
                | OrphanEffect::Alert(_) => {}
            }
        }
        let commit = match was.state.get() == Some(&record) {
            true => Commit::new(),
            false => put_orphan(records, Commit::new(), was, record),
        };
        let commit = own.add_to(commit, records);
        if !commit.writes().is_empty() {
            match self.run.commit(commit).await? {
                Ok(()) => {}
                Err(CommitRejectedError::Stale(_)) => return Ok(None),
                Err(CommitRejectedError::TooLarge(why)) => return Err(RunError::TooLarge(why)),
            }
        }
        own.written(self.run, &self.context.records);
        self.own = own;
        self.after_commit(&decision).await;
        Ok(Some(decision))
    }

    async fn after_commit(&self, decision: &OrphanDecision) {
        for effect in &decision.effects {
            match effect {
                OrphanEffect::NotifyInstance(waiting, result) => {
                    notify_waiting(self.context, &decision.next.key, waiting, *result).await;
                }
                OrphanEffect::Alert(reason) => alert(&decision.next, *reason),
                OrphanEffect::Start(_)
                | OrphanEffect::Send
                | OrphanEffect::Poll
                | OrphanEffect::PollAfter(_)
                | OrphanEffect::AgainAfter(_)
                | OrphanEffect::End => {}
            }
        }
    }

    fn poll_times(&self, row: &Orphan, view: &BrokerView) -> PollTimes {
        let plan = plan_of(view, row);
        let accepted_at = self.own.progress.accepted_at;
        let at = (view, plan.as_deref());
        let records = &self.context.records;
        let claim = (self.run, self.lag);
        PollTimes::of(records, claim, at, polled_since(&row.state), accepted_at)
    }

    /// The row does not know the operation: another one deletes the orphan, or none does.
    async fn end_unknown(&mut self) -> Result<Option<RunResult>, RunError> {
        tracing::error!(operation.id = %self.run.id(), "the orphan does not know this operation; it ends");
        let mut own = self.own.clone();
        own.next = NextClaim::Ended(cancelled());
        let commit = own.add_to(Commit::new(), &self.context.records);
        match self.run.commit(commit).await? {
            Ok(()) => Ok(Some(RunResult::Finished)),
            Err(_) => Ok(None),
        }
    }
}

/// The request that deletes an orphan.
fn delete_request(builder: &RequestBuilder, row: &Orphan) -> Request {
    let offered = row.offered();
    match &row.key.binding {
        None => builder.deprovision(&row.key.instance, &offered),
        Some(binding) => builder.unbind(&row.key.instance, binding, &offered),
    }
}

fn plan_of(view: &BrokerView, row: &Orphan) -> Option<Arc<PinnedPlan>> {
    view.catalog.plan(&row.service_id, &row.plan_id)
}

/// Since when the broker has worked on a DELETE, if it does.
fn polled_since(state: &OrphanState) -> Option<Timestamp> {
    match state {
        OrphanState::InFlight {
            stage: DeleteStage::Polling { since },
            ..
        } => Some(*since),
        OrphanState::InFlight {
            stage: DeleteStage::Sending | DeleteStage::Unknown { .. },
            ..
        }
        | OrphanState::Due { .. }
        | OrphanState::NeedsOperator { .. }
        | OrphanState::Deferred
        | OrphanState::Done { .. }
        | OrphanState::Forgotten { .. } => None,
    }
}

/// How the operation of a row ends.
fn end_of(state: &OrphanState) -> IntentEnd {
    match state {
        OrphanState::Done { .. } => IntentEnd::Succeeded,
        OrphanState::NeedsOperator { reason, .. } => IntentEnd::Failed(BrokerStatement {
            status: None,
            error: None,
            description: Some(words(*reason).to_owned()),
        }),
        OrphanState::Forgotten { by, .. } => IntentEnd::Cancelled(CancelledBy::Person(by.clone())),
        OrphanState::Deferred | OrphanState::Due { .. } | OrphanState::InFlight { .. } => {
            cancelled()
        }
    }
}

fn cancelled() -> IntentEnd {
    IntentEnd::Cancelled(CancelledBy::Delete(Default::default()))
}

fn words(reason: OperatorReason) -> &'static str {
    match reason {
        OperatorReason::TriesUsedUp => "every try to delete it failed",
        OperatorReason::AlwaysBusy => "the broker was busy each time for about a week",
        OperatorReason::BrokerGone => "its broker is deregistered",
    }
}

/// Calls an operator.
fn alert(row: &Orphan, reason: OperatorReason) {
    let binding = row.key.binding.as_ref().map(ToString::to_string);
    tracing::error!(
        target: ALERT_TARGET,
        {
            broker.uid = %row.key.broker,
            osb.instance = %row.key.instance,
            osb.binding = binding,
            reason = words(reason),
        },
        "an orphan at a broker cannot be deleted; see to it, then retry or forget it"
    );
    metrics::record_orphan_alert(reason);
}
