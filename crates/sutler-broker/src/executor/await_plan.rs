//! Runs a provision that was accepted before its plan was offered: it waits for the catalog, is validated, and
//! continues or is refused. It is accepted by `requests/unknown_plan.rs`.

use super::{BrokerExecutor, RunOutcome, instance_id, stopped};
use crate::catalog::OfferedPlan;
use crate::lifecycle::End;
use crate::lifecycle::instance::{HookOutput, Instance, InstanceData, InstanceSpec};
use crate::refusal::Refusal;
use crate::resources::{Detail, RefusedAs, Request};
use crate::service::{ProposedChange, ProposedRequest};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Commit, Lost, Run, StoreTime, Version};
use sutler_records::LoadedDocument;

/// Interval between checks of the catalog.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const TOO_LATE: &str = "The catalog is still being brought up to date, and does not have this plan yet; wait until it is, then provision again.";

impl BrokerExecutor {
    /// Looks up the plan of an instance that waits for it. `None`: the plan is known, and `was` is the instance with it.
    pub(super) async fn resolve_plan(
        &self,
        run: &Run,
        was: &mut LoadedDocument<Instance>,
        request: &Request,
    ) -> Result<Option<RunOutcome<HookOutput>>, Lost> {
        loop {
            let instance_data = match &was.state {
                Instance::Creating { data }
                    if data.spec.waits_for_plan() && data.last == run.id() =>
                {
                    data
                }
                _ => return Ok(None),
            };
            if run.cancelled().is_cancelled() {
                return Ok(Some(RunOutcome::Ended(End::Failed, stopped())));
            }
            let spec = &instance_data.spec;
            let Some(plan) = self.offered(spec) else {
                return self.not_offered(run, spec).await.map(Some);
            };
            let next = match self.validated(run, instance_data, &plan, request) {
                Ok(next) => Instance::Creating { data: next },
                Err(refusal) => return Ok(Some(refused(refusal))),
            };
            let records = &self.0.records;
            let lane = &run.operation().row.lane;
            let mut commit = records.put(Commit::new(), lane, was, &next);
            let precondition = self.0.catalog.snapshot().precondition(&spec.service_id);
            if let Some((key, version)) = precondition {
                commit = commit.unchanged(key, version);
            }
            let version = Version(commit.id());
            if run.commit(commit).await?.is_ok() {
                *was = LoadedDocument::written(next, version);
                return Ok(None);
            }
            self.0.catalog.catch_up().await;
            *was = records.load_for_run::<Instance>(run, lane).await?;
        }
    }

    fn offered(&self, spec: &InstanceSpec) -> Option<Arc<OfferedPlan>> {
        let snapshot = self.0.catalog.snapshot();
        snapshot.plan(&spec.service_id, &spec.plan_id)
    }

    /// Waits while the catalog is being refreshed, within bounds; then refuses with the reason.
    async fn not_offered(
        &self,
        run: &Run,
        spec: &InstanceSpec,
    ) -> Result<RunOutcome<HookOutput>, Lost> {
        let availability = self
            .0
            .catalog
            .availability(&spec.service_id, &spec.plan_id)
            .await;
        if availability.refreshing && !self.is_late(run).await {
            return Ok(RunOutcome::Yield(LOOK_AGAIN));
        }
        // It may have appeared since the last check.
        self.0.catalog.catch_up().await;
        if self.offered(spec).is_some() {
            return Ok(RunOutcome::Yield(Duration::ZERO));
        }
        let refusal = match (availability.refreshing, availability.withdrawn) {
            (true, _) => Refusal::Busy(TOO_LATE),
            (false, Some(sentence)) => Refusal::Invalid(sentence),
            (false, None) => Refusal::unknown_plan(&spec.service_id, &spec.plan_id),
        };
        Ok(refused(refusal))
    }

    /// Whether the time limit has passed.
    async fn is_late(&self, run: &Run) -> bool {
        let accepted = run.operation().row.accepted;
        let wait = self.0.settings.patience.wait;
        match self.0.records.store.now().await {
            // Just accepted: the store's time of acceptance was not read yet.
            Ok(_) if accepted == StoreTime::default() => false,
            Ok(now) => accepted <= now.minus(wait),
            Err(_) => false,
        }
    }

    /// The checks that a provision of an offered plan passes before it is accepted.
    fn validated(
        &self,
        run: &Run,
        instance_data: &InstanceData,
        plan: &OfferedPlan,
        request: &Request,
    ) -> Result<InstanceData, Refusal> {
        let Some(service) = self.0.catalog.service(&plan.pinned) else {
            let (service, plan) = (&instance_data.spec.service_id, &instance_data.spec.plan_id);
            return Err(Refusal::unknown_plan(service, plan));
        };
        let version = plan.pinned.maintenance_version();
        let asked = instance_data.spec.maintenance_version.as_deref();
        if asked.is_some() && asked != version {
            return Err(Refusal::MaintenanceConflict);
        }
        let spec = InstanceSpec {
            plan: plan.digest.clone(),
            maintenance_version: version.map(str::to_owned),
            ..(*instance_data.spec).clone()
        };
        let fits = plan.schemas.check_provision(&spec.parameters.0);
        fits.map_err(Refusal::Invalid)?;
        service.check(&ProposedChange::Provision(&spec))?;
        let id = instance_id(&run.operation().row.lane);
        service.check_request(&ProposedRequest {
            plan: &plan.pinned,
            instance_id: &id,
            binding_id: None,
            identity: request.identity.as_ref(),
            context: spec.context.as_ref(),
        })?;
        Ok(InstanceData {
            dashboard_url: service.dashboard_url(&id, &spec),
            spec: Arc::new(spec),
            ..instance_data.clone()
        })
    }
}

fn refused(refusal: Refusal) -> RunOutcome<HookOutput> {
    let detail = Detail {
        description: Some(refusal.to_string()),
        refused: Some(RefusedAs::Invalid),
        ..Detail::default()
    };
    RunOutcome::Ended(End::Refused, detail)
}
