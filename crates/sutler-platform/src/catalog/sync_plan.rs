//! Plans a sync: compares a received catalog with what is kept of the broker, and says what to write.
//!
//! Pure: the caller fetches, writes and asks which items are in use. How items are chosen: `service_selection.rs`,
//! `plan_selection.rs`.

use super::offered_item::{
    CatalogItem, KnownCatalog, OfferedPlan, OfferedService, PlanKey, ServicePlan,
};
use super::plan_selection::PlanSelection;
use super::received_catalog::ReceivedCatalog;
use super::service_selection::{ServicePresence, ServiceSelection, is_offered, no_usable_plan};
use super::sync_fault::{FaultCollector, FaultOutcome, SyncFaults};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use sutler_osb::{PlanId, ServiceId, ServiceOffering};

/// What to write for each item, kept or received.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncPlan {
    /// Offerings. New ones are written before their plans, and dropped ones after theirs.
    pub services: BTreeMap<ServiceId, ItemChange<ServiceOffering>>,
    /// Plans.
    pub plans: BTreeMap<PlanKey, ItemChange<ServicePlan>>,
    /// Items of the catalog that are not usable.
    pub faults: SyncFaults,
}

/// What happens to one item.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemChange<T> {
    /// It is new: write it.
    Added(CatalogItem<T>),
    /// Its contents changed: write it.
    Changed(CatalogItem<T>),
    /// It is back: write it without its mark, and with its present contents.
    Returned(CatalogItem<T>),
    /// The catalog does not have it any more: write the mark.
    Removed(CatalogItem<T>),
    /// It was marked before and is unused: delete it.
    Dropped,
    /// It stays as it is.
    Unchanged,
    /// The catalog has it in a form that is not usable: its last version stays.
    Unusable,
}

/// Compares a received catalog with what is kept of the broker.
///
/// `offerings` are those of [`super::read_offerings`]; an empty list is a catalog without offerings, which marks all
/// items as removed. For a catalog that cannot be read there is no plan: nothing changes. `in_use` says whether an
/// instance uses a plan, or with `None` an offering.
///
/// # Flow
/// 1. Each offering and each plan is checked by itself; an unusable one harms no other.
/// 2. Values that must be unique go to the item that has them already, else to the first in the catalog.
/// 3. Kept items that the catalog does not have are marked; marked ones that are unused are dropped.
///
/// # Guarantees
/// * An item is dropped only if an earlier sync marked it. So no provision can be accepted between the question
///   whether it is in use and its end: after a plan with marks, plan again to drop what is unused.
/// * An item that the catalog has is never marked and never dropped, usable or not.
/// * Offered items have unique ids and names, of offerings, and of the plans of an offering.
/// * The plan of the same catalog, applied again, changes nothing but what it drops.
pub fn plan_sync(
    known: &KnownCatalog,
    offerings: Vec<Value>,
    now: Timestamp,
    in_use: &dyn Fn(&ServiceId, Option<&PlanId>) -> bool,
) -> SyncPlan {
    let received = ReceivedCatalog::read(offerings);
    let mut faults = FaultCollector::default();
    let mut services = ServiceSelection::of(known, &received, &mut faults);
    let plans = PlanSelection::of(known, &received, &services, &mut faults);
    leave_out_empty(known, &mut services, &plans, &mut faults);
    let plans = plan_changes(known, &plans, now, in_use);
    let services = service_changes(known, &services, &plans, now, in_use);
    SyncPlan {
        services,
        plans,
        faults: faults.into_faults(),
    }
}

/// Takes back the choice of new and returned offerings none of whose plans is chosen.
fn leave_out_empty(
    known: &KnownCatalog,
    services: &mut ServiceSelection<'_>,
    plans: &PlanSelection<'_>,
    faults: &mut FaultCollector,
) {
    let with_plans: BTreeSet<&ServiceId> =
        plans.chosen().keys().map(|key| &key.service_id).collect();
    let empty: Vec<_> = services
        .chosen()
        .filter(|(id, _)| !with_plans.contains(id) && !is_offered(known, id))
        .collect();
    for (id, service) in empty {
        services.without(id);
        let (position, label) = ((service.nth, None), service.received.label());
        faults.add(position, label, &no_usable_plan(), FaultOutcome::NotOffered);
    }
}

fn plan_changes(
    known: &KnownCatalog,
    selection: &PlanSelection<'_>,
    now: Timestamp,
    in_use: &dyn Fn(&ServiceId, Option<&PlanId>) -> bool,
) -> BTreeMap<PlanKey, ItemChange<ServicePlan>> {
    let mut changes = BTreeMap::new();
    for (key, plan) in selection.chosen() {
        let item = OfferedPlan::from_plan(key.service_id.clone(), (*plan).clone());
        changes.insert(key.clone(), change_to(known.plans().get(key), item));
    }
    for (key, item) in known.plans() {
        if selection.chosen().contains_key(key) {
            continue;
        }
        let change = if selection.has(key) {
            change_of_unusable(item)
        } else {
            change_of_absent(item, now, || !in_use(&key.service_id, Some(&key.plan_id)))
        };
        changes.insert(key.clone(), change);
    }
    changes
}

fn service_changes(
    known: &KnownCatalog,
    selection: &ServiceSelection<'_>,
    plans: &BTreeMap<PlanKey, ItemChange<ServicePlan>>,
    now: Timestamp,
    in_use: &dyn Fn(&ServiceId, Option<&PlanId>) -> bool,
) -> BTreeMap<ServiceId, ItemChange<ServiceOffering>> {
    let mut changes = BTreeMap::new();
    for (id, service) in selection.chosen() {
        let item = OfferedService::from_offering(service.offering.clone());
        changes.insert(id.clone(), change_to(known.services().get(id), item));
    }
    let left = plans.iter().filter(|(_, change)| !change.is_dropped());
    let with_plans: BTreeSet<&ServiceId> = left.map(|(key, _)| &key.service_id).collect();
    for (id, item) in known.services() {
        let change = match selection.presence(id) {
            ServicePresence::Chosen => continue,
            ServicePresence::Unusable => change_of_unusable(item),
            ServicePresence::Absent => {
                change_of_absent(item, now, || !with_plans.contains(id) && !in_use(id, None))
            }
        };
        changes.insert(id.clone(), change);
    }
    changes
}

fn change_to<T: PartialEq>(kept: Option<&CatalogItem<T>>, item: CatalogItem<T>) -> ItemChange<T> {
    match kept {
        None => ItemChange::Added(item),
        Some(kept) if kept.is_removed() => ItemChange::Returned(item),
        Some(kept) if *kept == item => ItemChange::Unchanged,
        Some(_) => ItemChange::Changed(item),
    }
}

fn change_of_unusable<T>(kept: &CatalogItem<T>) -> ItemChange<T> {
    if kept.is_removed() {
        ItemChange::Unchanged
    } else {
        ItemChange::Unusable
    }
}

fn change_of_absent<T: Clone>(
    kept: &CatalogItem<T>,
    now: Timestamp,
    is_unused: impl FnOnce() -> bool,
) -> ItemChange<T> {
    match kept.removed_since() {
        None => ItemChange::Removed(kept.marked(now)),
        Some(_) if is_unused() => ItemChange::Dropped,
        Some(_) => ItemChange::Unchanged,
    }
}

impl<T> ItemChange<T> {
    /// The item to write, if any.
    pub fn to_write(&self) -> Option<&CatalogItem<T>> {
        match self {
            Self::Added(item)
            | Self::Changed(item)
            | Self::Returned(item)
            | Self::Removed(item) => Some(item),
            Self::Dropped | Self::Unchanged | Self::Unusable => None,
        }
    }

    /// Whether the item is deleted.
    pub fn is_dropped(&self) -> bool {
        match self {
            Self::Dropped => true,
            Self::Added(_)
            | Self::Changed(_)
            | Self::Returned(_)
            | Self::Removed(_)
            | Self::Unchanged
            | Self::Unusable => false,
        }
    }

    fn is_settled(&self) -> bool {
        self.to_write().is_none() && !self.is_dropped()
    }
}

impl<T: Clone> ItemChange<T> {
    fn apply<K: Ord + Clone>(&self, key: &K, items: &mut BTreeMap<K, CatalogItem<T>>) {
        if let Some(item) = self.to_write() {
            items.insert(key.clone(), item.clone());
        }
        if self.is_dropped() {
            items.remove(key);
        }
    }
}

impl SyncPlan {
    /// Whether there is nothing to write or to delete.
    pub fn is_settled(&self) -> bool {
        self.services.values().all(ItemChange::is_settled)
            && self.plans.values().all(ItemChange::is_settled)
    }

    /// Applies the plan to a copy in memory. The store gets the same writes from the caller.
    pub fn apply(&self, known: &mut KnownCatalog) {
        for (id, change) in &self.services {
            change.apply(id, known.services_mut());
        }
        for (key, change) in &self.plans {
            change.apply(key, known.plans_mut());
        }
    }
}
