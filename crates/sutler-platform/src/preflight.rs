//! Checks a request before it is accepted: what is known to fail without asking the broker.
//!
//! Pure, and no promise: the broker decides in the end, and the catalog may be out of date. Rules about the state of
//! an instance (deletes, protection, pending intents) are in `lifecycle.rs`; who may ask at all is not decided here.
//!
//! Read `request.rs` (what is checked), then `rules.rs` (how). `plan_schemas.rs` compiles the schemas of a plan.

mod plan_schemas;
mod request;
mod rules;
#[cfg(test)]
mod tests;

pub use plan_schemas::{PATTERNS_BYTES_MAX, compile_schemas};
pub use request::{
    BindCheck, ContextChange, PlanFacts, PreflightFacts, PreflightRequest, ProvisionCheck,
    RequestedParameters, RequestedPlan, UpdateCheck,
};

use serde::Serialize;

/// A rule that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The part of the request, as a JSON pointer, e.g. `/plan`.
    pub pointer: String,
    /// What is wrong and what to do, for the user.
    pub sentence: String,
    /// The rule, as numbered in the checklist of the specification, e.g. `P-090`.
    pub rule: &'static str,
}

/// Every rule that a request breaks, always in the same order; empty if nothing is known against it.
///
/// # Assumptions
/// The plan that a user names was looked up with [`crate::catalog::CatalogView::find`]: a plan that the namespace may
/// not see is [`RequestedPlan::NotFound`].
pub fn preflight(request: &PreflightRequest<'_>, facts: &PreflightFacts<'_>) -> Vec<Violation> {
    match request {
        PreflightRequest::Provision(provision) => rules::provision(provision, facts),
        PreflightRequest::Update(update) => rules::update(update, facts),
        PreflightRequest::Bind(bind) => rules::bind(bind, facts),
        PreflightRequest::Rotate { plan } => rules::rotate(plan),
    }
}
