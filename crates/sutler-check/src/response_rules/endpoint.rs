//! The endpoint of a request, and the fields that the specification defines for its answers.
//!
//! Makes no decisions.

use sutler_client::wire::{Method, Request};

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointShape {
    Catalog,
    Instance(Verb),
    InstanceOperation,
    Binding(Verb),
    BindingOperation,
}

/// Operation on an instance or a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Fetch,
    Update,
    Delete,
}

impl EndpointShape {
    /// The endpoint of a request; `None` for any other path.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let is_get = request.method == Method::Get;
        match path.as_slice() {
            ["v2", "catalog"] if is_get => Some(Self::Catalog),
            ["v2", "service_instances", _] => verb(request.method).map(Self::Instance),
            ["v2", "service_instances", _, "last_operation"] if is_get => {
                Some(Self::InstanceOperation)
            }
            ["v2", "service_instances", _, "service_bindings", _] => verb(request.method)
                .filter(|it| *it != Verb::Update)
                .map(Self::Binding),
            [
                "v2",
                "service_instances",
                _,
                "service_bindings",
                _,
                "last_operation",
            ] if is_get => Some(Self::BindingOperation),
            _ => None,
        }
    }

    /// Fields that a successful response may have.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Catalog => &["services"],
            Self::Instance(Verb::Create | Verb::Update) => {
                &["dashboard_url", "operation", "metadata"]
            }
            Self::Instance(Verb::Fetch) => &[
                "service_id",
                "plan_id",
                "dashboard_url",
                "parameters",
                "maintenance_info",
                "metadata",
            ],
            Self::Instance(Verb::Delete) | Self::Binding(Verb::Delete | Verb::Update) => {
                &["operation"]
            }
            Self::InstanceOperation | Self::BindingOperation => &[
                "state",
                "description",
                "instance_usable",
                "update_repeatable",
            ],
            Self::Binding(Verb::Create | Verb::Fetch) => &[
                "operation",
                "metadata",
                "credentials",
                "syslog_drain_url",
                "route_service_url",
                "volume_mounts",
                "endpoints",
                "parameters",
            ],
        }
    }
}

fn verb(method: Method) -> Option<Verb> {
    match method {
        Method::Put => Some(Verb::Create),
        Method::Get => Some(Verb::Fetch),
        Method::Patch => Some(Verb::Update),
        Method::Delete => Some(Verb::Delete),
        Method::Post => None,
    }
}
