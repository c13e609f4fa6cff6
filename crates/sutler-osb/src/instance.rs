//! Bodies of the instance endpoints: provision, update, fetch.
//!
//! Shapes only: `sutler-broker` looks up the ids, checks the parameters and decides the response.
//! Deletes and polls are in `operation.rs`.

use crate::ids::{OperationToken, PlanId, ServiceId};
use crate::json_objects::{Context, Parameters};
use crate::maintenance::MaintenanceInfo;
use crate::non_empty_text::NonEmptyText;
use crate::serde_optional;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of a provision (B-120).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProvisionBody {
    /// The service offering.
    pub service_id: ServiceId,
    /// One of its plans.
    pub plan_id: PlanId,
    /// Deprecated by `context`, still mandatory.
    pub organization_guid: NonEmptyText,
    /// Deprecated by `context`, still mandatory.
    pub space_guid: NonEmptyText,
    /// Where on the platform the instance belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Parameters of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// The plan's maintenance version as known to the platform.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub maintenance_info: Option<MaintenanceInfo>,
}

impl ProvisionBody {
    /// The requested maintenance version; an object without one counts as absent (D-05).
    pub fn maintenance_version(&self) -> Option<&str> {
        MaintenanceInfo::requested_version(self.maintenance_info.as_ref())
    }
}

/// The body of an update (B-160). Absent fields do not change (B-161).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateBody {
    /// The service offering of the instance.
    pub service_id: ServiceId,
    /// The plan to change to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    /// Where on the platform the instance belongs now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Parameters of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// State before the update, as the platform knows it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub previous_values: Option<PreviousValues>,
    /// The maintenance version to upgrade to.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub maintenance_info: Option<MaintenanceInfo>,
}

impl UpdateBody {
    /// The requested maintenance version; an object without one counts as absent (D-05).
    pub fn maintenance_version(&self) -> Option<&str> {
        MaintenanceInfo::requested_version(self.maintenance_info.as_ref())
    }

    /// Whether nothing but the context is to change (B-170).
    pub fn is_context_only(&self) -> bool {
        self.context.is_some()
            && self.plan_id.is_none()
            && self.parameters.is_none()
            && self.maintenance_version().is_none()
    }
}

/// State before an update, as the platform knows it. Information, never a condition; so empty
/// strings, which some clients send, count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousValues {
    /// Deprecated: an instance never changes its offering.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub service_id: Option<ServiceId>,
    /// The plan before the update.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub plan_id: Option<PlanId>,
    /// Deprecated by `context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// Deprecated by `context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_id: Option<String>,
    /// The maintenance version before the update.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub maintenance_info: Option<MaintenanceInfo>,
}

/// Labels and attributes a broker attaches to an instance (B-130).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceMetadata {
    /// Names and values that platforms can select by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Map<String, Value>>,
    /// Names and values that platforms show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Map<String, Value>>,
}

/// The answer to a provision, done (200, 201) or accepted (202) (B-130).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvisionResponse {
    /// Where the user manages the instance; if there is one, it must be in the first response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_url: Option<String>,
    /// Operation token for polls; only in a 202.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub operation: Option<OperationToken>,
    /// Labels and attributes.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub metadata: Option<InstanceMetadata>,
}

/// The answer to an update: the same fields, but an absent `dashboard_url` means that it is unchanged
/// (B-171).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateResponse {
    /// The new dashboard, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_url: Option<String>,
    /// Operation token for polls; only in a 202.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub operation: Option<OperationToken>,
    /// Labels and attributes.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub metadata: Option<InstanceMetadata>,
}

/// A fetched instance (B-151).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FetchInstanceResponse {
    /// Its service offering.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub service_id: Option<ServiceId>,
    /// Its plan.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub plan_id: Option<PlanId>,
    /// Where the user manages it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard_url: Option<String>,
    /// Its parameters, possibly without the secret ones (B-154).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// The maintenance version it runs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub maintenance_info: Option<MaintenanceInfo>,
    /// Labels and attributes.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub metadata: Option<InstanceMetadata>,
}
