//! The marketplace: offerings and plans that a namespace may provision, with the broker of each.
//!
//! Metadata of brokers is shown without links and pictures that may do harm (`shown_metadata.rs`).

use super::shown_metadata::shown_metadata;
use crate::catalog::{OfferedPlan, OfferedService};
use serde::Serialize;
use serde_json::{Map, Value};
use sutler_osb::{MaintenanceInfo, PinnedPlan, PlanId, Requires, Schemas, ServiceId};
use uuid::Uuid;

/// An offering.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferedClass {
    id: ServiceId,
    name: String,
    description: String,
    broker: String,
    broker_uid: Uuid,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requires: Vec<Requires>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    plans: Vec<OfferedClassPlan>,
}

/// A plan of an offering.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfferedClassPlan {
    id: PlanId,
    name: String,
    description: String,
    free: bool,
    bindable: bool,
    plan_updateable: bool,
    binding_rotatable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    maintenance_info: Option<MaintenanceInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schemas: Option<Schemas>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
}

/// The offerings of a broker, from the plans that a namespace may provision, in the order of their ids.
pub(crate) fn offered_classes<'a>(
    broker: (&str, Uuid),
    plans: impl Iterator<Item = (&'a OfferedService, &'a OfferedPlan)>,
) -> Vec<OfferedClass> {
    let mut classes: Vec<OfferedClass> = Vec::new();
    for (service, plan) in plans {
        let Some(pinned) = service.pinned(plan) else {
            continue;
        };
        let shown = OfferedClassPlan::of(plan, pinned);
        match classes.last_mut() {
            Some(last) if last.id == *service.id() => last.plans.push(shown),
            Some(_) | None => classes.push(OfferedClass {
                plans: vec![shown],
                ..OfferedClass::of(broker, service)
            }),
        }
    }
    classes
}

impl OfferedClass {
    fn of((broker, broker_uid): (&str, Uuid), service: &OfferedService) -> Self {
        let offering = service.contents();
        Self {
            id: offering.id.clone(),
            name: offering.name.as_str().to_owned(),
            description: offering.description.as_str().to_owned(),
            broker: broker.to_owned(),
            broker_uid,
            tags: offering.tags.clone().unwrap_or_default(),
            requires: offering.requires.clone().unwrap_or_default(),
            metadata: offering.metadata.clone().map(shown_metadata),
            plans: Vec::new(),
        }
    }

    /// Name, then id: the order of a marketplace.
    pub(crate) fn order(&self) -> (&str, &str) {
        (&self.name, self.id.as_str())
    }
}

impl OfferedClassPlan {
    fn of(offered: &OfferedPlan, pinned: PinnedPlan) -> Self {
        let plan = &offered.contents().plan;
        Self {
            id: plan.id.clone(),
            name: plan.name.as_str().to_owned(),
            description: plan.description.as_str().to_owned(),
            free: plan.free.unwrap_or(true),
            bindable: pinned.bindable,
            plan_updateable: pinned.plan_updateable,
            binding_rotatable: pinned.binding_rotatable,
            maintenance_info: pinned.maintenance_info,
            schemas: pinned.schemas,
            metadata: plan.metadata.clone().map(shown_metadata),
        }
    }
}
