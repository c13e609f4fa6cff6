//! Bodies of binds and rotations, and the ids of unbinds.
//!
//! Keeps P-031 and P-032 (the context of a bind has no instance name), P-101 (`route`), P-105 and P-106 (`app_guid` only
//! on demand), P-110 and P-111 (rotation), P-120. Not here: whether a plan can be bound (`preflight`), and bytes
//! (`sutler-client`).

use super::profile::{NamespaceContext, Profile};
use serde_json::{Map, Value};
use sutler_client::PlanIds;
use sutler_osb::{BindBody, BindResource, BindingId, NonEmptyText, Parameters, PinnedPlan};

/// What a binding is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindTarget<'a> {
    /// Credentials, for no resource in particular.
    Credentials,
    /// An application, because the broker demanded one.
    Application,
    /// A route whose requests the service handles.
    Route(&'a NonEmptyText),
}

/// The binding that a rotation replaces. Exists only for plans that rotate bindings (P-110).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor<'a>(&'a BindingId);

impl<'a> Predecessor<'a> {
    /// The replaced binding as a predecessor; `None` if the plan does not rotate bindings: then the new binding is an
    /// ordinary one.
    pub fn new(plan: &PinnedPlan, replaced: &'a BindingId) -> Option<Self> {
        plan.binding_rotatable.then_some(Self(replaced))
    }
}

/// A bind of one intent. Not `Debug`: parameters hold secrets.
#[derive(Clone, Copy)]
pub struct BindRequest<'a> {
    /// The offering and the plan of the instance.
    pub plan: &'a PlanIds,
    /// What the binding is for.
    pub target: BindTarget<'a>,
    /// The parameters, with those of secrets.
    pub parameters: &'a Map<String, Value>,
    /// The binding that this one replaces.
    pub predecessor: Option<Predecessor<'a>>,
    /// The namespace now.
    pub namespace: NamespaceContext<'a>,
}

/// The body of a bind or rotation. Parameters are left out if there are none.
pub fn bind_body(bind: &BindRequest<'_>) -> BindBody {
    let parameters = bind.parameters;
    BindBody {
        service_id: Some(bind.plan.service_id.clone()),
        plan_id: Some(bind.plan.plan_id.clone()),
        context: Some(bind.namespace.of_binding()),
        app_guid: None,
        bind_resource: bind_resource(bind),
        parameters: (!parameters.is_empty()).then(|| Parameters(parameters.clone())),
        predecessor_binding_id: bind.predecessor.map(|Predecessor(id)| id.clone()),
    }
}

fn bind_resource(bind: &BindRequest<'_>) -> Option<BindResource> {
    match bind.target {
        BindTarget::Credentials => None,
        BindTarget::Application => Some(BindResource {
            app_guid: Some(bind.namespace.app_guid().to_string()),
            space_guid: match bind.namespace.profile() {
                Profile::CloudFoundry => Some(bind.namespace.space_guid().clone()),
                Profile::Kubernetes | Profile::Sutler => None,
            },
            ..BindResource::default()
        }),
        BindTarget::Route(route) => Some(BindResource {
            route: Some(route.to_string()),
            ..BindResource::default()
        }),
    }
}

/// Ids of an unbind and of its polls (P-120): the offering and the plan that the instance has now, which need not be the
/// plan it was bound with.
pub fn unbind_ids(confirmed: &PlanIds) -> PlanIds {
    confirmed.clone()
}
