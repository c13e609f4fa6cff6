//! Sends what was written down, or polls, and commits what the answer means.
//!
//! The decision about an answer is repeated on what is stored until it is written (`answer_commits.rs`). If the document has
//! no room for it, less of it and of the past is kept.

use super::{CommittedInstanceDecision, InstanceRun, KeptHistory};
use crate::broker_request::instance_ids;
use crate::brokers::BrokerView;
use crate::context::journal_id;
use crate::executor::answer_commits::AnswerCommits;
use crate::executor::broker_answer::{meaning_of, message_mut, shown, statement_of, with_body};
use crate::executor::exchange::{BrokerImpression, Exchange};
use crate::executor::poll_times::{PollTimes, polling_since};
use crate::executor::request_material::request_builder;
use crate::executor::retry_wait::retry_wait;
use crate::executor::run_error::RunError;
use crate::executor::sent_secrets::{SecretPlaces, has_words};
use crate::lifecycle::instance::{
    Event, Instance, InstanceEffect, IntentChange, PendingIntent, ResourceDetails,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::records::{IntentProgress, Record};
use crate::spec::ParameterSource;
use crate::writes::{NextClaim, OwnOperation};
use serde_json::{Map, Value};
use std::time::Duration;
use sutler_client::{
    AcceptedOperation, Meaning, Operation, OperationEvent, PlanIds, PollUpdate, ReplyContext,
    Sending, Success, classify, decode,
};
use sutler_journal::{Lost, RunResult};
use sutler_osb::OperationKind;

impl InstanceRun<'_> {
    /// Sends the request that was written down.
    pub(super) async fn send(
        &mut self,
        committed: &CommittedInstanceDecision,
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
        let meaning = self.without_secrets(meaning, instance).await;
        self.answered(intent.number, meaning, impression, view)
            .await
    }

    /// Polls an intent: the own one, or the one under the own delete.
    pub(super) async fn poll(
        &mut self,
        committed: &CommittedInstanceDecision,
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
        let request = request_builder(intent.operation, &intent.author, view).poll(&operation);
        let exchange = Exchange::with(view, &request, now).await;
        let begun = exchange.begun;
        let reply = decode::poll(exchange.answer);
        let impression = BrokerImpression::of(begun, &reply);
        let plan = super::plan_of(view, instance);
        let context = view.reply_context(plan.as_deref());
        let meaning = classify(operation.kind(), OperationEvent::Poll(reply), &context);
        let impression = impression.with_event(meaning.event());
        let meaning = match meaning {
            Meaning::Polling { .. } if self.poll_times(&intent, instance, view).is_over() => {
                classify(operation.kind(), OperationEvent::Overdue, &context)
            }
            meaning => meaning,
        };
        let meaning = self.without_secrets(meaning, instance).await;
        self.answered(number, meaning, impression, view).await
    }

    /// An answer whose words contain no values of secrets that the broker got for the instance.
    async fn without_secrets(
        &self,
        meaning: Meaning<ResourceDetails>,
        instance: &Instance,
    ) -> Meaning<ResourceDetails> {
        if !has_words(&meaning) {
            return meaning;
        }
        let patches = instance.pending.iter().filter_map(|it| it.change.patch());
        let patched = patches
            .clone()
            .filter_map(|it| it.parameter_sources.as_ref());
        let changed = patches.map(|it| it.parameters.as_map());
        let places = SecretPlaces {
            namespace: &instance.namespace,
            sources: sources_of(instance).chain(patched.flatten()).collect(),
            sent: self.own.progress.prepared.as_ref(),
            inline: inline_of(instance).chain(changed).collect(),
        };
        places.read(self.context).await.hidden_in(meaning)
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
        mut meaning: Meaning<ResourceDetails>,
        impression: BrokerImpression,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        if let Some(message) = message_mut(&mut meaning) {
            message.description = message.description.as_deref().map(shown);
        }
        let result = self.commit_answer(number, meaning, view).await;
        self.tell_of_broker(impression, view).await;
        result
    }

    /// Says of the broker what an exchange showed.
    pub(super) async fn tell_of_broker(&self, impression: BrokerImpression, view: &BrokerView) {
        let BrokerImpression {
            begun,
            outcome,
            event,
        } = impression;
        let broker = view.registration.uid;
        let brokers = &self.context.brokers;
        brokers.exchange_ended(broker, begun, outcome, event).await;
    }

    async fn commit_answer(
        &mut self,
        number: IntentNumber,
        mut meaning: Meaning<ResourceDetails>,
        view: &BrokerView,
    ) -> Result<RunResult, RunError> {
        let documents = &self.context.records.documents;
        let mut tries = AnswerCommits::within(self.context.lease);
        loop {
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
            let committed = match self.commit(&was, event, view, own, waits).await {
                Err(RunError::TooLarge(_)) if self.history == KeptHistory::All => {
                    self.history = KeptHistory::Essential;
                    meaning = essential(meaning);
                    continue;
                }
                Ok(committed) => committed.ok_or(RunError::Contended),
                Err(error) => Err(error),
            };
            match committed {
                Ok(committed) => {
                    self.after_commit(&committed).await;
                    if committed.decision.effects.contains(&InstanceEffect::Fetch) {
                        self.fetch(&committed, &intent, view).await;
                    }
                    return Ok(self.released());
                }
                Err(error) => tries.again(self.run.lost(), error).await?,
            }
        }
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
        let times = self.poll_times(intent, instance, view);
        move |effect| match effect {
            InstanceEffect::TryAgainAfter(after) => {
                let wait = retry_wait(attempts, *after, now.into(), id);
                Some(NextClaim::After(wait))
            }
            InstanceEffect::TryAgainNow => Some(NextClaim::After(Duration::ZERO)),
            InstanceEffect::PollAfter(after) => Some(NextClaim::After(times.wait(*after))),
            _ => None,
        }
    }

    fn poll_times(
        &self,
        intent: &PendingIntent,
        instance: &Instance,
        view: &BrokerView,
    ) -> PollTimes {
        let plan = super::plan_of(view, instance);
        let since = polling_since(&intent.state);
        let accepted_at = self.own.progress.accepted_at;
        let records = &self.context.records;
        let (claim, at) = ((self.run, self.lag), (view, plan.as_deref()));
        PollTimes::of(records, claim, at, since, accepted_at)
    }
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
pub(in crate::executor) fn plan_ids(instance: &Instance) -> PlanIds {
    let of = |spec: &crate::spec::Spec| PlanIds {
        service_id: instance.service.clone(),
        plan_id: spec.plan.clone(),
    };
    let confirmed = instance.confirmed().map(|it| of(&it.spec));
    instance_ids(confirmed.as_ref(), &of(instance.basis.spec()))
}

/// Sources of the parameters that the broker has got for an instance, without those of pending changes.
pub(in crate::executor) fn sources_of(
    instance: &Instance,
) -> impl Iterator<Item = &ParameterSource> {
    instance.basis.spec().parameter_sources.iter()
}

/// Parameters of an instance that are not secret.
fn inline_of(instance: &Instance) -> impl Iterator<Item = &Map<String, Value>> {
    std::iter::once(instance.basis.spec().parameters.as_map())
}

/// What the answer to a sent request means, and what it says of the broker.
fn read_answer(
    change: &IntentChange,
    exchange: Exchange,
    context: &ReplyContext,
) -> (Meaning<ResourceDetails>, BrokerImpression) {
    let Exchange { begun, answer } = exchange;
    let (kind, reply) = match change {
        IntentChange::Provision => {
            let reply = decode::provision(answer);
            let reply = with_body(reply, |body| details(body.dashboard_url, body.metadata));
            (OperationKind::Provision, reply)
        }
        IntentChange::Update(_) | IntentChange::Local(_) => {
            let reply = decode::update(answer);
            let reply = with_body(reply, |body| details(body.dashboard_url, body.metadata));
            (OperationKind::Update, reply)
        }
        IntentChange::Delete => {
            let reply = with_body(decode::delete(answer), |_| ResourceDetails::default());
            (OperationKind::Deprovision, reply)
        }
    };
    let (meaning, impression) = meaning_of(kind, begun, reply, context);
    (bounded(meaning), impression)
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

/// What of an answer the rules need: its words, and what it says of the resource besides, are left out.
fn essential(meaning: Meaning<ResourceDetails>) -> Meaning<ResourceDetails> {
    match meaning {
        Meaning::Succeeded(Success::Now(_)) => {
            Meaning::Succeeded(Success::Now(ResourceDetails::default()))
        }
        Meaning::Polling {
            update: PollUpdate::Accepted(accepted),
            after,
        } => {
            let accepted = AcceptedOperation {
                operation: accepted.operation,
                ..AcceptedOperation::default()
            };
            let update = PollUpdate::Accepted(accepted);
            Meaning::Polling { update, after }
        }
        mut meaning => {
            if let Some(message) = message_mut(&mut meaning) {
                message.description = None;
            }
            meaning
        }
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
