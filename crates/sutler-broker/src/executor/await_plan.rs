//! Runs a provision that was accepted before its plan was offered: it waits for the catalog, is validated, and
//! continues or is refused. It is accepted by `requests/unknown_plan.rs`.

use super::{BrokerExecutor, instance_id, stopped};
use crate::catalog::OfferedPlan;
use crate::lifecycle::End;
use crate::lifecycle::instance::{HookOutput, Instance, InstanceData, InstanceSpec};
use crate::refusal::Refusal;
use crate::resources::{Detail, RefusedAs};
use crate::service::ProposedChange;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Commit, Lost, Run, SealedWith, StoreTime, Version};
use sutler_records::LoadedDocument;

/// Interval between checks of the catalog.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const TOO_LATE: &str = "The catalog is still being brought up to date, and does not have this plan yet; wait until it is, then provision again.";

/// Result of looking up the plan of a provision.
pub(super) enum PlanResolution {
    /// The plan is offered; this is the updated instance.
    Yes(Box<LoadedDocument<Instance>>),
    /// Not decided yet; try again later.
    Later(Duration),
    /// The plan will not be offered.
    Never(Box<LoadedDocument<Instance>>, End<HookOutput>, Box<Detail>),
}

impl BrokerExecutor {
    /// Looks up the plan of an instance that waits for it. All others continue unchanged.
    pub(super) async fn resolved(
        &self,
        run: &Run,
        mut was: LoadedDocument<Instance>,
    ) -> Result<PlanResolution, Lost> {
        loop {
            let instance_data = match &was.state {
                Instance::Creating {
                    data: instance_data,
                } if instance_data.spec.waits_for_plan() => instance_data.clone(),
                _ => return Ok(PlanResolution::Yes(Box::new(was))),
            };
            if run.cancelled().is_cancelled() {
                let detail = Box::new(stopped());
                return Ok(PlanResolution::Never(Box::new(was), End::Failed, detail));
            }
            let Some(plan) = self.offered(&instance_data.spec) else {
                return self.not_offered(run, was, &instance_data.spec).await;
            };
            let next = match self.validated(run, &instance_data, &plan) {
                Ok(next) => Instance::Creating { data: next },
                Err(refusal) => return Ok(refused(was, refusal)),
            };
            let records = &self.0.records;
            let lane = &run.operation().row.lane;
            let mut commit = records.put(Commit::new(), lane, &was, &next);
            let precondition = self
                .0
                .catalog
                .snapshot()
                .precondition(&instance_data.spec.service_id);
            if let Some((key, version)) = precondition {
                commit = commit.unchanged(key, version);
            }
            let version = Some(Version(commit.id()));
            if run.commit(commit).await?.is_ok() {
                return Ok(PlanResolution::Yes(Box::new(LoadedDocument {
                    state: next,
                    version,
                    sealed_with: SealedWith::Current,
                })));
            }
            self.0.catalog.catch_up().await;
            was = records.load_for_run::<Instance>(run, lane).await?;
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
        was: LoadedDocument<Instance>,
        spec: &InstanceSpec,
    ) -> Result<PlanResolution, Lost> {
        let availability = self
            .0
            .catalog
            .availability(&spec.service_id, &spec.plan_id)
            .await;
        if availability.refreshing && !self.is_late(run).await {
            return Ok(PlanResolution::Later(LOOK_AGAIN));
        }
        // It may have appeared since the last check.
        self.0.catalog.catch_up().await;
        if self.offered(spec).is_some() {
            return Ok(PlanResolution::Later(Duration::ZERO));
        }
        let refusal = match (availability.refreshing, availability.withdrawn) {
            (true, _) => Refusal::Busy(TOO_LATE),
            (false, Some(sentence)) => Refusal::Invalid(sentence),
            (false, None) => Refusal::unknown_plan(&spec.service_id, &spec.plan_id),
        };
        Ok(refused(was, refusal))
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
            ..instance_data.spec.clone()
        };
        let fits = plan.schemas.check_provision(&spec.parameters.0);
        fits.map_err(Refusal::Invalid)?;
        service.check(&ProposedChange::Provision(&spec))?;
        let id = instance_id(&run.operation().row.lane);
        Ok(InstanceData {
            dashboard_url: service.dashboard_url(&id, &spec),
            spec,
            ..instance_data.clone()
        })
    }
}

fn refused(was: LoadedDocument<Instance>, refusal: Refusal) -> PlanResolution {
    let detail = Detail {
        description: Some(refusal.to_string()),
        refused: Some(RefusedAs::Invalid),
        ..Detail::default()
    };
    PlanResolution::Never(Box::new(was), End::Refused, Box::new(detail))
}
