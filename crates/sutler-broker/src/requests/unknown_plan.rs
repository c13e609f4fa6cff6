//! Provisions of plans that are not in the current catalog: repeated requests, and plans that may still appear.
//!
//! While the catalog is being refreshed, a plan may be about to appear. A platform that accepts incomplete
//! operations gets 202 and the operation waits (`executor/await_plan.rs`); any other request waits for its
//! response. Both waits are bounded. Otherwise the plan is refused, with the reason if it is known.

use super::instance::async_request;
use super::{
    ChangeOutcome, RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended,
};
use crate::catalog::OfferedPlan;
use crate::catalog_source::PlanAvailability;
use crate::lifecycle::Verb;
use crate::lifecycle::instance::{Event, Instance, InstanceSpec, Provision, decide};
use crate::refusal::Refusal;
use crate::resources::{INSTANCE, RequestBody, WAITS, WAITS_FOR_PLAN};
use crate::service::Policy;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Key, List};
use tokio::time::Instant;

/// Interval between checks of the catalog.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const NOT_YET: &str = "The catalog is being brought up to date, and does not have this plan yet; wait a little, then repeat.";
const TOO_MANY: &str = "The catalog is being brought up to date, and many requests wait for it already; wait a little, then repeat.";

/// Outcome of a provision of a plan that is not offered.
pub(super) enum UnknownPlan {
    /// A repeat of the request that created the instance, which has its own copy of the plan.
    Repeated(Arc<OfferedPlan>),
    /// The plan is offered now: look it up again.
    Come,
    /// The request is handled.
    Answered(Box<ChangeOutcome<Instance>>),
}

impl RequestHandler {
    /// Handles a provision whose plan is not offered.
    pub(super) async fn unknown_plan(
        &self,
        key: &Key,
        wanted: &InstanceSpec,
        asked: Option<&str>,
        info: &RequestInfo,
    ) -> Result<UnknownPlan, RequestError> {
        match self.there(key, wanted).await? {
            // The operation waits; a caller that does not accept 202 must repeat the request later.
            Some(there) if there.waits_for_plan() && !info.accepts_incomplete => {
                return Err(Refusal::Busy(NOT_YET).into());
            }
            Some(there) if there.waits_for_plan() => {}
            // A repeat of the creating request gets its result (B-087, B-123). No new instance is
            // created of such a plan.
            Some(there) => {
                let (plan, _) = self.realm_context.served(&there.plan).await?;
                return Ok(UnknownPlan::Repeated(plan));
            }
            None => {
                let availability = self.availability(wanted).await;
                if !availability.refreshing {
                    self.realm_context.catalog.catch_up().await;
                    return match self.is_offered(wanted) {
                        true => Ok(UnknownPlan::Come),
                        false => Err(refusal(wanted, availability).into()),
                    };
                }
                if !info.accepts_incomplete {
                    return self.wait_here(wanted).await.map(|()| UnknownPlan::Come);
                }
            }
        }
        let waiting = self.wait_in_lane(key, wanted, asked, info).await?;
        Ok(UnknownPlan::Answered(Box::new(waiting)))
    }

    /// The existing instance, if it has this plan.
    async fn there(
        &self,
        key: &Key,
        wanted: &InstanceSpec,
    ) -> Result<Option<Arc<InstanceSpec>>, RequestError> {
        let was = self.realm_context.records.load::<Instance>(key).await?;
        let spec = was.state.data().map(|it| it.spec.clone());
        Ok(spec.filter(|it| it.service_id == wanted.service_id && it.plan_id == wanted.plan_id))
    }

    fn is_offered(&self, wanted: &InstanceSpec) -> bool {
        let snapshot = self.realm_context.catalog.snapshot();
        snapshot.plan(&wanted.service_id, &wanted.plan_id).is_some()
    }

    async fn availability(&self, wanted: &InstanceSpec) -> PlanAvailability {
        let catalog = &self.realm_context.catalog;
        catalog
            .availability(&wanted.service_id, &wanted.plan_id)
            .await
    }

    /// Waits until the plan is offered, while the caller waits for the response.
    async fn wait_here(&self, wanted: &InstanceSpec) -> Result<(), RequestError> {
        let max = self.realm_context.settings.patience.waiting_max;
        let Some(_permit) = self.realm_context.catalog.source.wait_permit(max) else {
            return Err(Refusal::Busy(TOO_MANY).into());
        };
        let until = Instant::now() + self.realm_context.settings.patience.sync_wait;
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let availability = self.availability(wanted).await;
            if !availability.refreshing {
                self.realm_context.catalog.catch_up().await;
            }
            if self.is_offered(wanted) {
                return Ok(());
            }
            if !availability.refreshing {
                return Err(refusal(wanted, availability).into());
            }
            if Instant::now() >= until {
                return Err(Refusal::Busy(NOT_YET).into());
            }
        }
    }

    /// Accepts the provision without its plan; the operation waits for the plan.
    async fn wait_in_lane(
        &self,
        key: &Key,
        wanted: &InstanceSpec,
        asked: Option<&str>,
        info: &RequestInfo,
    ) -> Result<ChangeOutcome<Instance>, RequestError> {
        let wanted = Arc::new(InstanceSpec {
            plan: String::new(),
            maintenance_version: asked.map(str::to_owned),
            ..wanted.clone()
        });
        let policy = Policy::default();
        let draft = draft(RequestBody::Provision(wanted.clone()), info);
        for _ in 0..TRIES {
            let was = self.realm_context.records.load::<Instance>(key).await?;
            if self.resume_purge(key, &was.state, info).await? {
                continue;
            }
            let there = was.state.data();
            let provision = Provision {
                same: there.is_some_and(|it| it.spec.same_request(&wanted)),
                wanted: wanted.clone(),
                against: None,
                maintenance_conflict: false,
                dashboard_url: None,
                async_request: async_request(info, policy.asynchrony),
            };
            let decision = decide(was.state.clone(), Event::Provision(Box::new(provision)))?;
            if !decision.effects.is_empty() && self.is_full().await? {
                return Err(Refusal::Busy(TOO_MANY).into());
            }
            let committed = self.commit_and_start(key, &was, decision, &draft, None);
            if let Some(committed) = committed.await? {
                return self
                    .respond(key, committed, info, &policy, Verb::Provision)
                    .await;
            }
        }
        Err(too_contended())
    }

    /// Whether the limit of waiting provisions is reached.
    async fn is_full(&self) -> Result<bool, RequestError> {
        let records = &self.realm_context.records;
        let max = self.realm_context.settings.patience.waiting_max;
        let waiting = List::term(&records.realm, INSTANCE, WAITS, WAITS_FOR_PLAN);
        let page = records.store.list(&waiting, None, max.max(1)).await?;
        Ok(page.documents.len() >= max)
    }
}

fn refusal(wanted: &InstanceSpec, availability: PlanAvailability) -> Refusal {
    match availability.withdrawn {
        Some(sentence) => Refusal::Invalid(sentence),
        None => Refusal::unknown_plan(&wanted.service_id, &wanted.plan_id),
    }
}
