//! The credentials of a binding for those who may read them: opened, transformed, and not kept anywhere.

use super::problem::Problem;
use super::problem_word::ProblemWord;
use crate::lifecycle::binding::{Binding, BoundDetails};
use crate::platform::Platform;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;
use sutler_journal::SealContext;
use sutler_osb::{BindResponse, BindingId, Credentials, Endpoint, VolumeMount};
use sutler_records::RecordError;

/// What a binding delivers. No `Debug`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveredCredentials {
    external_id: Option<BindingId>,
    credentials: Credentials,
    #[serde(skip_serializing_if = "Option::is_none")]
    syslog_drain_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route_service_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume_mounts: Option<Vec<VolumeMount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<Endpoint>>,
    bound_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// The credentials of the current generation.
pub(super) fn delivered_credentials(
    platform: &Platform,
    binding: &Binding,
) -> Result<DeliveredCredentials, Problem> {
    let Some(bound) = binding.current() else {
        let detail = "The binding has no credentials yet; see its intents.";
        return Err(Problem::new(ProblemWord::WrongState, detail));
    };
    let answer = opened(platform, binding, bound)?;
    let credentials = answer.credentials.unwrap_or_default();
    let credentials = binding.transforms.apply(credentials).map_err(|error| {
        // It names keys and paths, and no value.
        Problem::new(ProblemWord::WrongState, error.to_string())
    })?;
    Ok(DeliveredCredentials {
        external_id: binding.current_id().cloned(),
        credentials,
        syslog_drain_url: answer.syslog_drain_url,
        route_service_url: answer.route_service_url,
        volume_mounts: answer.volume_mounts,
        endpoints: answer.endpoints,
        bound_at: bound.bound_at,
        expires_at: bound.expires_at,
    })
}

/// The answer of the broker: sealed for the document of the binding, in base64.
fn opened(
    platform: &Platform,
    binding: &Binding,
    bound: &BoundDetails,
) -> Result<BindResponse, Problem> {
    let records = platform.records();
    let keys = &records.keys;
    let key = keys.binding(&binding.namespace, binding.instance, binding.uid);
    let sealed = STANDARD
        .decode(bound.credentials.as_str())
        .map_err(|error| Problem::internal(&error))?;
    let opened: Result<(BindResponse, _), RecordError> =
        records.documents.open(SealContext::Document(&key), &sealed);
    Ok(opened?.0)
}
