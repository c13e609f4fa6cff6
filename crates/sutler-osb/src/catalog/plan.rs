//! A checked plan, a plan together with its offering, and the copy that an instance keeps.
//!
//! The defaults of the specification (P-045) are applied in [`PlanRef`], and nowhere else.

use super::offering::{Requires, ServiceOffering};
use super::schema::Schemas;
use crate::ids::{PlanId, ServiceId};
use crate::maintenance::MaintenanceInfo;
use crate::non_empty_text::NonEmptyText;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A plan (B-068 to B-079).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Unique everywhere; never changes.
    pub id: PlanId,
    /// Unique in its offering.
    pub name: NonEmptyText,
    /// For the user.
    pub description: NonEmptyText,
    /// For the platform's pages; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Whether it costs nothing; defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<bool>,
    /// Overrides the offering's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindable: Option<bool>,
    /// Whether bindings can be rotated; defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_rotatable: Option<bool>,
    /// Overrides the offering's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_updateable: Option<bool>,
    /// Schemas of the parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Schemas>,
    /// How long a platform should poll at most, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_polling_duration: Option<u64>,
    /// The maintenance version of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_info: Option<MaintenanceInfo>,
    /// Origin of the plan, as the creator of the catalog marks it. Opaque; never shown to platforms.
    #[serde(skip)]
    pub origin: Option<String>,
}

/// A plan with its offering. Its methods return effective values: defaults and overrides are applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanRef<'a> {
    service: &'a ServiceOffering,
    plan: &'a Plan,
}

impl<'a> PlanRef<'a> {
    pub(super) fn new(service: &'a ServiceOffering, plan: &'a Plan) -> Self {
        Self { service, plan }
    }

    /// The offering.
    pub fn service(&self) -> &'a ServiceOffering {
        self.service
    }

    /// The plan as it was written.
    pub fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// Whether instances can be bound (B-058, B-073).
    pub fn bindable(&self) -> bool {
        self.plan.bindable.unwrap_or(self.service.bindable)
    }

    /// Whether an instance may leave this plan for another (B-067, B-075).
    pub fn plan_updateable(&self) -> bool {
        self.plan
            .plan_updateable
            .or(self.service.plan_updateable)
            .unwrap_or(false)
    }

    /// Whether it costs nothing (B-072).
    pub fn free(&self) -> bool {
        self.plan.free.unwrap_or(true)
    }

    /// Whether bindings can be rotated (B-074).
    pub fn binding_rotatable(&self) -> bool {
        self.plan.binding_rotatable.unwrap_or(false)
    }

    /// Whether instances can be fetched (B-062).
    pub fn instances_retrievable(&self) -> bool {
        self.service.instances_retrievable.unwrap_or(false)
    }

    /// Whether bindings can be fetched (B-063).
    pub fn bindings_retrievable(&self) -> bool {
        self.service.bindings_retrievable.unwrap_or(false)
    }

    /// Whether an update may change nothing but the context (B-064).
    pub fn allow_context_updates(&self) -> bool {
        self.service.allow_context_updates.unwrap_or(false)
    }

    /// Permissions the offering needs from the platform (B-061).
    pub fn requires(&self) -> &'a [Requires] {
        self.service.requires.as_deref().unwrap_or_default()
    }

    /// The maintenance version (B-077).
    pub fn maintenance_version(&self) -> Option<&'a str> {
        MaintenanceInfo::requested_version(self.plan.maintenance_info.as_ref())
    }

    /// Schemas of the parameters (B-078).
    pub fn schemas(&self) -> Option<&'a Schemas> {
        self.plan.schemas.as_ref()
    }

    /// How long a platform should poll at most, in seconds (B-076).
    pub fn maximum_polling_duration(&self) -> Option<u64> {
        self.plan.maximum_polling_duration
    }

    /// The copy that an instance keeps when the catalog changes.
    pub fn pin(&self) -> PinnedPlan {
        PinnedPlan {
            service_id: self.service.id.clone(),
            service_name: self.service.name.clone(),
            plan_id: self.plan.id.clone(),
            plan_name: self.plan.name.clone(),
            bindable: self.bindable(),
            plan_updateable: self.plan_updateable(),
            binding_rotatable: self.binding_rotatable(),
            instances_retrievable: self.instances_retrievable(),
            bindings_retrievable: self.bindings_retrievable(),
            allow_context_updates: self.allow_context_updates(),
            requires: self.requires().to_vec(),
            maintenance_info: self.plan.maintenance_info.clone(),
            schemas: self.plan.schemas.clone(),
            maximum_polling_duration: self.maximum_polling_duration(),
            origin: self.plan.origin.clone(),
        }
    }
}

/// Copy of an offering and a plan that an instance keeps after both have left the catalog.
///
/// Every value is the effective one: no default and no override is left to apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedPlan {
    /// The offering.
    pub service_id: ServiceId,
    /// The offering's name.
    pub service_name: NonEmptyText,
    /// The plan.
    pub plan_id: PlanId,
    /// The plan's name.
    pub plan_name: NonEmptyText,
    /// Whether instances can be bound.
    pub bindable: bool,
    /// Whether an instance may leave this plan for another.
    pub plan_updateable: bool,
    /// Whether bindings can be rotated.
    pub binding_rotatable: bool,
    /// Whether instances can be fetched.
    pub instances_retrievable: bool,
    /// Whether bindings can be fetched.
    pub bindings_retrievable: bool,
    /// Whether an update may change nothing but the context.
    pub allow_context_updates: bool,
    /// Permissions the offering needs from the platform.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Requires>,
    /// The maintenance version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_info: Option<MaintenanceInfo>,
    /// Schemas of the parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Schemas>,
    /// How long a platform should poll at most, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_polling_duration: Option<u64>,
    /// Origin of the plan, as the creator of the catalog marks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

impl PinnedPlan {
    /// The maintenance version.
    pub fn maintenance_version(&self) -> Option<&str> {
        MaintenanceInfo::requested_version(self.maintenance_info.as_ref())
    }
}
