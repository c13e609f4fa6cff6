//! PATCH: changes parameters, plan, context or maintenance version of an instance.
//!
//! An instance uses the copy of its plan that it was created with. Only an update that requests the maintenance
//! version of the catalog changes the copy: it runs with the catalog's copy, and the instance keeps that one if it
//! succeeds. Decisions are in `lifecycle/instance.rs`.

use super::instance::async_request;
use super::{
    ChangeOutcome, RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended,
};
use crate::catalog::{CatalogSnapshot, OfferedPlan};
use crate::lifecycle::Verb;
use crate::lifecycle::instance::{
    Change, Event, Instance, InstanceSpec, Update, UpdateFacts, decide,
};
use crate::refusal::{Refusal, Resource};
use crate::resources::{RequestBody, ResourceKeys as _};
use crate::service::{Policy, ProposedChange, ProposedRequest, UntypedService};
use std::sync::Arc;
use sutler_journal::{Key, Version};
use sutler_osb::{InstanceId, PinnedPlan, PlanId, ServiceId, UpdateBody};
use sutler_records::LoadedDocument;

/// An update with the facts for its decision.
struct AdmittedUpdate {
    update: Update,
    policy: Policy,
    /// Precondition of the new plan copy.
    precondition: Option<(Key, Version)>,
}

impl RequestHandler {
    /// PATCH: B-160 to B-173.
    pub(crate) async fn update(
        &self,
        id: &InstanceId,
        mut body: UpdateBody,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Instance>, RequestError> {
        let key = self.realm_context.records.instance_key(id);
        let mut change = Arc::new(Change {
            parameters: body.parameters.take(),
            context: body.context.take(),
            ..Change::default()
        });
        for _ in 0..TRIES {
            let was = self.realm_context.records.load::<Instance>(&key).await?;
            let admitted = self
                .admit_update(id, &was, &body, &mut change, info)
                .await?;
            let policy = admitted.policy;
            let draft = draft(RequestBody::Update(change.clone()), info).paced(&policy);
            let decision = decide(was.state.clone(), Event::Update(Box::new(admitted.update)))?;
            let reads = admitted
                .precondition
                .filter(|_| !decision.effects.is_empty());
            let stands_on_something = reads.is_some();
            let committed = self.commit_and_start(&key, &was, decision, &draft, reads);
            if let Some(committed) = committed.await? {
                return self
                    .respond(&key, committed, info, &policy, Verb::Update)
                    .await;
            }
            if stands_on_something {
                self.realm_context.catalog.catch_up().await;
            }
        }
        Err(too_contended())
    }

    /// Checks a PATCH against its plan and collects the facts for its decision. `change`: the parameters and the
    /// context of the request, which gets the plan and the version.
    async fn admit_update(
        &self,
        id: &InstanceId,
        was: &LoadedDocument<Instance>,
        body: &UpdateBody,
        change: &mut Arc<Change>,
        info: &RequestInfo,
    ) -> Result<AdmittedUpdate, RequestError> {
        let snapshot = self.realm_context.catalog.snapshot();
        let Some(instance_data) = was.state.data() else {
            return Err(not_there(&snapshot, body).into());
        };
        let there = &instance_data.spec;
        let (present, service) = self.realm_context.served(&there.plan).await?;
        let running = self.withdrawn_target(&was.state, body, &snapshot).await?;
        let target = TargetPlan::of(&snapshot, body, there, &present, running.as_ref())?;
        let (from, to) = (&*present.pinned, &*target.plan.pinned);
        pin_change(change, body, there, &target.plan);
        let request = ProposedRequest {
            plan: to,
            instance_id: id,
            binding_id: None,
            identity: info.identity.as_ref(),
            context: change.context.as_ref(),
        };
        let against = match running {
            Some(_) => Some(Refusal::unknown_plan(&to.service_id, &to.plan_id)),
            None => against_new(service.as_ref(), there, from, &target, change)
                .and_then(|()| service.check_request(&request))
                .err(),
        };
        let policy = self.realm_context.policy(Verb::Update, to);
        let precondition = change
            .plan
            .as_ref()
            .and(snapshot.precondition(&to.service_id));
        let update = Update {
            service_id: body.service_id.clone(),
            facts: UpdateFacts {
                offered: service.updates(),
                plan_updateable: from.plan_updateable,
                context_updates: from.allow_context_updates,
                maintenance_conflict: target.conflict,
            },
            // Authors may rely on checked parameters.
            dashboard_url: match against {
                None => service.dashboard_url(id, &there.changed_by(change)),
                Some(_) => None,
            },
            against,
            change: change.clone(),
            async_request: async_request(info, policy.asynchrony),
        };
        Ok(AdmittedUpdate {
            update,
            policy,
            precondition,
        })
    }

    /// The plan copy of the running update, if the request names its plan and the catalog no longer has it: no new
    /// update to it is accepted, but a repeat of the running one is.
    async fn withdrawn_target(
        &self,
        at: &Instance,
        body: &UpdateBody,
        snapshot: &CatalogSnapshot,
    ) -> Result<Option<Arc<OfferedPlan>>, RequestError> {
        let Instance::Updating { data, change, .. } = at else {
            return Ok(None);
        };
        let named = |(plan_id, _): &&(PlanId, String)| Some(plan_id) == body.plan_id.as_ref();
        let Some((plan_id, digest)) = change.plan.as_ref().filter(named) else {
            return Ok(None);
        };
        if body.service_id != data.spec.service_id
            || *plan_id == data.spec.plan_id
            || snapshot.plan(&body.service_id, plan_id).is_some()
        {
            return Ok(None);
        }
        let (plan, _) = self.realm_context.served(digest).await?;
        Ok(Some(plan))
    }
}

/// The refusal of the plan or of the service for a new update.
fn against_new(
    service: &dyn UntypedService,
    there: &InstanceSpec,
    from: &PinnedPlan,
    target: &TargetPlan,
    change: &Change,
) -> Result<(), Refusal> {
    let to = &*target.plan.pinned;
    if let Some(parameters) = &change.parameters {
        let fits = target.plan.schemas.check_update(&parameters.0);
        fits.map_err(Refusal::Invalid)?;
    }
    service.check(&ProposedChange::Update {
        there,
        to,
        parameters: change.parameters.as_ref(),
        upgrades: change.upgrades(there) && !target.conflict,
    })?;
    if from.plan_id != to.plan_id && from.plan_updateable {
        service.check(&ProposedChange::Move { from, to })?;
    }
    Ok(())
}

/// Plan of the instance after the update.
struct TargetPlan {
    plan: Arc<OfferedPlan>,
    /// The requested maintenance version differs from the catalog's (B-167).
    conflict: bool,
}

impl TargetPlan {
    /// The current copy, or that of the new plan; `running`: that of the running update, whose plan is withdrawn. If
    /// the request names the catalog's maintenance version and the instance has another, the catalog's copy, whatever
    /// the plan.
    fn of(
        snapshot: &CatalogSnapshot,
        body: &UpdateBody,
        there: &InstanceSpec,
        present: &Arc<OfferedPlan>,
        running: Option<&Arc<OfferedPlan>>,
    ) -> Result<Self, Refusal> {
        let offered = |plan_id| snapshot.plan(&body.service_id, plan_id);
        let plan = match &body.plan_id {
            // Keeping a plan that was withdrawn meanwhile is not a change.
            Some(plan_id) if *plan_id != there.plan_id => {
                let found = offered(plan_id).or_else(|| running.cloned());
                found.ok_or_else(|| Refusal::unknown_plan(&body.service_id, plan_id))?
            }
            Some(_) | None => present.clone(),
        };
        let (service_id, plan_id) = (&plan.pinned.service_id, &plan.pinned.plan_id);
        let current = snapshot.plan(service_id, plan_id);
        let current = current.unwrap_or_else(|| plan.clone());
        // The catalog's version is compared, not that of the copy: so an instance can be upgraded.
        let version = current.pinned.maintenance_version();
        let asked = body.maintenance_version();
        let conflict = asked.is_some() && asked != version;
        let upgrades = asked.is_some() && asked != there.maintenance_version.as_deref();
        let plan = match upgrades && !conflict {
            true => current,
            false => plan,
        };
        Ok(Self { plan, conflict })
    }
}

fn not_there(snapshot: &CatalogSnapshot, body: &UpdateBody) -> Refusal {
    match &body.plan_id {
        Some(plan_id) if snapshot.plan(&body.service_id, plan_id).is_none() => {
            Refusal::unknown_plan(&body.service_id, plan_id)
        }
        None if !snapshot.has_service(&body.service_id) => unknown_service(&body.service_id),
        Some(_) | None => Refusal::NotFound(Resource::Instance),
    }
}

fn unknown_service(service: &ServiceId) -> Refusal {
    Refusal::Invalid(format!(
        "The catalog has no service {:?}; fetch the catalog and use its ids.",
        service.as_str()
    ))
}

/// Adds plan and version to a requested change. The maintenance version of a plan with an origin is that of a new
/// instance, not of the existing one: a change of plan changes no version unless that is requested.
fn pin_change(
    change: &mut Arc<Change>,
    body: &UpdateBody,
    there: &InstanceSpec,
    target: &OfferedPlan,
) {
    let to = &target.pinned;
    let moves = to.plan_id != there.plan_id;
    let kept = match to.origin {
        Some(_) => there.maintenance_version.as_deref(),
        None => to.maintenance_version(),
    };
    let version = body.maintenance_version().or(kept.filter(|_| moves));
    let copied = moves || target.digest != there.plan;
    // Not shared yet, so this copies nothing.
    let change = Arc::make_mut(change);
    change.plan = copied.then(|| (to.plan_id.clone(), target.digest.clone()));
    change.maintenance_version = version.map(str::to_owned);
}
