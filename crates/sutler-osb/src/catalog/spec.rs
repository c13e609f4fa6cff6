//! The raw catalog, in which every field may be missing.
//!
//! A missing field must be reported with its path together with all other faults, instead of as the one
//! error at which a deserialiser stops. `load.rs` turns these into the checked types.

use super::schema::Schemas;
use crate::maintenance::MaintenanceInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A raw catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSpec {
    /// The offerings; mandatory.
    pub services: Option<Vec<ServiceSpec>>,
}

/// A raw service offering; [`super::ServiceOffering`] documents the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Mandatory.
    pub name: Option<String>,
    /// Mandatory.
    pub id: Option<String>,
    /// Mandatory.
    pub description: Option<String>,
    /// Free-form tags.
    pub tags: Option<Vec<String>>,
    /// Permissions the offering needs from the platform.
    pub requires: Option<Vec<String>>,
    /// Mandatory.
    pub bindable: Option<bool>,
    /// Whether instances can be fetched.
    pub instances_retrievable: Option<bool>,
    /// Whether bindings can be fetched.
    pub bindings_retrievable: Option<bool>,
    /// Whether an update may change nothing but the context.
    pub allow_context_updates: Option<bool>,
    /// For the platform's pages.
    pub metadata: Option<Map<String, Value>>,
    /// Cloud Foundry's single sign-on.
    pub dashboard_client: Option<DashboardClientSpec>,
    /// Whether plans can be changed.
    pub plan_updateable: Option<bool>,
    /// Mandatory; at least one.
    pub plans: Option<Vec<PlanSpec>>,
}

/// A raw plan; [`super::Plan`] documents the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanSpec {
    /// Mandatory.
    pub id: Option<String>,
    /// Mandatory.
    pub name: Option<String>,
    /// Mandatory.
    pub description: Option<String>,
    /// For the platform's pages.
    pub metadata: Option<Map<String, Value>>,
    /// Whether it costs nothing.
    pub free: Option<bool>,
    /// Overrides the offering's.
    pub bindable: Option<bool>,
    /// Whether bindings can be rotated.
    pub binding_rotatable: Option<bool>,
    /// Overrides the offering's.
    pub plan_updateable: Option<bool>,
    /// Schemas of the parameters.
    pub schemas: Option<Schemas>,
    /// Seconds.
    pub maximum_polling_duration: Option<i64>,
    /// The maintenance version of the instances.
    pub maintenance_info: Option<MaintenanceInfo>,
    /// Origin of the plan; set by code, never read from a file and never shown.
    #[serde(skip)]
    pub origin: Option<String>,
}

/// A raw dashboard client. `Debug` hides the secret.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DashboardClientSpec {
    /// Mandatory.
    pub id: Option<String>,
    /// Mandatory.
    pub secret: Option<String>,
    /// URL to which the log-in returns.
    pub redirect_uri: Option<String>,
}

impl fmt::Debug for DashboardClientSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DashboardClientSpec({:?} …)", self.id)
    }
}
