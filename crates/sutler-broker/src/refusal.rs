//! Refusals of requests, classified by the remedy of the caller.
//!
//! Independent of HTTP: statuses are chosen in `http/error.rs` only.

use std::fmt;
use sutler_osb::{PlanId, ServiceId};

/// Reason for refusing a request, which changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Malformed, incomplete or invalid; the sentence has the correction.
    Invalid(String),
    /// There is no such resource to read, update or bind to.
    NotFound(Resource),
    /// There is no such resource to delete: it was deleted before.
    Gone(Resource),
    /// The id is taken by a resource with other attributes.
    Conflict(Resource),
    /// It can only be done asynchronously, and the platform does not accept that. Its sentence is that of the
    /// specification: some clients recognise the refusal by it alone.
    AsyncRequired,
    /// Another operation runs; repeat the request when it has ended.
    Busy(&'static str),
    /// The binding needs an application.
    RequiresApp,
    /// The requested maintenance version differs from the catalog's.
    MaintenanceConflict,
    /// The change is not supported, or not in the present state.
    Unsupported(String),
}

impl Refusal {
    /// The catalog has no such plan.
    pub(crate) fn unknown_plan(service: &ServiceId, plan: &PlanId) -> Self {
        Self::Invalid(format!(
            "The catalog has no plan {:?} under the service {:?}; fetch the catalog and use its ids.",
            plan.as_str(),
            service.as_str()
        ))
    }
}

/// Subject of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A service instance.
    Instance,
    /// A service binding.
    Binding,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instance => "service instance",
            Self::Binding => "service binding",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(sentence) | Self::Unsupported(sentence) => f.write_str(sentence),
            Self::NotFound(what) => write!(f, "There is no {what} with this id."),
            Self::Gone(what) => write!(f, "There is no {what} with this id; nothing is left to delete."),
            Self::Conflict(what) => write!(
                f,
                "A {what} with this id exists with different attributes; choose another id, or repeat the original request."
            ),
            Self::AsyncRequired => f.write_str(
                "This service plan requires client support for asynchronous service operations.",
            ),
            Self::Busy(sentence) => f.write_str(sentence),
            Self::RequiresApp => f.write_str(
                "This service supports binding only to an application; send bind_resource.app_guid.",
            ),
            Self::MaintenanceConflict => f.write_str(
                "maintenance_info.version differs from the version in the catalog; fetch the catalog again and repeat.",
            ),
        }
    }
}

impl std::error::Error for Refusal {}
