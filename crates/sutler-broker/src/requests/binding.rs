//! Bind, rotate, unbind and fetch of a binding.

use super::instance::async_request;
use super::{
    ChangeOutcome, RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended,
};
use crate::lifecycle::Verb;
use crate::lifecycle::binding::{
    Bind, Binding, BindingData, BindingSpec, Event, Unbind, decide, fetch,
};
use crate::lifecycle::instance::{Instance, InstanceData, parent};
use crate::refusal::{Refusal, Resource};
use crate::resources::{RequestBody, ResourceKeys as _};
use crate::service::{Policy, ProposedChange, ProposedRequest};
use std::sync::Arc;
use sutler_journal::wall_clock;
use sutler_osb::{BindBody, BindingId, FetchBindingResponse, InstanceId, PinnedPlan, Query};
use sutler_records::LoadedDocument;

impl RequestHandler {
    /// PUT: B-180 to B-203.
    pub(crate) async fn bind(
        &self,
        instance: &InstanceId,
        id: &BindingId,
        body: BindBody,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Binding>, RequestError> {
        let records = &self.realm_context.records;
        let key = records.binding_key(instance, id);
        let instance_key = records.instance_key(instance);
        for _ in 0..TRIES {
            let above = records.load::<Instance>(&instance_key).await?;
            let was = records.load::<Binding>(&key).await?;
            self.check_ids(&body, above.state.data(), was.state.data())?;
            let (bind, policy) = self
                .bind_event((instance, id), &above, &was, &body, info)
                .await?;
            let draft = draft(RequestBody::Bind(bind.wanted.clone()), info).paced(&policy);
            let decision = decide(was.state.clone(), Event::Bind(Box::new(bind)))?;
            // The instance must be unchanged since it was read: no bind while it is being changed.
            let reads = above.version.map(|version| (instance_key.clone(), version));
            let committed = self.commit_and_start(&key, &was, decision, &draft, reads);
            if let Some(committed) = committed.await? {
                return self
                    .respond(&key, committed, info, &policy, Verb::Bind)
                    .await;
            }
        }
        Err(too_contended())
    }

    /// Ids of no known plan are invalid, before any other check (D-06). Those of the instance and of the existing
    /// binding are known, whatever the catalog.
    fn check_ids(
        &self,
        body: &BindBody,
        above: Option<&InstanceData>,
        there: Option<&BindingData>,
    ) -> Result<(), RequestError> {
        if body.predecessor_binding_id.is_some()
            && body.service_id.is_none()
            && body.plan_id.is_none()
        {
            return Ok(());
        }
        let (service_id, plan_id) = body
            .required_ids()
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        let of_instance = above.map(|it| (&it.spec.service_id, &it.spec.plan_id));
        let of_binding = there.map(|it| (&it.spec.service_id, &it.spec.plan_id));
        let asked = Some((service_id, plan_id));
        if of_instance != asked
            && of_binding != asked
            && self
                .realm_context
                .catalog
                .snapshot()
                .plan(service_id, plan_id)
                .is_none()
        {
            return Err(Refusal::unknown_plan(service_id, plan_id).into());
        }
        Ok(())
    }

    /// Collects the facts for the decision of a PUT.
    async fn bind_event(
        &self,
        (instance, id): (&InstanceId, &BindingId),
        above: &LoadedDocument<Instance>,
        was: &LoadedDocument<Binding>,
        body: &BindBody,
        info: &RequestInfo,
    ) -> Result<(Bind, Policy), RequestError> {
        let (Some(instance_data), parent_state) = parent(&above.state) else {
            return Err(Refusal::NotFound(Resource::Instance).into());
        };
        let (plan, service) = self.realm_context.served(&instance_data.spec.plan).await?;
        let mut wanted = wanted_binding(body, instance_data);
        let mut against = against_new(body, instance_data, &plan.pinned);
        match &body.predecessor_binding_id {
            None => {
                let checked = plan.schemas.check_bind(&wanted.parameters.0);
                against = against.or(checked.err().map(Refusal::Invalid));
            }
            Some(predecessor) => {
                let found = self.predecessor(instance, predecessor).await?;
                let same = was
                    .state
                    .data()
                    .filter(|b| b.spec.predecessor == wanted.predecessor);
                match (&found, same) {
                    (Ok(binding_data), _) => inherit(&mut wanted, &binding_data.spec),
                    (Err(_), Some(binding_data)) => inherit(&mut wanted, &binding_data.spec),
                    (Err(_), None) => {}
                }
                against = against.or(found.err());
            }
        }
        let against = against.or_else(|| service.check(&ProposedChange::Bind(&wanted)).err());
        let request = ProposedRequest {
            plan: &plan.pinned,
            instance_id: instance,
            binding_id: Some(id),
            identity: info.identity.as_ref(),
            context: wanted.context.as_ref(),
        };
        let against = against.or_else(|| service.check_request(&request).err());
        // Rules of a plan that is not offered yet are unknown: the instance is being created.
        let against = against.filter(|_| !instance_data.spec.waits_for_plan());
        let same = was
            .state
            .data()
            .is_some_and(|b| service.same_binding(&b.spec, &wanted));
        let policy = self.realm_context.policy(Verb::Bind, &plan.pinned);
        let async_request = async_request(info, policy.asynchrony);
        Ok((
            Bind {
                wanted: Arc::new(wanted),
                same,
                parent: parent_state,
                against,
                async_request,
            },
            policy,
        ))
    }

    /// The predecessor: it must exist and not be expired (B-201).
    async fn predecessor(
        &self,
        instance: &InstanceId,
        id: &BindingId,
    ) -> Result<Result<BindingData, Refusal>, RequestError> {
        let key = self.realm_context.records.binding_key(instance, id);
        let loaded = self.realm_context.records.load::<Binding>(&key).await?;
        let Ok(binding_data) = fetch(&loaded.state) else {
            let sentence =
                "predecessor_binding_id does not name a service binding of this service instance.";
            return Ok(Err(Refusal::Invalid(sentence.to_owned())));
        };
        if expired(binding_data) {
            let sentence = "The service binding named by predecessor_binding_id has expired; create a new one.";
            return Ok(Err(Refusal::Invalid(sentence.to_owned())));
        }
        Ok(Ok(binding_data.clone()))
    }

    /// DELETE: B-240 to B-245.
    pub(crate) async fn unbind(
        &self,
        instance: &InstanceId,
        id: &BindingId,
        query: &Query,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Binding>, RequestError> {
        let records = &self.realm_context.records;
        let key = records.binding_key(instance, id);
        let instance_key = records.instance_key(instance);
        for _ in 0..TRIES {
            let above = records.load::<Instance>(&instance_key).await?;
            let was = records.load::<Binding>(&key).await?;
            let policy = self.unbind_policy(above.state.data(), query).await?;
            let draft = draft(RequestBody::Named("unbind"), info).paced(&policy);
            let (_, parent_state) = parent(&above.state);
            let event = Event::Unbind(Unbind {
                ids_given: query.service_id.is_some() && query.plan_id.is_some(),
                parent: parent_state,
                cascade: false,
                force: self.realm_context.settings.bindings.force_delete_unknown,
                async_request: async_request(info, policy.asynchrony),
            });
            let decision = decide(was.state.clone(), event)?;
            let reads = above.version.map(|version| (instance_key.clone(), version));
            let committed = self.commit_and_start(&key, &was, decision, &draft, reads);
            if let Some(committed) = committed.await? {
                return self
                    .respond(&key, committed, info, &policy, Verb::Unbind)
                    .await;
            }
        }
        Err(too_contended())
    }

    async fn unbind_policy(
        &self,
        above: Option<&InstanceData>,
        query: &Query,
    ) -> Result<Policy, RequestError> {
        let named = query.service_id.as_ref().zip(query.plan_id.as_ref());
        let of_instance = above
            .map(|instance_data| (&instance_data.spec.service_id, &instance_data.spec.plan_id));
        match of_instance.or(named) {
            Some((service_id, plan_id)) => {
                self.delete_policy(Verb::Unbind, above, service_id, plan_id)
                    .await
            }
            None => Ok(Policy::default().sync()),
        }
    }

    /// GET: B-230 to B-233.
    pub(crate) async fn fetch_binding(
        &self,
        instance: &InstanceId,
        id: &BindingId,
    ) -> Result<FetchBindingResponse, RequestError> {
        let records = &self.realm_context.records;
        let above = records
            .load::<Instance>(&records.instance_key(instance))
            .await?;
        let key = records.binding_key(instance, id);
        let loaded = records.load::<Binding>(&key).await?;
        records.refresh(&key, &loaded).await;
        let binding_data = fetch(&loaded.state)?;
        let Some(instance_data) = above.state.data() else {
            return Err(Refusal::NotFound(Resource::Binding).into());
        };
        let (plan, service) = self.realm_context.served(&instance_data.spec.plan).await?;
        if !plan.pinned.bindings_retrievable {
            return Err(Refusal::NotFound(Resource::Binding).into());
        }
        let given = binding_data.given.clone().unwrap_or_default();
        // D-09: older checkers do not know `parameters`; without parameters the field is left out.
        let parameters = Some(&binding_data.spec.parameters).filter(|it| !it.0.is_empty());
        let stored = FetchBindingResponse::of_bind(given, parameters.cloned());
        let fetched = service.fetch_binding(instance, id, stored).await;
        fetched.map_err(|error| self.hook_problem(error, Verb::Bind))
    }
}

fn wanted_binding(body: &BindBody, instance_data: &InstanceData) -> BindingSpec {
    BindingSpec {
        service_id: body
            .service_id
            .clone()
            .unwrap_or_else(|| instance_data.spec.service_id.clone()),
        plan_id: body
            .plan_id
            .clone()
            .unwrap_or_else(|| instance_data.spec.plan_id.clone()),
        parameters: body.parameters.clone().unwrap_or_default(),
        bind_resource: body.bind_resource.clone(),
        app_guid: body.requested_app().map(str::to_owned),
        context: body.context.clone(),
        predecessor: body.predecessor_binding_id.clone(),
    }
}

/// B-202: a rotated binding has the parameters and the bind resource of its predecessor.
fn inherit(wanted: &mut BindingSpec, from: &BindingSpec) {
    wanted.parameters = from.parameters.clone();
    if wanted.bind_resource.is_none() && wanted.app_guid.is_none() {
        wanted.bind_resource.clone_from(&from.bind_resource);
        wanted.app_guid.clone_from(&from.app_guid);
    }
}

/// Refusal of the plan for a new binding (B-198, B-200).
fn against_new(
    body: &BindBody,
    instance_data: &InstanceData,
    plan: &PinnedPlan,
) -> Option<Refusal> {
    let differs = body
        .service_id
        .as_ref()
        .is_some_and(|id| *id != instance_data.spec.service_id)
        || body
            .plan_id
            .as_ref()
            .is_some_and(|id| *id != instance_data.spec.plan_id);
    if differs {
        let sentence = "service_id and plan_id are not those of the service instance; send those that it has now.";
        return Some(Refusal::Invalid(sentence.to_owned()));
    }
    if !plan.bindable {
        return Some(Refusal::Invalid("This plan cannot be bound.".to_owned()));
    }
    if body.predecessor_binding_id.is_some() && !plan.binding_rotatable {
        let sentence = "Bindings of this plan cannot be rotated; create a new one without predecessor_binding_id.";
        return Some(Refusal::Invalid(sentence.to_owned()));
    }
    None
}

fn expired(binding_data: &BindingData) -> bool {
    let metadata = binding_data
        .given
        .as_ref()
        .and_then(|given| given.metadata.as_ref());
    let expires = metadata
        .and_then(|it| it.expires_at())
        .map(|at| at.epoch_seconds());
    let now = i64::try_from(wall_clock().as_secs()).unwrap_or(i64::MAX);
    expires.is_some_and(|at| at <= now)
}
