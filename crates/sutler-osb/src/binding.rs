//! Bodies of the binding endpoints: bind (and rotate), fetch.
//!
//! Shapes only; the rules about them are in `sutler-broker`. The parts of a binding that have rules
//! of their own are in `endpoint.rs`, `volume.rs` and `time.rs`; unbind and polls in `operation.rs`.

use crate::body::BodyError;
use crate::endpoint::Endpoint;
use crate::ids::{BindingId, OperationToken, PlanId, ServiceId};
use crate::json_objects::{Context, Credentials, Parameters};
use crate::non_empty_text::NonEmptyText;
use crate::serde_optional;
use crate::time::BindingMetadata;
use crate::volume::VolumeMount;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The body of a bind or, with a predecessor, of a rotation (B-181, B-201).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BindBody {
    /// The service offering; a rotation may leave it out. See [`BindBody::required_ids`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_id: Option<ServiceId>,
    /// The plan; a rotation may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    /// Where on the platform the binding belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Deprecated by `bind_resource.app_guid`. See [`BindBody::requested_app`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_guid: Option<NonEmptyText>,
    /// Resource to bind.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub bind_resource: Option<BindResource>,
    /// Parameters of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// The binding that this one replaces; makes the request a rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor_binding_id: Option<BindingId>,
}

impl BindBody {
    /// Both ids, or the error to answer with if a bind that is not a rotation lacks one.
    pub fn required_ids(&self) -> Result<(&ServiceId, &PlanId), BodyError> {
        let missing = |path: &str| BodyError::Missing {
            path: path.to_owned(),
        };
        let service_id = self
            .service_id
            .as_ref()
            .ok_or_else(|| missing(ServiceId::FIELD))?;
        let plan_id = self
            .plan_id
            .as_ref()
            .ok_or_else(|| missing(PlanId::FIELD))?;
        Ok((service_id, plan_id))
    }

    /// The application to bind: that of `bind_resource`, else the deprecated one (B-187).
    pub fn requested_app(&self) -> Option<&str> {
        self.bind_resource
            .as_ref()
            .and_then(|resource| resource.app_guid.as_deref())
            .filter(|app| !app.is_empty())
            .or_else(|| self.app_guid.as_ref().map(NonEmptyText::as_str))
    }
}

/// The resource to bind: an application, a route, or more on Cloud Foundry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindResource {
    /// The application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_guid: Option<String>,
    /// The route whose requests are to be proxied (B-193).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Cloud Foundry: the application's space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_guid: Option<NonEmptyText>,
    /// Cloud Foundry: the application's annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_annotations: Option<Map<String, Value>>,
    /// Cloud Foundry: the client that may read the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_client_id: Option<NonEmptyText>,
}

/// The answer to a bind that is done (200, 201) (B-189). `Debug` shows none of it: its URLs may
/// contain passwords, too.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BindResponse {
    /// When the binding ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub metadata: Option<BindingMetadata>,
    /// Credentials for the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Where to send logs (B-192).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syslog_drain_url: Option<String>,
    /// Where to send the route's requests (B-193).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_service_url: Option<String>,
    /// Volumes to mount (B-194).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Every network endpoint the application needs (B-195).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
}

/// The answer to an asynchronous bind (202): never credentials (B-184).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsyncBindResponse {
    /// Operation token for polls.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::empty_is_absent"
    )]
    pub operation: Option<OperationToken>,
}

/// A fetched binding: the fields of the bind response, and the parameters (B-231).
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FetchBindingResponse {
    /// When the binding ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "serde_optional::optional"
    )]
    pub metadata: Option<BindingMetadata>,
    /// Credentials for the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Where to send logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syslog_drain_url: Option<String>,
    /// Where to send the route's requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_service_url: Option<String>,
    /// Volumes to mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// The parameters of the bind, possibly without the secret ones (B-233).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// Every network endpoint the application needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
}

impl FetchBindingResponse {
    /// The response of a bind, in the form of a fetch.
    pub fn of_bind(bind: BindResponse, parameters: Option<Parameters>) -> Self {
        Self {
            metadata: bind.metadata,
            credentials: bind.credentials,
            syslog_drain_url: bind.syslog_drain_url,
            route_service_url: bind.route_service_url,
            volume_mounts: bind.volume_mounts,
            parameters,
            endpoints: bind.endpoints,
        }
    }
}

impl fmt::Debug for BindResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BindResponse(…)")
    }
}

impl fmt::Debug for FetchBindingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchBindingResponse(…)")
    }
}
