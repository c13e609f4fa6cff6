//! Sends what was written down, or polls, and commits what the answer means.
//!
//! The decision about an answer is repeated on what is stored until it is written (`answer_commits.rs`). If the document has
//! no room for it, less of it is kept.

use super::{AT_ONCE, BindingRun, BoundInstance, CommittedBindingDecision};
use crate::context::journal_id;
use crate::executor::answer_commits::AnswerCommits;
use crate::executor::broker_answer::{meaning_of, message_mut, shown, statement_of, with_body};
use crate::executor::exchange::{BrokerImpression, Exchange};
use crate::executor::instance_run::{plan_ids, plan_of, sources_of};
use crate::executor::poll_times::{PollTimes, polling_since};
use crate::executor::request_material::request_builder;
use crate::executor::retry_wait::retry_wait;
use crate::executor::run_error::RunError;
use crate::executor::sent_secrets::{SecretPlaces, has_words};
use crate::lifecycle::binding::{
    Binding, BindingBody, BindingEffect, Event, IntentChange, PendingIntent,
};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::records::{IntentProgress, Record};
use crate::writes::{NextClaim, OwnOperation};
use sutler_client::{
    Meaning, Operation, OperationEvent, PollUpdate, Reply, ReplyContext, Sending, Success,
    classify, decode,
};
use sutler_journal::{Lost, RunResult};
use sutler_osb::OperationKind;

/// Why credentials are not kept that do not fit into the document.
const NO_ROOM: &str =
    "the credentials do not fit into one record with those that the binding has already";

impl BindingRun<'_> {
    /// Sends the request that was written down.
    pub(super) async fn send(
        &mut self,
        committed: &CommittedBindingDecision,
        bound: BoundInstance,
    ) -> Result<RunResult, RunError> {
        let Some(intent) = self.own_intent(&committed.decision.next).cloned() else {
            return Err(RunError::Lost(Lost));
        };
        let Some(prepared) = &self.own.progress.prepared else {
            return Err(RunError::UnknownKind);
        };
        let request = prepared.request()?;
        let now = self.context.records.now();
        let exchange = Exchange::with(&bound.view, &request, now).await;
        let plan = plan_of(&bound.view, &bound.instance);
        let context = ReplyContext {
            sending: match intent.in_doubt {
                true => Sending::AfterUnknown,
                false => Sending::First,
            },
            ..bound.view.reply_context(plan.as_deref())
        };
        let (kind, reply) = self.read_reply(&intent.change, exchange.answer, &bound);
        let (meaning, impression) = meaning_of(kind, exchange.begun, reply, &context);
        let binding = &committed.decision.next;
        let meaning = self.without_secrets(binding, meaning, &bound).await;
        self.answered(intent.number, meaning, impression, bound)
            .await
    }

    fn read_reply(
        &self,
        change: &IntentChange,
        answer: decode::WireResult,
        bound: &BoundInstance,
    ) -> (OperationKind, Reply<BindingBody>) {
        match change {
            IntentChange::Bind(_) => {
                let reply = decode::bind(answer);
                let reply = with_body(reply, |body| self.judged(bound, &body));
                (OperationKind::Bind, reply)
            }
            IntentChange::Unbind(_) | IntentChange::Delete => {
                // The body of a delete says nothing.
                let nothing = || BindingBody::Unfit(String::new());
                let reply = with_body(decode::delete(answer), |_| nothing());
                (OperationKind::Unbind, reply)
            }
        }
    }

    /// Polls an intent: the own one, or the one under the own delete.
    pub(super) async fn poll(
        &mut self,
        committed: &CommittedBindingDecision,
        number: IntentNumber,
        bound: BoundInstance,
    ) -> Result<RunResult, RunError> {
        let binding = &committed.decision.next;
        let Some(intent) = binding.intent(number).cloned() else {
            return Err(RunError::Contended);
        };
        let progress = self.progress_of(&intent).await?;
        let operation = polled_operation(binding, &intent, &progress, &bound);
        let Some(operation) = operation else {
            return Err(RunError::Contended);
        };
        let builder = request_builder(intent.operation, &intent.author, &bound.view);
        let now = self.context.records.now();
        let exchange = Exchange::with(&bound.view, &builder.poll(&operation), now).await;
        let reply = decode::poll(exchange.answer);
        let impression = BrokerImpression::of(exchange.begun, &reply);
        let plan = plan_of(&bound.view, &bound.instance);
        let context = bound.view.reply_context(plan.as_deref());
        let meaning = classify(operation.kind(), OperationEvent::Poll(reply), &context);
        let impression = impression.with_event(meaning.event());
        let meaning = match meaning {
            Meaning::Polling { .. } if self.poll_times(&intent, &bound).is_over() => {
                classify(operation.kind(), OperationEvent::Overdue, &context)
            }
            meaning => meaning,
        };
        let meaning = self.without_secrets(binding, meaning, &bound).await;
        self.answered(number, meaning, impression, bound).await
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
        mut meaning: Meaning<BindingBody>,
        impression: BrokerImpression,
        bound: BoundInstance,
    ) -> Result<RunResult, RunError> {
        if let Some(message) = message_mut(&mut meaning) {
            message.description = message.description.as_deref().map(shown);
        }
        let broker = bound.view.registration.uid;
        let result = self.commit_answer(number, meaning, bound).await;
        let BrokerImpression {
            begun,
            outcome,
            event,
        } = impression;
        let brokers = &self.context.brokers;
        brokers.exchange_ended(broker, begun, outcome, event).await;
        result
    }

    /// An answer whose words contain no values of secrets that the broker got for the binding or its instance.
    async fn without_secrets(
        &self,
        binding: &Binding,
        meaning: Meaning<BindingBody>,
        bound: &BoundInstance,
    ) -> Meaning<BindingBody> {
        if !has_words(&meaning) {
            return meaning;
        }
        let spec = &binding.spec;
        let places = SecretPlaces {
            namespace: &binding.namespace,
            sources: sources_of(&bound.instance)
                .chain(&spec.parameter_sources)
                .collect(),
            sent: self.own.progress.prepared.as_ref(),
            inline: vec![spec.parameters.as_map()],
        };
        places.read(self.context).await.hidden_in(meaning)
    }

    async fn commit_answer(
        &mut self,
        number: IntentNumber,
        mut meaning: Meaning<BindingBody>,
        mut bound: BoundInstance,
    ) -> Result<RunResult, RunError> {
        let documents = &self.context.records.documents;
        let mut tries = AnswerCommits::within(self.context.lease);
        loop {
            let was = documents
                .load_for_run::<Record<Binding>>(self.run, &self.key)
                .await?;
            let Some(binding) = was.state.get() else {
                return Err(RunError::NewerVersion);
            };
            let Some(intent) = binding.intent(number).cloned() else {
                // Another commit ended the intent, and with it the operation.
                return Err(RunError::Lost(Lost));
            };
            // A delete of it may have begun meanwhile, which is woken by the end of this one.
            if let Record::Present(instance) = self.instance_of(binding).await? {
                bound.instance = *instance;
            }
            let own = self.noted(&intent, &meaning);
            let waits = self.waits(binding, &intent, &bound);
            let event = Event::Answer(number, Box::new(meaning.clone()));
            match self.commit(&was, event, &bound, own, waits).await {
                Ok(Some(_)) => return Ok(self.own.result()),
                Ok(None) => tries.again(self.run.lost(), RunError::Contended).await?,
                Err(RunError::TooLarge(why)) => {
                    meaning = smaller(meaning).ok_or(RunError::TooLarge(why))?;
                }
                Err(error) => tries.again(self.run.lost(), error).await?,
            }
        }
    }

    /// The own operation with what the answer says.
    fn noted(&self, intent: &PendingIntent, meaning: &Meaning<BindingBody>) -> OwnOperation {
        let mut own = self.own.clone();
        // An answer gives the claim back: a claim is one exchange.
        own.next = NextClaim::After(AT_ONCE);
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
        binding: &Binding,
        intent: &PendingIntent,
        bound: &BoundInstance,
    ) -> impl Fn(&BindingEffect) -> Option<NextClaim> + use<> {
        let now = self.context.records.now();
        let own_intent = self.own_intent(binding);
        let (attempts, id) = (own_intent.map_or(0, |it| it.attempts), self.own.id);
        let times = self.poll_times(intent, bound);
        move |effect| match effect {
            BindingEffect::TryAgainAfter(after) => {
                let wait = retry_wait(attempts, *after, now.into(), id);
                Some(NextClaim::After(wait))
            }
            BindingEffect::TryAgainNow | BindingEffect::Look => Some(NextClaim::After(AT_ONCE)),
            BindingEffect::PollAfter(after) => Some(NextClaim::After(times.wait(*after))),
            BindingEffect::Start(..)
            | BindingEffect::Wake(_)
            | BindingEffect::Suspend(_)
            | BindingEffect::End(..)
            | BindingEffect::DiscardRequest(_)
            | BindingEffect::Send
            | BindingEffect::Poll(_)
            | BindingEffect::RecordOrphan(_)
            | BindingEffect::TakeName(_)
            | BindingEffect::FreeName(_) => None,
        }
    }

    fn poll_times(&self, intent: &PendingIntent, bound: &BoundInstance) -> PollTimes {
        let plan = plan_of(&bound.view, &bound.instance);
        let since = polling_since(&intent.state);
        let accepted_at = self.own.progress.accepted_at;
        let records = &self.context.records;
        let at = (bound.view.as_ref(), plan.as_deref());
        PollTimes::of(records, (self.run, self.lag), at, since, accepted_at)
    }
}

/// The operation of a 202; `None`: a delete that is about no generation.
pub(super) fn polled_operation(
    binding: &Binding,
    intent: &PendingIntent,
    progress: &IntentProgress,
    bound: &BoundInstance,
) -> Option<Operation> {
    let ids = plan_ids(&bound.instance);
    let (id, token) = (bound.instance.osb_id.clone(), progress.token.clone());
    Some(match &intent.change {
        IntentChange::Bind(bind) => Operation::bind(id, bind.osb_id.clone(), ids, token),
        IntentChange::Unbind(osb_id) => Operation::unbind(id, osb_id.clone(), ids, token),
        IntentChange::Delete => {
            let target = binding.deletion.as_ref()?.target.clone()?;
            Operation::unbind(id, target, ids, token)
        }
    })
}

/// Less of an answer, for a document without room for all of it; `None`: nothing is left to leave out.
fn smaller(mut meaning: Meaning<BindingBody>) -> Option<Meaning<BindingBody>> {
    if let Meaning::Succeeded(Success::Now(BindingBody::Fit(_))) = meaning {
        let body = BindingBody::Unfit(NO_ROOM.to_owned());
        return Some(Meaning::Succeeded(Success::Now(body)));
    }
    let description = message_mut(&mut meaning)?.description.take();
    description.map(|_| meaning)
}
