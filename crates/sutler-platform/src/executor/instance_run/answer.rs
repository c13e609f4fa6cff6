//! Sends what was written down, or polls, and commits what the answer means.
//!
//! An answer is never lost while the claim lasts: its decision is repeated on what is stored until it is written.

use super::{Committed, InstanceRun};
use crate::broker_request::instance_ids;
use crate::brokers::BrokerView;
use crate::context::journal_id;
use crate::executor::exchange::{BrokerImpression, Exchange};
use crate::executor::retry_wait::retry_wait;
use crate::executor::run_error::RunError;
use crate::lifecycle::instance::{
    Event, Instance, InstanceEffect, IntentChange, PendingIntent, ResourceDetails,
};
use crate::lifecycle::intent::{BrokerStatement, IntentNumber, IntentState};
use crate::records::{IntentProgress, Record};
use crate::writes::{NextClaim, OwnOperation};
use jiff::Timestamp;
use std::time::Duration;
use sutler_client::{
    AcceptedOperation, Answer, Meaning, NextPoll, Operation, OperationEvent, PlanIds, PollSchedule,
    PollUpdate, Reply, ReplyContext, RetryAfter, Sending, Success, classify, decode,
};
use sutler_journal::{Lost, RunResult};
use sutler_osb::OperationKind;

/// Commits of one answer that may find that another writer was first.
const ANSWER_COMMITS_MAX: usize = 1_000;
/// Longest description of a moment that is kept, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

impl InstanceRun<'_> {
    /// Sends the request that was written down.
    pub(super) async fn send(
        &mut self,
        committed: &Committed,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let instance = &committed.decision.next;
        let Some(intent) = self.own_intent(instance).cloned() else {
            return Err(RunError::Lost(Lost));
        };
        let Some(prepared) = &self.own.progress.prepared else {
            return Err(RunError::UnknownKind);
        };
        let request = prepared.request()?;
        let exchange = Exchange::with(view, &request, self.context.records.now()).await;
        let plan = super::plan_of(view, instance);
        let context = ReplyContext {
            sending: match intent.in_doubt {
                true => Sending::AfterUnknown,
                false => Sending::First,
            },
            ..view.reply_context(plan.as_deref())
        };
        let (meaning, impression) = read_answer(&intent.change, exchange, &context);
        self.answered(intent.number, meaning, impression, view)
            .await
    }

    /// Polls an intent: the own one, or the one under the own delete.
    pub(super) async fn poll(
        &mut self,
        committed: &Committed,
        number: IntentNumber,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let instance = &committed.decision.next;
        let Some(intent) = instance.intent(number).cloned() else {
            return Err(RunError::Contended);
        };
        let progress = self.progress_of(&intent).await?;
        let operation = polled_operation(instance, &intent, &progress);
        let now = self.context.records.now();
        let request = self.request_builder(&intent, view).poll(&operation);
        let exchange = Exchange::with(view, &request, now).await;
        let begun = exchange.begun;
        let reply = decode::poll(exchange.answer);
        let impression = BrokerImpression::of(begun, &reply);
        let plan = super::plan_of(view, instance);
        let context = view.reply_context(plan.as_deref());
        let meaning = classify(operation.kind(), OperationEvent::Poll(reply), &context);
        let impression = impression.with_event(meaning.event());
        let meaning = match meaning {
            Meaning::Polling { .. } if self.is_overdue(&intent, instance, view) => {
                classify(operation.kind(), OperationEvent::Overdue, &context)
            }
            meaning => meaning,
        };
        self.answered(number, meaning, impression, view).await
    }

    async fn progress_of(&self, intent: &PendingIntent) -> Result<IntentProgress, RunError> {
        let id = journal_id(intent.operation);
        if id == self.own.id {
            return Ok(self.own.progress.clone());
        }
        let documents = &self.context.records.documents;
        match documents.store.operation(id).await? {
            Some(operation) => Ok(documents.open_progress(&operation)?),
            None => Ok(IntentProgress::default()),
        }
    }

    /// Commits what an answer means, then says of the broker what the exchange showed.
    async fn answered(
        &mut self,
        number: IntentNumber,
        meaning: Meaning<ResourceDetails>,
        impression: BrokerImpression,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let result = self.commit_answer(number, meaning, view).await;
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

    async fn commit_answer(
        &mut self,
        number: IntentNumber,
        meaning: Meaning<ResourceDetails>,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let documents = &self.context.records.documents;
        for _ in 0..ANSWER_COMMITS_MAX {
            let was = documents
                .load_for_run::<Record<Instance>>(self.run, &self.key)
                .await?;
            let Some(instance) = was.state.get() else {
                return Err(RunError::NewerVersion);
            };
            let Some(intent) = instance.intent(number).cloned() else {
                // Another commit ended the intent, and with it the operation.
                return Err(RunError::Lost(Lost));
            };
            let own = self.noted(&intent, &meaning);
            let waits = self.waits(&intent, instance, view);
            let event = Event::Answer(number, Box::new(meaning.clone()));
            if let Some(committed) = self.commit(&was, event, view, own, waits).await? {
                self.after_commit(&committed).await;
                if committed.decision.effects.contains(&InstanceEffect::Fetch) {
                    self.fetch(&committed, view).await;
                }
                return Ok(self.released());
            }
        }
        Err(RunError::Contended)
    }

    /// The own operation with what the answer says.
    fn noted(&self, intent: &PendingIntent, meaning: &Meaning<ResourceDetails>) -> OwnOperation {
        let mut own = self.own.clone();
        // An answer gives the claim back: a claim is one exchange.
        own.next = NextClaim::After(Duration::ZERO);
        let is_own = journal_id(intent.operation) == own.id;
        if let Meaning::Polling { update, .. } = meaning
            && is_own
        {
            match update {
                PollUpdate::Accepted(accepted) => {
                    own.progress.token = accepted.operation.clone();
                    own.progress.accepted_at = self.run.fence().0;
                }
                PollUpdate::InProgress(Some(text)) => own.detail.description = Some(shown(text)),
                PollUpdate::InProgress(None) | PollUpdate::Nothing(_) => {}
            }
        }
        if matches!(intent.state, IntentState::Sending { .. }) {
            own.progress.attempts.answered(statement_of(meaning));
        }
        own
    }

    /// When the operation is claimed again after an effect that asks for that.
    fn waits(
        &self,
        intent: &PendingIntent,
        instance: &Instance,
        view: &BrokerView,
    ) -> impl Fn(&InstanceEffect) -> Option<NextClaim> + use<> {
        let now = self.context.records.now();
        let (attempts, id) = (intent.attempts, self.own.id);
        let schedule = poll_schedule(instance, view);
        let since = polling_since(intent).unwrap_or(now);
        let is_polled = polling_since(intent).is_some();
        let polls = match is_polled {
            true => self
                .run
                .fence()
                .0
                .saturating_sub(self.own.progress.accepted_at),
            false => 0,
        };
        let polls = u32::try_from(polls).unwrap_or(u32::MAX).saturating_add(1);
        let lag = self.lag();
        move |effect| match effect {
            InstanceEffect::TryAgainAfter(after) => {
                let wait = retry_wait(attempts, *after, now.into(), id);
                Some(NextClaim::After(wait))
            }
            InstanceEffect::TryAgainNow => Some(NextClaim::After(Duration::ZERO)),
            InstanceEffect::PollAfter(after) => {
                let wait = poll_wait(&schedule, polls, elapsed(since, now), *after, now, lag);
                Some(NextClaim::After(wait))
            }
            _ => None,
        }
    }

    /// How much later than planned the operation was claimed: the next wait grows by it, so that polls of a slow broker
    /// space themselves and requests are not starved.
    fn lag(&self) -> Duration {
        let due = self.run.operation().row.due;
        let now = self.context.records.documents.clock.now();
        let micros = u64::try_from(now.0.saturating_sub(due.0)).unwrap_or(0);
        Duration::from_micros(micros)
    }

    fn is_overdue(&self, intent: &PendingIntent, instance: &Instance, view: &BrokerView) -> bool {
        let now = self.context.records.now();
        let within = poll_schedule(instance, view).within;
        polling_since(intent).is_some_and(|since| elapsed(since, now) >= within)
    }
}

/// The wait before the next poll.
fn poll_wait(
    schedule: &PollSchedule,
    polls: u32,
    elapsed: Duration,
    after: Option<RetryAfter>,
    now: Timestamp,
    lag: Duration,
) -> Duration {
    let asked = after.map(|after| after.from_now(now.into()));
    match schedule.next(polls, elapsed, asked) {
        NextPoll::Wait(wait) => wait.saturating_add(lag.min(schedule.longest)),
        // Its time is over: the next poll is the last one.
        NextPoll::Stop => schedule.shortest,
    }
}

fn poll_schedule(instance: &Instance, view: &BrokerView) -> PollSchedule {
    let schedule = PollSchedule {
        within: view.registration.limits.poll_within,
        ..PollSchedule::default()
    };
    let plan = super::plan_of(view, instance);
    schedule.of_plan(plan.and_then(|plan| plan.maximum_polling_duration))
}

fn polling_since(intent: &PendingIntent) -> Option<Timestamp> {
    match intent.state {
        IntentState::Polling { since } => Some(since),
        IntentState::Queued { .. }
        | IntentState::OnHold(_)
        | IntentState::Suspended
        | IntentState::Sending { .. }
        | IntentState::Unknown { .. } => None,
    }
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(since.duration_until(now)).unwrap_or_default()
}

/// The operation of a 202, with the plan that the instance had before it (P-053).
fn polled_operation(
    instance: &Instance,
    intent: &PendingIntent,
    progress: &IntentProgress,
) -> Operation {
    let ids = plan_ids(instance);
    let (id, token) = (instance.osb_id.clone(), progress.token.clone());
    match intent.change {
        IntentChange::Provision => Operation::provision(id, ids, token),
        IntentChange::Update(_) | IntentChange::Local(_) => Operation::update(id, ids, token),
        IntentChange::Delete => Operation::deprovision(id, ids, token),
    }
}

/// The offering and the plan that requests about the instance name: those that are confirmed, else those of the create.
pub(super) fn plan_ids(instance: &Instance) -> PlanIds {
    let of = |spec: &crate::spec::Spec| PlanIds {
        service_id: instance.service.clone(),
        plan_id: spec.plan.clone(),
    };
    let confirmed = instance.confirmed().map(|it| of(&it.spec));
    instance_ids(confirmed.as_ref(), &of(instance.basis.spec()))
}

/// What the answer to a sent request means, and what it says of the broker.
fn read_answer(
    change: &IntentChange,
    exchange: Exchange,
    context: &ReplyContext,
) -> (Meaning<ResourceDetails>, BrokerImpression) {
    let Exchange { begun, answer } = exchange;
    match change {
        IntentChange::Provision => {
            let reply = decode::provision(answer);
            let reply = with_body(reply, |body| details(body.dashboard_url, body.metadata));
            meaning_of(OperationKind::Provision, begun, reply, context)
        }
        IntentChange::Update(_) | IntentChange::Local(_) => {
            let reply = decode::update(answer);
            let reply = with_body(reply, |body| details(body.dashboard_url, body.metadata));
            meaning_of(OperationKind::Update, begun, reply, context)
        }
        IntentChange::Delete => {
            let reply = with_body(decode::delete(answer), |_| ResourceDetails::default());
            meaning_of(OperationKind::Deprovision, begun, reply, context)
        }
    }
}

fn meaning_of(
    kind: OperationKind,
    begun: Timestamp,
    reply: Reply<ResourceDetails>,
    context: &ReplyContext,
) -> (Meaning<ResourceDetails>, BrokerImpression) {
    let impression = BrokerImpression::of(begun, &reply);
    let meaning = bounded(classify(kind, OperationEvent::Reply(reply), context));
    let event = meaning.event();
    (meaning, impression.with_event(event))
}

/// What the broker says of a resource when it accepts a request, as far as it can be kept.
fn bounded(meaning: Meaning<ResourceDetails>) -> Meaning<ResourceDetails> {
    match meaning {
        Meaning::Polling {
            update: PollUpdate::Accepted(accepted),
            after,
        } => {
            let kept = details(accepted.dashboard_url, accepted.metadata);
            let accepted = AcceptedOperation {
                operation: accepted.operation,
                dashboard_url: kept.dashboard_url,
                metadata: kept.metadata,
            };
            let update = PollUpdate::Accepted(accepted);
            Meaning::Polling { update, after }
        }
        meaning => meaning,
    }
}

fn with_body<A, B>(reply: Reply<A>, convert: impl FnOnce(A) -> B) -> Reply<B> {
    match reply {
        Reply::NoAnswer(error) => Reply::NoAnswer(error),
        Reply::Answer {
            answer,
            retry_after,
        } => Reply::Answer {
            answer: match answer {
                Answer::Done(status, body) => Answer::Done(status, convert(body)),
                Answer::Accepted(accepted) => Answer::Accepted(accepted),
                Answer::Malformed(status, error) => Answer::Malformed(status, error),
                Answer::Other(status, body) => Answer::Other(status, body),
            },
            retry_after,
        },
    }
}

/// Largest metadata of a broker that is kept, in bytes of JSON: the document must stay writable.
const METADATA_BYTES_MAX: usize = 32 * 1024;
/// Longest address of a dashboard that is kept.
const URL_BYTES_MAX: usize = 8 * 1024;

/// What a broker says of an instance, as far as it can be kept: dashboards are web pages, and metadata is not too large.
pub(super) fn details(
    dashboard_url: Option<String>,
    metadata: Option<sutler_osb::InstanceMetadata>,
) -> ResourceDetails {
    let is_web = |url: &String| {
        let lower = url.to_ascii_lowercase();
        url.len() <= URL_BYTES_MAX
            && (lower.starts_with("https://") || lower.starts_with("http://"))
    };
    let fits = |metadata: &sutler_osb::InstanceMetadata| {
        serde_json::to_vec(metadata).is_ok_and(|json| json.len() <= METADATA_BYTES_MAX)
    };
    ResourceDetails {
        dashboard_url: dashboard_url.filter(is_web),
        metadata: metadata.filter(fits),
    }
}

/// What the broker said, for the journal that people read.
pub(super) fn statement_of<B>(meaning: &Meaning<B>) -> BrokerStatement {
    let word = |text: &str| BrokerStatement {
        status: None,
        error: None,
        description: Some(text.to_owned()),
    };
    match meaning {
        Meaning::Succeeded(Success::Gone) => word("the broker confirmed that nothing is left"),
        Meaning::Succeeded(_) => word("the broker confirmed it"),
        Meaning::Polling { .. } => word("the broker accepted it and works on it"),
        Meaning::Rejected { message, .. }
        | Meaning::Retry { message, .. }
        | Meaning::Unknown { message, .. }
        | Meaning::Failed { message, .. } => BrokerStatement::from(message),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(DESCRIPTION_CHARS_MAX).collect()
}
