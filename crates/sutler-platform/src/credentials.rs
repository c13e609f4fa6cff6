//! The credentials of a binding, as they are delivered.
//!
//! What is kept is the whole answer of the broker, as a part of the document of the binding: it is sealed with it. What is
//! delivered is computed each time it is read, by the transforms of the binding. Who may read it, and the audit of that, are
//! the caller's.

use crate::lifecycle::binding::{Binding, TransformError};
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;
use sutler_osb::{BindingId, Credentials, Endpoint, VolumeMount};

/// What is delivered of a binding. `Debug` shows no value: addresses may contain passwords, too.
#[derive(Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveredCredentials {
    /// The generation that they belong to, by its id at the broker.
    #[serde(rename = "externalId")]
    pub osb_id: BindingId,
    /// The credentials, after the transforms of the binding.
    pub credentials: Credentials,
    /// Where to send logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syslog_drain_url: Option<String>,
    /// Where to send the requests of the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_service_url: Option<String>,
    /// Volumes to mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<VolumeMount>>,
    /// Network endpoints that an application needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// When the broker returned them.
    pub bound_at: Timestamp,
    /// When they stop working, if the broker says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl fmt::Debug for DeliveredCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveredCredentials")
            .field("osb_id", &self.osb_id)
            .field("bound_at", &self.bound_at)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// Why no credentials are delivered. The sentences are for users and contain no value.
#[derive(Debug, thiserror::Error)]
pub enum DeliverCredentialsError {
    /// The binding was deleted or abandoned.
    #[error("the binding is deleted")]
    Gone,
    /// The broker has not confirmed a bind.
    #[error("the binding has no credentials yet; see what its pending intents wait for")]
    NotBound,
    /// Its transforms do not fit what the broker returned. It names keys and paths, and no value.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

/// The credentials of the current generation of a binding, as they are to be delivered. A delete that is pending changes
/// nothing: they work until the broker confirmed the unbind.
///
/// # Errors
/// There are none, or they cannot be delivered.
pub fn delivered_credentials(
    binding: &Binding,
) -> Result<DeliveredCredentials, DeliverCredentialsError> {
    if binding.tombstone.is_some() {
        return Err(DeliverCredentialsError::Gone);
    }
    let current = binding.current().zip(binding.current_id());
    let (bound, osb_id) = current.ok_or(DeliverCredentialsError::NotBound)?;
    let answer = bound.credentials.as_response().clone();
    let credentials = answer.credentials.unwrap_or_default();
    Ok(DeliveredCredentials {
        osb_id: osb_id.clone(),
        credentials: binding.transforms.apply(credentials)?,
        syslog_drain_url: answer.syslog_drain_url,
        route_service_url: answer.route_service_url,
        volume_mounts: answer.volume_mounts,
        endpoints: answer.endpoints,
        bound_at: bound.bound_at,
        expires_at: bound.expires_at,
    })
}
