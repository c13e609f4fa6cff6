//! What a preflight looks at: a request, and the plans that it is about.
//!
//! Types only; the rules are in `rules.rs`.

use serde_json::{Map, Value};
use sutler_osb::{PinnedPlan, Requires};
use sutler_schema::ParameterSchemas;

/// A request that a broker would get.
#[derive(Clone, Copy, Debug)]
pub enum PreflightRequest<'a> {
    /// Creates an instance.
    Provision(ProvisionCheck<'a>),
    /// Changes an instance.
    Update(UpdateCheck<'a>),
    /// Creates a binding.
    Bind(BindCheck<'a>),
    /// Replaces a binding by a new one with other credentials.
    Rotate {
        /// The plan of the instance.
        plan: PlanFacts<'a>,
    },
}

/// Creates an instance.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionCheck<'a> {
    /// The plan that the user names.
    pub plan: RequestedPlan<'a>,
    /// The maintenance version, if the user names one.
    pub maintenance_version: Option<&'a str>,
    /// Its parameters.
    pub parameters: RequestedParameters<'a>,
}

/// Changes an instance. What is `None` stays as it is.
#[derive(Clone, Copy, Debug)]
pub struct UpdateCheck<'a> {
    /// The plan of the instance.
    pub current: PlanFacts<'a>,
    /// The plan that the user names, if it is not the plan of the instance.
    pub plan: Option<RequestedPlan<'a>>,
    /// The maintenance version, if it changes.
    pub maintenance_version: Option<&'a str>,
    /// The parameters that are sent, if there are any.
    pub parameters: Option<RequestedParameters<'a>>,
    /// Whether the context changes.
    pub context: ContextChange,
}

/// Creates a binding.
#[derive(Clone, Copy, Debug)]
pub struct BindCheck<'a> {
    /// The plan of the instance.
    pub plan: PlanFacts<'a>,
    /// Its parameters.
    pub parameters: RequestedParameters<'a>,
}

/// A plan with its effective values, as the catalog has it now; the pinned copy if the catalog has it no more.
#[derive(Clone, Copy, Debug)]
pub struct PlanFacts<'a> {
    /// The plan.
    pub plan: &'a PinnedPlan,
    /// Its schemas, from [`super::compile_schemas`].
    pub schemas: &'a ParameterSchemas,
}

/// A plan that a user names, as the catalog answers in the namespace.
#[derive(Clone, Copy, Debug)]
pub enum RequestedPlan<'a> {
    /// There is no such plan, or the namespace may not see it.
    NotFound {
        /// The offering as the user wrote it.
        service: &'a str,
        /// The plan as the user wrote it.
        plan: &'a str,
    },
    /// The broker does not offer it any more.
    Removed(&'a PinnedPlan),
    /// It can be provisioned.
    Offered(PlanFacts<'a>),
}

/// Parameters of a request.
#[derive(Clone, Copy)]
pub enum RequestedParameters<'a> {
    /// All of them are in the request; none is an empty object.
    Inline(&'a Map<String, Value>),
    /// Some come from secrets, which are read when the request is sent: the schema is checked then.
    WithSecrets,
}

/// Shows no parameters: they may be secret.
impl std::fmt::Debug for RequestedParameters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("Inline(…)"),
            Self::WithSecrets => f.write_str("WithSecrets"),
        }
    }
}

/// Whether an update tells the broker a new context, e.g. another name of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextChange {
    /// The context is as it was.
    Unchanged,
    /// The context is new.
    Changed,
}

/// What holds for every request to a broker.
#[derive(Clone, Copy, Debug)]
pub struct PreflightFacts<'a> {
    /// What offerings of this broker may demand of the platform.
    pub allowed_permissions: &'a [Requires],
}
