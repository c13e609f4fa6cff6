//! The items of a catalog as they are kept: offerings and plans, each with its mark if the broker removed it.
//!
//! An offering and its plans are separate items, so that one change writes one of them. Changes are planned in
//! `sync_plan.rs`; who sees an item is in `visibility.rs`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use sutler_osb::{PinnedPlan, Plan, PlanId, ServiceId, ServiceOffering};

/// An item of a catalog, and since when the broker has not offered it any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CatalogItem<T> {
    contents: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    removed_since: Option<Timestamp>,
}

/// An offering. Its list of plans is empty: they are items of their own.
pub type OfferedService = CatalogItem<ServiceOffering>;

/// A plan with the id of its offering.
pub type OfferedPlan = CatalogItem<ServicePlan>;

/// A plan of an offering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServicePlan {
    /// The offering.
    pub service_id: ServiceId,
    /// The plan as the broker sent it.
    pub plan: Plan,
}

/// Ids of a plan and of its offering.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlanKey {
    /// The offering.
    pub service_id: ServiceId,
    /// The plan.
    pub plan_id: PlanId,
}

/// What is kept of the catalog of one broker, removed items included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownCatalog {
    services: BTreeMap<ServiceId, OfferedService>,
    plans: BTreeMap<PlanKey, OfferedPlan>,
}

impl<T> CatalogItem<T> {
    pub(super) fn new(contents: T) -> Self {
        Self {
            contents,
            removed_since: None,
        }
    }

    /// What the broker sent.
    pub fn contents(&self) -> &T {
        &self.contents
    }

    /// The first sync that did not find it in the catalog; `None` if the broker offers it.
    pub fn removed_since(&self) -> Option<Timestamp> {
        self.removed_since
    }

    /// Whether the broker does not offer it any more.
    pub fn is_removed(&self) -> bool {
        self.removed_since.is_some()
    }
}

impl<T: Clone> CatalogItem<T> {
    /// A copy with the mark of a removed item.
    pub(super) fn marked(&self, since: Timestamp) -> Self {
        Self {
            contents: self.contents.clone(),
            removed_since: Some(since),
        }
    }
}

impl OfferedService {
    /// Keeps an offering without its plans, and without its dashboard client: the platform uses none, and the client's
    /// secret must not reach those who read the catalog.
    pub fn from_offering(mut offering: ServiceOffering) -> Self {
        offering.plans.clear();
        offering.dashboard_client = None;
        Self::new(offering)
    }

    /// Its id, which never changes (P-041).
    pub fn id(&self) -> &ServiceId {
        &self.contents.id
    }

    /// Its name, which is unique among the offerings that the broker has not removed.
    pub fn name(&self) -> &str {
        self.contents.name.as_str()
    }

    /// One of its plans with effective values: defaults and overrides are applied (P-045). `None` if the plan belongs
    /// to another offering.
    pub fn pinned(&self, plan: &OfferedPlan) -> Option<PinnedPlan> {
        if plan.contents.service_id != self.contents.id {
            return None;
        }
        let mut offering = self.contents.clone();
        offering.plans = vec![plan.contents.plan.clone()];
        offering.offered_plans().next().map(|plan| plan.pin())
    }
}

impl OfferedPlan {
    /// Keeps a plan.
    pub fn from_plan(service_id: ServiceId, plan: Plan) -> Self {
        Self::new(ServicePlan { service_id, plan })
    }

    /// The id of its offering.
    pub fn service_id(&self) -> &ServiceId {
        &self.contents.service_id
    }

    /// Its id, which never changes (P-041).
    pub fn id(&self) -> &PlanId {
        &self.contents.plan.id
    }

    /// Its name, which is unique among the plans of its offering that the broker has not removed.
    pub fn name(&self) -> &str {
        self.contents.plan.name.as_str()
    }

    /// Both ids.
    pub fn key(&self) -> PlanKey {
        PlanKey {
            service_id: self.service_id().clone(),
            plan_id: self.id().clone(),
        }
    }
}

impl KnownCatalog {
    /// Items as they were read from the store, in any order. Of two with the same ids the last one counts.
    pub fn new(
        services: impl IntoIterator<Item = OfferedService>,
        plans: impl IntoIterator<Item = OfferedPlan>,
    ) -> Self {
        let services = services.into_iter().map(|item| (item.id().clone(), item));
        let plans = plans.into_iter().map(|item| (item.key(), item));
        Self {
            services: services.collect(),
            plans: plans.collect(),
        }
    }

    /// All offerings, by id.
    pub fn services(&self) -> &BTreeMap<ServiceId, OfferedService> {
        &self.services
    }

    /// All plans, by the ids of their offering and their own.
    pub fn plans(&self) -> &BTreeMap<PlanKey, OfferedPlan> {
        &self.plans
    }

    /// A plan with its offering.
    pub fn plan(&self, key: &PlanKey) -> Option<(&OfferedService, &OfferedPlan)> {
        Some((self.services.get(&key.service_id)?, self.plans.get(key)?))
    }

    pub(super) fn services_mut(&mut self) -> &mut BTreeMap<ServiceId, OfferedService> {
        &mut self.services
    }

    pub(super) fn plans_mut(&mut self) -> &mut BTreeMap<PlanKey, OfferedPlan> {
        &mut self.plans
    }
}
