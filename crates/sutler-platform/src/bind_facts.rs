//! What is known of a bind before it is accepted: the state of its instance, its plan, and the rules that it breaks.

use crate::brokers::BrokerView;
use crate::executor::plan_of;
use crate::lifecycle::binding::{BindFacts, BindSpec, InstanceReadiness};
use crate::lifecycle::instance::{Instance, InstancePhase};
use crate::preflight::{
    BindCheck, PlanFacts, PreflightFacts, PreflightRequest, RequestedParameters, Violation,
    preflight,
};

/// What is known of a bind before it is accepted.
pub(crate) fn bind_facts(instance: &Instance, view: &BrokerView, spec: &BindSpec) -> BindFacts {
    let readiness = match instance.phase() {
        InstancePhase::Gone => InstanceReadiness::Gone,
        InstancePhase::Deleting => InstanceReadiness::Deleting,
        InstancePhase::New | InstancePhase::Provisioning => InstanceReadiness::NotLiveYet,
        InstancePhase::Live if !instance.usable => InstanceReadiness::Unusable,
        InstancePhase::Live => InstanceReadiness::Live,
    };
    let plan = plan_of(view, instance);
    BindFacts {
        instance: readiness,
        rotatable: plan.as_ref().is_some_and(|plan| plan.binding_rotatable),
        violations: violations(instance, view, spec),
    }
}

fn violations(instance: &Instance, view: &BrokerView, spec: &BindSpec) -> Vec<Violation> {
    let Some(plan) = plan_of(view, instance) else {
        return Vec::new();
    };
    let plan_id = &instance.basis.spec().plan;
    let schemas = view
        .catalog
        .schemas(&instance.service, plan_id)
        .unwrap_or_default();
    let check = BindCheck {
        plan: PlanFacts {
            plan: &plan,
            schemas: &schemas,
        },
        parameters: match spec.parameter_sources.is_empty() {
            true => RequestedParameters::Inline(spec.parameters.as_map()),
            false => RequestedParameters::WithSecrets,
        },
    };
    let facts = PreflightFacts {
        allowed_permissions: &view.registration.options.allowed_permissions,
    };
    preflight(&PreflightRequest::Bind(check), &facts)
}
