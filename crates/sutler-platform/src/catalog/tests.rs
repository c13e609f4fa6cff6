//! Catalogs of brokers that the tests of this module share, and syncs of them.

mod restriction_laws;
mod restrictions;
mod stored_items;
mod sync;
mod sync_bounds;
mod sync_laws;
mod unusable_items;
mod visibility;

use super::{
    FaultOutcome, ItemChange, KnownCatalog, OfferedPlan, OfferedService, PlanKey, SyncPlan,
    plan_sync,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use sutler_osb::{PlanId, ServiceId};

/// A plan whose name is its id.
pub(super) fn plan(id: &str) -> Value {
    json!({"id": id, "name": id, "description": "A plan."})
}

/// An offering whose name is its id.
pub(super) fn service(id: &str, plans: impl Into<Vec<Value>>) -> Value {
    json!({
        "id": id,
        "name": id,
        "description": "An offering.",
        "bindable": true,
        "plans": plans.into(),
    })
}

/// The same object with another value.
pub(super) fn with(mut object: Value, field: &str, value: impl Into<Value>) -> Value {
    object[field] = value.into();
    object
}

/// The same object without a field.
pub(super) fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().remove(field);
    object
}

pub(super) fn service_id(id: &str) -> ServiceId {
    id.try_into().unwrap()
}

pub(super) fn plan_key(service: &str, plan: &str) -> PlanKey {
    PlanKey {
        service_id: service_id(service),
        plan_id: PlanId::try_from(plan).unwrap(),
    }
}

/// The moment of a sync.
pub(super) fn moment(second: i64) -> Timestamp {
    Timestamp::from_second(1_750_000_000 + second).unwrap()
}

/// Nothing is in use.
pub(super) fn unused(_: &ServiceId, _: Option<&PlanId>) -> bool {
    false
}

/// Everything is in use.
pub(super) fn used(_: &ServiceId, _: Option<&PlanId>) -> bool {
    true
}

/// Applies one sync, at which nothing is in use.
pub(super) fn sync(known: &mut KnownCatalog, services: impl Into<Vec<Value>>) -> SyncPlan {
    let plan = plan_sync(known, services.into(), moment(1), &unused);
    plan.apply(known);
    plan
}

/// What is kept after the first sync.
pub(super) fn known(services: impl Into<Vec<Value>>) -> KnownCatalog {
    let mut known = KnownCatalog::default();
    let plan = sync(&mut known, services);
    assert_eq!(faults(&plan), Vec::<String>::new());
    known
}

/// Names of all items, one text each; a `-` marks a removed item.
pub(super) fn items(known: &KnownCatalog) -> Vec<String> {
    let mark = |is_removed| if is_removed { "-" } else { "" };
    let services = known.services().values();
    let services =
        services.map(|it: &OfferedService| format!("{}{}", mark(it.is_removed()), it.name()));
    let plans = known.plans().values();
    let plans = plans.map(|it: &OfferedPlan| {
        let (mark, service) = (mark(it.is_removed()), it.service_id());
        format!("{mark}{service}/{}", it.name())
    });
    services.chain(plans).collect()
}

/// The changes of a plan that do something, one text each, e.g. `added s/p`.
pub(super) fn changes(plan: &SyncPlan) -> Vec<String> {
    let services = plan.services.iter();
    let services = services.map(|(id, change)| (id.to_string(), word(change)));
    let plans = plan.plans.iter();
    let plans = plans.map(|(key, change)| {
        let name = format!("{}/{}", key.service_id, key.plan_id);
        (name, word(change))
    });
    let all = services.chain(plans);
    let changes = all.filter(|(_, word)| *word != "unchanged");
    changes
        .map(|(name, word)| format!("{word} {name}"))
        .collect()
}

fn word<T>(change: &ItemChange<T>) -> &'static str {
    match change {
        ItemChange::Added(_) => "added",
        ItemChange::Changed(_) => "changed",
        ItemChange::Returned(_) => "returned",
        ItemChange::Removed(_) => "removed",
        ItemChange::Dropped => "dropped",
        ItemChange::Unchanged => "unchanged",
        ItemChange::Unusable => "unusable",
    }
}

/// The faults of a plan, one sentence each.
pub(super) fn faults(plan: &SyncPlan) -> Vec<String> {
    assert_eq!(plan.faults.omitted, 0);
    plan.faults.listed.iter().map(ToString::to_string).collect()
}

/// What became of the items with faults.
pub(super) fn outcomes(plan: &SyncPlan) -> Vec<FaultOutcome> {
    plan.faults.listed.iter().map(|it| it.outcome).collect()
}
