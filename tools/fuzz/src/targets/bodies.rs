//! JSON bodies in both directions: they round trip, or are refused with a sentence.

use super::Verdict;
use crate::properties::{body, same};
use sutler_osb::{
    AsyncBindResponse, BindBody, BindResponse, DeleteResponse, Endpoint, ErrorBody,
    FetchBindingResponse, FetchInstanceResponse, LastOperationResponse, OperationKind,
    ProvisionBody, ProvisionResponse, UpdateBody, UpdateResponse, from_json,
};

pub(super) const REQUEST_WORDS: &[&str] = &[
    "service_id",
    "plan_id",
    "organization_guid",
    "space_guid",
    "context",
    "parameters",
    "maintenance_info",
    "version",
    "previous_values",
    "organization_id",
    "space_id",
    "app_guid",
    "bind_resource",
    "route",
    "app_annotations",
    "credential_client_id",
    "predecessor_binding_id",
    "platform",
    "hush",
];

pub(super) const RESPONSE_WORDS: &[&str] = &[
    "dashboard_url",
    "operation",
    "metadata",
    "labels",
    "attributes",
    "state",
    "description",
    "in progress",
    "succeeded",
    "failed",
    "instance_usable",
    "update_repeatable",
    "error",
    "AsyncRequired",
    "ConcurrencyError",
    "credentials",
    "syslog_drain_url",
    "route_service_url",
    "volume_mounts",
    "driver",
    "container_dir",
    "mode",
    "r",
    "rw",
    "device_type",
    "shared",
    "device",
    "volume_id",
    "mount_config",
    "endpoints",
    "host",
    "ports",
    "443",
    "9000-9010",
    "protocol",
    "tcp",
    "udp",
    "all",
    "expires_at",
    "renew_before",
    "2030-01-31T23:59:59.0Z",
    "parameters",
    "service_id",
    "plan_id",
    "maintenance_info",
    "hush",
];

pub(super) fn provision(input: &[u8]) -> Verdict {
    body::<ProvisionBody>(input)
}

pub(super) fn update(input: &[u8]) -> Verdict {
    if let Ok(update) = from_json::<UpdateBody>(input) {
        // B-170: nothing but the context, so no other field may be present.
        let more = update.plan_id.is_some() || update.parameters.is_some();
        same(
            &(update.is_context_only() && more),
            &false,
            "a context-only update asks for more",
        )?;
    }
    body::<UpdateBody>(input)
}

pub(super) fn bind(input: &[u8]) -> Verdict {
    if let Ok(bind) = from_json::<BindBody>(input) {
        let both = bind.service_id.is_some() && bind.plan_id.is_some();
        same(&bind.required_ids().is_ok(), &both, "the required ids")?;
        same(
            &(bind.requested_app() == Some("")),
            &false,
            "an app without a name",
        )?;
    }
    body::<BindBody>(input)
}

pub(super) fn provision_response(input: &[u8]) -> Verdict {
    body::<ProvisionResponse>(input)
}

pub(super) fn update_response(input: &[u8]) -> Verdict {
    body::<UpdateResponse>(input)
}

pub(super) fn bind_response(input: &[u8]) -> Verdict {
    if let Ok(bind) = from_json::<BindResponse>(input) {
        same(
            &format!("{bind:?}").as_str(),
            &"BindResponse(…)",
            "shows credentials",
        )?;
    }
    body::<BindResponse>(input)
}

pub(super) fn operation_response(input: &[u8]) -> Verdict {
    body::<AsyncBindResponse>(input)?;
    body::<DeleteResponse>(input)
}

pub(super) fn fetched_instance(input: &[u8]) -> Verdict {
    body::<FetchInstanceResponse>(input)
}

pub(super) fn fetched_binding(input: &[u8]) -> Verdict {
    body::<FetchBindingResponse>(input)
}

pub(super) fn last_operation(input: &[u8]) -> Verdict {
    if let Ok(response) = from_json::<LastOperationResponse>(input) {
        let scoped = response.scoped_to(OperationKind::Bind);
        let said = scoped.instance_usable.is_some() || scoped.update_repeatable.is_some();
        same(&said, &false, "a bind says more than it may")?;
    }
    body::<LastOperationResponse>(input)
}

pub(super) fn error(input: &[u8]) -> Verdict {
    body::<ErrorBody>(input)
}

pub(super) fn endpoint(input: &[u8]) -> Verdict {
    body::<Endpoint>(input)
}
