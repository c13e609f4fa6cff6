//! A checked service offering.
//!
//! Fields that are not set stay unset, so that the response equals the source; the defaults are applied
//! by [`super::PlanRef`].

use super::plan::{Plan, PlanRef};
use crate::ids::ServiceId;
use crate::non_empty_text::NonEmptyText;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A service offering (B-055 to B-067).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceOffering {
    /// Unique in the catalog.
    pub name: NonEmptyText,
    /// Unique everywhere; never changes.
    pub id: ServiceId,
    /// For the user.
    pub description: NonEmptyText,
    /// Free-form tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Permissions the offering needs from the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<Requires>>,
    /// Whether instances can be bound; a plan may override it.
    pub bindable: bool,
    /// Whether instances can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_retrievable: Option<bool>,
    /// Whether bindings can be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindings_retrievable: Option<bool>,
    /// Whether an update may change nothing but the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_context_updates: Option<bool>,
    /// For the platform's pages; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Cloud Foundry's single sign-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_client: Option<DashboardClient>,
    /// Whether plans can be changed; a plan may override it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_updateable: Option<bool>,
    /// At least one.
    pub plans: Vec<Plan>,
}

impl ServiceOffering {
    /// Its plans, each with its effective values in this offering.
    pub fn offered_plans(&self) -> impl Iterator<Item = PlanRef<'_>> {
        self.plans.iter().map(|plan| PlanRef::new(self, plan))
    }
}

/// A permission that an offering needs from the platform (B-061).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requires {
    /// Bindings may carry `syslog_drain_url`.
    SyslogDrain,
    /// Bindings may carry `route_service_url`.
    RouteForwarding,
    /// Bindings may carry `volume_mounts`.
    VolumeMount,
}

impl Requires {
    /// The permission with this name on the wire.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "syslog_drain" => Some(Self::SyslogDrain),
            "route_forwarding" => Some(Self::RouteForwarding),
            "volume_mount" => Some(Self::VolumeMount),
            _ => None,
        }
    }
}

/// The OAuth client of a dashboard (B-066). `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DashboardClient {
    /// The client's id.
    pub id: NonEmptyText,
    /// The client's secret.
    pub secret: NonEmptyText,
    /// URL to which the log-in returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
}

impl fmt::Debug for DashboardClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DashboardClient({} …)", self.id)
    }
}
