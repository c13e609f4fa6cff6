//! Credentials of bindings: sealed as soon as a broker returns them, opened only to be delivered.
//!
//! What is sealed is the whole answer of the broker. What is delivered is computed each time it is read, by the transforms
//! of the binding. Who may read it, and the audit of that, are the caller's.

use crate::lifecycle::binding::{
    Binding, SealedCredentials, SealedCredentialsError, TransformError,
};
use crate::platform_records::PlatformRecords;
use crate::records::Record;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::de::Error as _;
use std::fmt;
use sutler_journal::{Key, SealContext, SealedWith};
use sutler_osb::{BindResponse, BindingId, Credentials, Endpoint, VolumeMount};
use sutler_records::{Documents, RecordError};
use uuid::Uuid;

/// What is delivered of a binding. `Debug` shows no value: addresses may contain passwords, too.
#[derive(Clone, PartialEq)]
pub struct DeliveredCredentials {
    /// The credentials, after the transforms of the binding.
    pub credentials: Credentials,
    /// Where to send logs.
    pub syslog_drain_url: Option<String>,
    /// Where to send the requests of the route.
    pub route_service_url: Option<String>,
    /// Volumes to mount.
    pub volume_mounts: Vec<VolumeMount>,
    /// Network endpoints that an application needs.
    pub endpoints: Vec<Endpoint>,
    /// The generation that they belong to, by its id at the broker.
    pub osb_id: BindingId,
    /// When the broker returned them.
    pub bound_at: Timestamp,
    /// When they stop working, if the broker says so.
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
    /// There is no such binding.
    #[error("there is no such binding")]
    NotFound,
    /// The binding was deleted or abandoned.
    #[error("the binding is deleted")]
    Gone,
    /// The broker has not confirmed a bind.
    #[error("the binding has no credentials yet; see what its pending intents wait for")]
    NotBound,
    /// Its transforms do not fit what the broker returned.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A newer version of the platform wrote the binding.
    #[error("another replica runs a newer version and wrote the binding; ask it")]
    NewerVersion,
    /// The binding cannot be read.
    #[error("the binding cannot be read now; repeat the request")]
    Record(#[from] RecordError),
}

/// The credentials of the current generation of a binding, as they are to be delivered. A delete that is pending changes
/// nothing: they work until the broker confirmed the unbind.
///
/// # Errors
/// There are none, or they cannot be delivered.
pub async fn deliver_credentials(
    records: &PlatformRecords,
    namespace: &str,
    instance: Uuid,
    binding: Uuid,
) -> Result<DeliveredCredentials, DeliverCredentialsError> {
    let key = records.keys.binding(namespace, instance, binding);
    let binding = match records.load::<Binding>(&key).await?.state {
        Record::Present(binding) => binding,
        Record::Newer(_) => return Err(DeliverCredentialsError::NewerVersion),
        Record::Absent => return Err(DeliverCredentialsError::NotFound),
    };
    if binding.tombstone.is_some() {
        return Err(DeliverCredentialsError::Gone);
    }
    let current = binding.current().zip(binding.current_id());
    let (bound, osb_id) = current.ok_or(DeliverCredentialsError::NotBound)?;
    let (answer, _) = open_answer(&records.documents, &key, &bound.credentials)?;
    let credentials = answer.credentials.unwrap_or_default();
    Ok(DeliveredCredentials {
        credentials: binding.transforms.apply(credentials)?,
        syslog_drain_url: answer.syslog_drain_url,
        route_service_url: answer.route_service_url,
        volume_mounts: answer.volume_mounts.unwrap_or_default(),
        endpoints: answer.endpoints.unwrap_or_default(),
        osb_id: osb_id.clone(),
        bound_at: bound.bound_at,
        expires_at: bound.expires_at,
    })
}

/// Seals the answer of a broker for the binding that it belongs to.
///
/// # Errors
/// It is too long to be kept.
pub(crate) fn seal_answer(
    documents: &Documents,
    binding: &Key,
    answer: &BindResponse,
) -> Result<SealedCredentials, SealedCredentialsError> {
    let sealed = documents.seal(SealContext::Document(binding), answer);
    SealedCredentials::try_from(STANDARD.encode(sealed))
}

/// Opens the answer of a broker. Also returns whether the current key sealed it.
///
/// # Errors
/// The ring does not open it, or it does not have its form.
pub(crate) fn open_answer(
    documents: &Documents,
    binding: &Key,
    sealed: &SealedCredentials,
) -> Result<(BindResponse, SealedWith), RecordError> {
    let bytes = STANDARD.decode(sealed.as_str()).map_err(|_| {
        let fault = serde_json::Error::custom("sealed credentials are not base64");
        RecordError::Form(fault)
    })?;
    documents.open(SealContext::Document(binding), &bytes)
}
