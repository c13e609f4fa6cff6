//! Asks the broker what it has under the id of a bind that is done, or whose outcome is unknown.
//!
//! It is fetched. If it is not there, or cannot be fetched, a poll tells whether the broker works on it still.

use super::bound_body::as_bind_answer;
use super::{BindingRun, BoundInstance, CommittedBindingDecision, answer};
use crate::executor::exchange::{BrokerImpression, Exchange};
use crate::executor::instance_run::{plan_ids, plan_of};
use crate::executor::request_material::request_builder;
use crate::executor::run_error::RunError;
use crate::lifecycle::binding::{BindChange, Binding, Observation, PendingIntent, PreparedTurn};
use crate::records::IntentProgress;
use sutler_client::wire::Request;
use sutler_client::{Reading, Reply, classify_read, decode};
use sutler_journal::{Lost, RunResult};
use sutler_osb::{FetchBindingResponse, OperationState};

impl BindingRun<'_> {
    /// Looks at what the broker has, and commits what that means.
    pub(super) async fn look(
        &mut self,
        committed: &CommittedBindingDecision,
        bound: &BoundInstance,
    ) -> Result<Option<RunResult>, RunError> {
        let binding = &committed.decision.next;
        let Some(intent) = self.own_intent(binding).cloned() else {
            return Err(RunError::Lost(Lost));
        };
        let Some(bind) = intent.change.bind() else {
            return Err(RunError::Lost(Lost));
        };
        let observation = self.observe(binding, &intent, bind, bound).await;
        if observation == Observation::InProgress {
            // Polls are counted from here on.
            self.own.progress.accepted_at = self.run.fence().0;
        }
        let turn = PreparedTurn::Observed(observation);
        let written = self
            .commit_turn(&committed.stored, &intent, turn, bound)
            .await?;
        Ok(written.map(|_| self.own.result()))
    }

    async fn observe(
        &self,
        binding: &Binding,
        intent: &PendingIntent,
        bind: &BindChange,
        bound: &BoundInstance,
    ) -> Observation {
        let plan = plan_of(&bound.view, &bound.instance);
        if plan.is_none_or(|plan| plan.bindings_retrievable) {
            let builder = request_builder(intent.operation, &intent.author, &bound.view);
            let ids = plan_ids(&bound.instance);
            let request = builder.fetch_binding(&bound.instance.osb_id, &bind.osb_id, &ids);
            let decode = |answer| decode::fetched_binding(answer);
            match self.read(&request, bound, decode).await {
                Reading::Read(body) if !intent.in_doubt || is_ours(binding, &body) => {
                    let answer = as_bind_answer(body);
                    return Observation::Found(self.judged(bound, &answer));
                }
                Reading::Read(_) => return Observation::AbsentOrUnreadable,
                Reading::Retry { .. } => return Observation::NotNow,
                Reading::Absent | Reading::Failed(_) => {}
            }
        }
        self.poll_once(binding, intent, bound).await
    }

    /// Whether the broker works on a bind that cannot be fetched.
    async fn poll_once(
        &self,
        binding: &Binding,
        intent: &PendingIntent,
        bound: &BoundInstance,
    ) -> Observation {
        let progress: &IntentProgress = &self.own.progress;
        let operation = answer::polled_operation(binding, intent, progress, bound);
        let Some(operation) = operation else {
            return Observation::AbsentOrUnreadable;
        };
        let builder = request_builder(intent.operation, &intent.author, &bound.view);
        let request = builder.poll(&operation);
        match self.read(&request, bound, decode::poll).await {
            Reading::Read(poll) if poll.state == OperationState::InProgress => {
                Observation::InProgress
            }
            Reading::Read(_) | Reading::Absent | Reading::Failed(_) => {
                Observation::AbsentOrUnreadable
            }
            Reading::Retry { .. } => Observation::NotNow,
        }
    }

    async fn read<B>(
        &self,
        request: &Request,
        bound: &BoundInstance,
        decode: impl FnOnce(decode::WireResult) -> Reply<B>,
    ) -> Reading<B> {
        let now = self.context.records.now();
        let exchange = Exchange::with(&bound.view, request, now).await;
        let reply = decode(exchange.answer);
        let BrokerImpression { begun, outcome, .. } = BrokerImpression::of(exchange.begun, &reply);
        let reading = classify_read(reply);
        let (broker, event) = (bound.view.registration.uid, reading.event());
        let brokers = &self.context.brokers;
        brokers.exchange_ended(broker, begun, outcome, event).await;
        reading
    }
}

/// Whether what the broker returned is what the bind asked for, as far as it says. Parameters of secrets are not known
/// here, and a broker may leave secret ones out.
fn is_ours(binding: &Binding, body: &FetchBindingResponse) -> bool {
    let wanted = binding.spec.parameters.as_map();
    body.parameters.as_ref().is_none_or(|found| {
        let mut found = found.0.iter();
        found.all(|(key, value)| wanted.get(key).is_none_or(|it| it == value))
    })
}
