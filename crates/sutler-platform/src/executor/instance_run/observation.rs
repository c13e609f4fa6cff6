//! Asks the broker what it has: after a create whose outcome is unknown, and after an update that may have been applied.

use super::answer::{details, plan_ids};
use super::{CommittedInstanceDecision, InstanceRun, after_commit, decide, plan_of};
use crate::brokers::BrokerView;
use crate::executor::exchange::{BrokerImpression, Exchange};
use crate::executor::request_material::request_builder;
use crate::executor::run_error::RunError;
use crate::lifecycle::instance::{
    Event, FetchedInstance, Instance, Observation, PendingIntent, PreparedTurn,
};
use crate::spec::Parameters;
use crate::writes::{InstanceChange, instance_commit};
use sutler_client::{Answer, Operation, Reading, Reply, classify_read, decode};
use sutler_journal::{Lost, RunResult, commit_until_known};
use sutler_osb::{FetchInstanceResponse, OperationState};

impl InstanceRun<'_> {
    /// Looks at what the broker has under the id of a create whose outcome is unknown, and commits what that means.
    pub(super) async fn look(
        &mut self,
        committed: &CommittedInstanceDecision,
        view: &BrokerView,
    ) -> Result<Option<RunResult>, RunError> {
        let instance = &committed.decision.next;
        let Some(intent) = self.own_intent(instance).cloned() else {
            return Err(RunError::Lost(Lost));
        };
        let observation = self.observe(instance, &intent, view).await;
        if observation == Observation::InProgress {
            // Polls are counted from here on.
            self.own.progress.accepted_at = self.run.fence().0;
        }
        let event = Event::Turn(intent.number, PreparedTurn::Observed(observation));
        let Some(committed) = self.commit_turn(&committed.stored, event, view).await? else {
            return Ok(None);
        };
        self.after_commit(&committed).await;
        Ok(Some(self.released()))
    }

    /// Polls first: an instance that is being created can often not be fetched. Then fetches it.
    async fn observe(
        &self,
        instance: &Instance,
        intent: &PendingIntent,
        view: &BrokerView,
    ) -> Observation {
        let ids = plan_ids(instance);
        let operation = Operation::provision(instance.osb_id.clone(), ids, None);
        let builder = request_builder(intent.operation, &intent.author, view);
        let exchange = self.exchange(view, &builder.poll(&operation)).await;
        let reply = decode::poll(exchange.answer);
        let impression = BrokerImpression::of(exchange.begun, &reply);
        let observed = match &reply {
            Reply::NoAnswer(_) => Some(Observation::NotNow),
            Reply::Answer {
                answer: Answer::Done(_, poll),
                ..
            } if poll.state == OperationState::InProgress => Some(Observation::InProgress),
            Reply::Answer { .. } => None,
        };
        let event = classify_read(reply).event();
        self.tell_of_broker(impression.with_event(event), view)
            .await;
        if let Some(observation) = observed {
            return observation;
        }
        match self.fetch_instance(instance, intent, view).await {
            None => Observation::AbsentOrUnreadable,
            Some(Reading::Read(body)) if is_ours(instance, &body) => {
                Observation::Ours(details(body.dashboard_url, body.metadata))
            }
            Some(Reading::Read(_) | Reading::Absent | Reading::Failed(_)) => {
                Observation::AbsentOrUnreadable
            }
            Some(Reading::Retry { .. }) => Observation::NotNow,
        }
    }

    /// Fetches the instance; `None`: its offering does not allow that.
    async fn fetch_instance(
        &self,
        instance: &Instance,
        intent: &PendingIntent,
        view: &BrokerView,
    ) -> Option<Reading<FetchInstanceResponse>> {
        let plan = plan_of(view, instance)?;
        if !plan.instances_retrievable {
            return None;
        }
        let builder = request_builder(intent.operation, &intent.author, view);
        let request = builder.fetch_instance(&instance.osb_id, &plan_ids(instance));
        let exchange = self.exchange(view, &request).await;
        let reply = decode::fetched_instance(exchange.answer);
        let impression = BrokerImpression::of(exchange.begun, &reply);
        let reading = classify_read(reply);
        self.tell_of_broker(impression.with_event(reading.event()), view)
            .await;
        Some(reading)
    }

    async fn exchange(
        &self,
        view: &BrokerView,
        request: &sutler_client::wire::Request,
    ) -> Exchange {
        Exchange::with(view, request, self.context.records.now()).await
    }

    /// After an update that may have been applied: asks the broker what the instance is, in the name of who asked for the
    /// update. If that fails, the instance stays uncertain until an update succeeds.
    pub(super) async fn fetch(
        &self,
        committed: &CommittedInstanceDecision,
        update: &PendingIntent,
        view: &BrokerView,
    ) {
        let Some(instance) = committed.stored.state.get() else {
            return;
        };
        let Some(Reading::Read(body)) = self.fetch_instance(instance, update, view).await else {
            return;
        };
        let Some(found) = fetched(instance, body) else {
            return;
        };
        let was = &committed.stored;
        let event = Event::Fetched(Box::new(found));
        let Ok(decision) = decide(self.context, view, was.state.get().cloned(), event) else {
            return;
        };
        let change = InstanceChange {
            context: self.context,
            broker: view,
            key: &self.key,
            was,
            decision: &decision,
            now: self.context.records.now(),
        };
        let Ok(commit) = instance_commit(&change, None, |_| None).await else {
            return;
        };
        let store = self.context.records.documents.store.as_ref();
        if commit_until_known(store, &commit).await.is_ok() {
            after_commit(self.context, &decision).await;
        }
    }
}

/// Whether what the broker returned is what the create asked for, as far as it says.
fn is_ours(instance: &Instance, body: &FetchInstanceResponse) -> bool {
    let spec = instance.basis.spec();
    let same_service = body
        .service_id
        .as_ref()
        .is_none_or(|it| *it == instance.service);
    let same_plan = body.plan_id.as_ref().is_none_or(|it| *it == spec.plan);
    // Those of secrets are not known here, and a broker may leave secret ones out.
    let same_parameters = body.parameters.as_ref().is_none_or(|found| {
        let wanted = spec.parameters.as_map();
        found
            .0
            .iter()
            .all(|(key, value)| wanted.get(key).is_none_or(|it| it == value))
    });
    same_service && same_plan && same_parameters
}

/// The specification that the broker has; `None` if it does not say enough.
fn fetched(instance: &Instance, body: FetchInstanceResponse) -> Option<FetchedInstance> {
    let mut spec = instance.basis.spec().clone();
    if !spec.parameter_sources.is_empty() {
        return None;
    }
    spec.plan = body.plan_id?;
    spec.parameters = Parameters::try_from(body.parameters?.0).ok()?;
    if let Some(version) = body.maintenance_info.and_then(|it| it.version) {
        spec.maintenance_version = Some(version);
    }
    Some(FetchedInstance {
        spec,
        details: details(body.dashboard_url, body.metadata),
    })
}
