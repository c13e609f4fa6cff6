//! Provision, deprovision and fetch of an instance. Updates are in `update.rs`.

use super::unknown_plan::UnknownPlan;
use super::{
    ChangeOutcome, RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended,
};
use crate::catalog::OfferedPlan;
use crate::lifecycle::instance::{
    Event, Instance, InstanceData, InstanceSpec, Provision, decide, fetch,
};
use crate::lifecycle::{AsyncRequest, Asynchrony, Verb};
use crate::refusal::{Refusal, Resource};
use crate::resources::ResourceKeys as _;
use crate::service::{Policy, ProposedChange};
use std::sync::Arc;
use sutler_journal::{Key, OperationId, Version};
use sutler_osb::{
    FetchInstanceResponse, InstanceId, MaintenanceInfo, PlanId, ProvisionBody, Query, ServiceId,
};
use sutler_records::LoadedDocument;

/// Maximum lookups of a plan whose precondition changes meanwhile.
const FOOTING_TRIES: u32 = 4;

/// Where a plan comes from.
enum PlanOrigin {
    /// The catalog, with its precondition.
    Offered(Option<(Key, Version)>),
    /// Only the instance that was created with it.
    Withdrawn,
}

impl RequestHandler {
    /// PUT: B-120 to B-132.
    pub(crate) async fn provision(
        &self,
        id: &InstanceId,
        body: ProvisionBody,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Instance>, RequestError> {
        // Repeated only if the precondition of the plan changed after the lookup.
        for _ in 0..FOOTING_TRIES {
            let snapshot = self.realm_context.catalog.snapshot();
            let offered = snapshot.plan(&body.service_id, &body.plan_id);
            let (plan, found) = match offered {
                Some(plan) => (
                    plan,
                    PlanOrigin::Offered(snapshot.precondition(&body.service_id)),
                ),
                None => match self.unknown_plan(id, &body, info).await? {
                    UnknownPlan::Repeated(plan) => (plan, PlanOrigin::Withdrawn),
                    UnknownPlan::Come => continue,
                    UnknownPlan::Answered(changed) => return Ok(*changed),
                },
            };
            let provisioned = self.provision_as(id, &body, info, plan.as_ref(), &found);
            if let Some(changed) = provisioned.await? {
                return Ok(changed);
            }
            self.realm_context.catalog.catch_up().await;
        }
        Err(too_contended())
    }

    /// `None`: the precondition of the plan has changed.
    async fn provision_as(
        &self,
        id: &InstanceId,
        body: &ProvisionBody,
        info: &RequestInfo,
        plan: &OfferedPlan,
        found: &PlanOrigin,
    ) -> Result<Option<ChangeOutcome<Instance>>, RequestError> {
        let key = self.realm_context.records.instance_key(id);
        let (withdrawn, precondition) = match found {
            PlanOrigin::Withdrawn => (true, None),
            PlanOrigin::Offered(precondition) => (false, precondition.clone()),
        };
        let service = self.service(plan)?;
        let asked = body.maintenance_version();
        let conflict = asked.is_some() && asked != plan.pinned.maintenance_version();
        let wanted = wanted_instance(body, plan);
        plan.schemas
            .check_provision(&wanted.parameters.0)
            .map_err(Refusal::Invalid)?;
        service.check(&ProposedChange::Provision(&wanted))?;
        let dashboard_url = service.dashboard_url(id, &wanted);
        let policy = self.realm_context.policy(Verb::Provision, &plan.pinned);
        let draft = draft(&wanted, info).paced(&policy);
        for attempt in 0..TRIES {
            // Most ids are new: decide as if this one were new, and let the commit detect otherwise. It is read
            // only if the id exists, or if a new instance would be refused.
            let guess = attempt == 0 && !withdrawn;
            let was = if guess {
                LoadedDocument::absent()
            } else {
                self.realm_context.records.load::<Instance>(&key).await?
            };
            let there = was.state.data();
            let provision = Provision {
                wanted: wanted.clone(),
                same: there.is_some_and(|it| service.same_instance(&it.spec, &wanted)),
                maintenance_conflict: conflict,
                dashboard_url: dashboard_url.clone(),
                async_request: async_request(info, policy.asynchrony),
            };
            let decision = match decide(was.state.clone(), Event::Provision(Box::new(provision))) {
                Err(_) if guess => continue,
                decided => decided?,
            };
            if withdrawn && !decision.effects.is_empty() {
                return Err(Refusal::unknown_plan(&wanted.service_id, &wanted.plan_id).into());
            }
            let reads = precondition
                .clone()
                .filter(|_| !decision.effects.is_empty());
            if let Some(committed) = self
                .commit_decision(&key, &was, decision, &draft, reads)
                .await?
            {
                let answer = self.answer(&key, committed, info, &policy, Verb::Provision);
                return answer.await.map(Some);
            }
            if let Some((read, version)) = &precondition
                && !self.stands(read, *version).await?
            {
                return Ok(None);
            }
        }
        Err(too_contended())
    }

    /// Expectation that a document is unchanged since it was read.
    async fn stands(&self, key: &Key, version: Version) -> Result<bool, RequestError> {
        let found = self.realm_context.records.store.get(key).await?;
        Ok(found.is_some_and(|it| it.version == version))
    }

    /// DELETE: B-250 to B-258.
    pub(crate) async fn deprovision(
        &self,
        id: &InstanceId,
        query: &Query,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Instance>, RequestError> {
        let (Some(service_id), Some(plan_id)) = (&query.service_id, &query.plan_id) else {
            let sentence = "The query must name service_id and plan_id of the service instance.";
            return Err(Refusal::Invalid(sentence.to_owned()).into());
        };
        let force = self.realm_context.settings.instances.force_delete_unknown;
        let key = self.realm_context.records.instance_key(id);
        for _ in 0..TRIES {
            let was = self.realm_context.records.load::<Instance>(&key).await?;
            let there = was.state.data();
            if there.is_some_and(|instance_data| instance_data.spec.service_id != *service_id) {
                let sentence = "service_id is not the one of this service instance.";
                return Err(Refusal::Invalid(sentence.to_owned()).into());
            }
            let policy = self
                .delete_policy(Verb::Deprovision, there, service_id, plan_id)
                .await?;
            let draft = draft(&"deprovision", info).paced(&policy);
            let event = Event::Deprovision {
                async_request: async_request(info, policy.asynchrony),
                force,
            };
            let decision = decide(was.state.clone(), event)?;
            if let Some(committed) = self
                .commit_decision(&key, &was, decision, &draft, None)
                .await?
            {
                return self
                    .answer(&key, committed, info, &policy, Verb::Deprovision)
                    .await;
            }
        }
        Err(too_contended())
    }

    /// Deprovision policy of the instance's plan, or of the plan in the query (D-06).
    pub(super) async fn delete_policy(
        &self,
        verb: Verb,
        there: Option<&InstanceData>,
        service_id: &ServiceId,
        plan_id: &PlanId,
    ) -> Result<Policy, RequestError> {
        if let Some(instance_data) = there {
            let (plan, _) = self.realm_context.served(&instance_data.spec.plan).await?;
            return Ok(self.realm_context.policy(verb, &plan.pinned));
        }
        let snapshot = self.realm_context.catalog.snapshot();
        let plan = snapshot.plan(service_id, plan_id);
        Ok(plan.map_or_else(
            || Policy::default().sync(),
            |it| self.realm_context.policy(verb, &it.pinned),
        ))
    }

    /// GET: B-150 to B-156.
    pub(crate) async fn fetch_instance(
        &self,
        id: &InstanceId,
    ) -> Result<FetchInstanceResponse, RequestError> {
        let key = self.realm_context.records.instance_key(id);
        let loaded = self.realm_context.records.load::<Instance>(&key).await?;
        self.realm_context.records.refresh(&key, &loaded).await;
        let instance_data = fetch(&loaded.state)?;
        let (plan, service) = self.realm_context.served(&instance_data.spec.plan).await?;
        if !plan.pinned.instances_retrievable {
            return Err(Refusal::NotFound(Resource::Instance).into());
        }
        let version = instance_data.spec.maintenance_version.as_ref();
        let stored = FetchInstanceResponse {
            service_id: Some(instance_data.spec.service_id.clone()),
            plan_id: Some(instance_data.spec.plan_id.clone()),
            dashboard_url: instance_data.dashboard_url.clone(),
            parameters: Some(instance_data.spec.parameters.clone()),
            maintenance_info: version.map(MaintenanceInfo::of_version),
            metadata: instance_data.metadata.clone(),
        };
        let fetched = service
            .fetch_instance(id, instance_data.state.clone(), stored)
            .await;
        fetched.map_err(|error| self.hook_problem(error, Verb::Provision))
    }

    pub(super) fn service(
        &self,
        plan: &OfferedPlan,
    ) -> Result<Arc<dyn crate::service::UntypedService>, RequestError> {
        let found = self.realm_context.catalog.service(&plan.pinned).cloned();
        found.ok_or_else(|| RequestError::Unavailable("a plan without a service is offered".into()))
    }

    /// Error of a hook that is called outside an operation.
    pub(super) fn hook_problem(&self, error: crate::error::Error, verb: Verb) -> RequestError {
        tracing::warn!(verb = verb.word(), ?error, "a hook failed");
        match error.kind {
            crate::error::ErrorKind::Refused(refusal) => RequestError::Refused(refusal),
            _ => RequestError::Failed {
                verb,
                detail: crate::resources::Detail {
                    description: Some(error.message),
                    ..Default::default()
                },
            },
        }
    }
}

pub(super) fn async_request(info: &RequestInfo, rule: Asynchrony) -> AsyncRequest {
    AsyncRequest {
        operation: OperationId::fresh(),
        accepts_incomplete: info.accepts_incomplete,
        rule,
    }
}

fn wanted_instance(body: &ProvisionBody, plan: &OfferedPlan) -> InstanceSpec {
    let maintenance = plan.pinned.maintenance_version();
    asked_instance(body, plan.digest.clone(), maintenance)
}

/// The requested instance, with this copy of its plan.
pub(super) fn asked_instance(
    body: &ProvisionBody,
    plan: String,
    maintenance_version: Option<&str>,
) -> InstanceSpec {
    InstanceSpec {
        plan,
        maintenance_version: maintenance_version.map(str::to_owned),
        service_id: body.service_id.clone(),
        plan_id: body.plan_id.clone(),
        parameters: body.parameters.clone().unwrap_or_default(),
        organization_guid: body.organization_guid.as_str().to_owned(),
        space_guid: body.space_guid.as_str().to_owned(),
        context: body.context.clone(),
    }
}
