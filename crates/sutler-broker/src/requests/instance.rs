//! Provision, deprovision and fetch of an instance. Updates are in `update.rs`.

use super::unknown_plan::UnknownPlan;
use super::{
    ChangeOutcome, CommittedDecision, RequestError, RequestHandler, RequestInfo, TRIES, draft,
    too_contended,
};
use crate::catalog::OfferedPlan;
use crate::lifecycle::instance::{
    Event, Instance, InstanceData, InstanceSpec, Provision, decide, fetch,
};
use crate::lifecycle::{AsyncRequest, Asynchrony, Verb};
use crate::refusal::{Refusal, Resource};
use crate::resources::{RequestBody, ResourceKeys as _};
use crate::service::{Policy, ProposedChange, ProposedRequest, UntypedService};
use std::sync::Arc;
use sutler_journal::{Key, OperationId, Version};
use sutler_osb::{
    FetchInstanceResponse, InstanceId, MaintenanceInfo, PlanId, ProvisionBody, Query, ServiceId,
};
use sutler_records::LoadedDocument;

/// Maximum lookups of a plan whose precondition changes meanwhile.
const FOOTING_TRIES: u32 = 4;

/// A provision with its plan and the results of all checks.
struct AdmittedProvision {
    wanted: Arc<InstanceSpec>,
    service: Arc<dyn UntypedService>,
    policy: Policy,
    /// Refusal for a new instance; a repeat of the request that created one is answered as before.
    against: Option<Refusal>,
    maintenance_conflict: bool,
    dashboard_url: Option<String>,
    origin: PlanOrigin,
}

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
        let key = self.realm_context.records.instance_key(id);
        let mut wanted = Arc::new(requested_instance(body));
        let asked = wanted.maintenance_version.clone();
        let asked = asked.as_deref();
        // Repeated only if the precondition of the plan changed after the lookup.
        for _ in 0..FOOTING_TRIES {
            let snapshot = self.realm_context.catalog.snapshot();
            let (service_id, plan_id) = (&wanted.service_id, &wanted.plan_id);
            let (plan, origin) = match snapshot.plan(service_id, plan_id) {
                Some(plan) => (plan, PlanOrigin::Offered(snapshot.precondition(service_id))),
                None => match self.unknown_plan(&key, &wanted, asked, info).await? {
                    UnknownPlan::Repeated(plan) => (plan, PlanOrigin::Withdrawn),
                    UnknownPlan::Come => continue,
                    UnknownPlan::Answered(changed) => return Ok(*changed),
                },
            };
            let admitted = self.admit_provision(id, &mut wanted, asked, &plan, origin, info)?;
            if let Some(committed) = self.commit_provision(&key, &admitted, info).await? {
                let policy = &admitted.policy;
                return self
                    .respond(&key, committed, info, policy, Verb::Provision)
                    .await;
            }
            self.realm_context.catalog.catch_up().await;
        }
        Err(too_contended())
    }

    /// Pins a requested instance to its plan and checks it. `asked`: the maintenance version in the request.
    fn admit_provision(
        &self,
        id: &InstanceId,
        wanted: &mut Arc<InstanceSpec>,
        asked: Option<&str>,
        plan: &OfferedPlan,
        origin: PlanOrigin,
        info: &RequestInfo,
    ) -> Result<AdmittedProvision, RequestError> {
        let service = self.service(plan)?;
        // Not shared yet, so this copies nothing.
        let spec = Arc::make_mut(wanted);
        spec.plan.clone_from(&plan.digest);
        spec.maintenance_version = plan.pinned.maintenance_version().map(str::to_owned);
        let fits = plan.schemas.check_provision(&wanted.parameters.0);
        let fits = fits.map_err(Refusal::Invalid);
        let request = ProposedRequest {
            plan: &plan.pinned,
            instance_id: id,
            binding_id: None,
            identity: info.identity.as_ref(),
            context: wanted.context.as_ref(),
        };
        let against = fits
            .and_then(|()| service.check(&ProposedChange::Provision(wanted)))
            .and_then(|()| service.check_request(&request))
            .err();
        Ok(AdmittedProvision {
            policy: self.realm_context.policy(Verb::Provision, &plan.pinned),
            maintenance_conflict: asked.is_some() && asked != plan.pinned.maintenance_version(),
            // Authors may rely on checked parameters.
            dashboard_url: match against {
                None => service.dashboard_url(id, wanted),
                Some(_) => None,
            },
            against,
            wanted: wanted.clone(),
            service,
            origin,
        })
    }

    /// Decides an admitted provision and commits it. `None`: the precondition of the plan has changed.
    async fn commit_provision(
        &self,
        key: &Key,
        admitted: &AdmittedProvision,
        info: &RequestInfo,
    ) -> Result<Option<CommittedDecision<Instance>>, RequestError> {
        let wanted = &admitted.wanted;
        let (withdrawn, precondition) = match &admitted.origin {
            PlanOrigin::Withdrawn => (true, None),
            PlanOrigin::Offered(precondition) => (false, precondition.as_ref()),
        };
        let draft = draft(RequestBody::Provision(wanted.clone()), info).paced(&admitted.policy);
        for attempt in 0..TRIES {
            // Most ids are new: decide as if this one were new, and let the commit detect otherwise. It is read
            // only if the id exists, or if a new instance would be refused.
            let guess = attempt == 0 && !withdrawn;
            let was = if guess {
                LoadedDocument::absent()
            } else {
                self.realm_context.records.load::<Instance>(key).await?
            };
            if self.resume_purge(key, &was.state, info).await? {
                continue;
            }
            let there = was.state.data();
            let provision = Provision {
                wanted: wanted.clone(),
                same: there.is_some_and(|it| admitted.service.same_instance(&it.spec, wanted)),
                against: admitted.against.clone(),
                maintenance_conflict: admitted.maintenance_conflict,
                dashboard_url: admitted.dashboard_url.clone(),
                async_request: async_request(info, admitted.policy.asynchrony),
            };
            let decision = match decide(was.state.clone(), Event::Provision(Box::new(provision))) {
                Err(_) if guess => continue,
                decided => decided?,
            };
            if withdrawn && !decision.effects.is_empty() {
                return Err(Refusal::unknown_plan(&wanted.service_id, &wanted.plan_id).into());
            }
            let reads = precondition.filter(|_| !decision.effects.is_empty());
            let committed = self.commit_and_start(key, &was, decision, &draft, reads.cloned());
            if let Some(committed) = committed.await? {
                return Ok(Some(committed));
            }
            if let Some((read, version)) = precondition
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
            let draft = draft(RequestBody::Named("deprovision"), info).paced(&policy);
            let event = Event::Deprovision {
                async_request: async_request(info, policy.asynchrony),
                force,
            };
            let decision = decide(was.state.clone(), event)?;
            let committed = self.commit_and_start(&key, &was, decision, &draft, None);
            if let Some(committed) = committed.await? {
                return self
                    .respond(&key, committed, info, &policy, Verb::Deprovision)
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
    ) -> Result<Arc<dyn UntypedService>, RequestError> {
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

/// The requested instance, without a copy of its plan.
fn requested_instance(body: ProvisionBody) -> InstanceSpec {
    InstanceSpec {
        plan: String::new(),
        maintenance_version: body.maintenance_version().map(str::to_owned),
        service_id: body.service_id,
        plan_id: body.plan_id,
        parameters: body.parameters.unwrap_or_default(),
        organization_guid: body.organization_guid.into(),
        space_guid: body.space_guid.into(),
        context: body.context,
    }
}
