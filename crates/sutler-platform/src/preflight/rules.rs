//! The rules of a preflight, each with the sentence for the user.
//!
//! The order of the rules is the order of the violations. What is checked: `request.rs`.

use super::Violation;
use super::request::{
    BindCheck, ContextChange, PlanFacts, PreflightFacts, ProvisionCheck, RequestedParameters,
    RequestedPlan, UpdateCheck,
};
use crate::quoted_text::{quoted, shortened};
use serde_json::{Map, Value};
use sutler_osb::{PinnedPlan, Requires};
use sutler_schema::ParameterSchemas;

/// Longest sentence of a schema, in characters.
const SCHEMA_SENTENCE_CHARS_MAX: usize = 4_000;

/// The check of one kind of request.
type ParameterCheck = fn(&ParameterSchemas, &Map<String, Value>) -> Result<(), String>;

pub(super) fn provision(
    request: &ProvisionCheck<'_>,
    facts: &PreflightFacts<'_>,
) -> Vec<Violation> {
    let plan = match request.plan {
        RequestedPlan::NotFound { service, plan } => return vec![not_found(service, plan)],
        RequestedPlan::Removed(plan) => {
            return vec![removed(plan, "no instance can be made of it")];
        }
        RequestedPlan::Offered(plan) => plan,
    };
    let version = request.maintenance_version;
    let version = version.and_then(|version| check_version(plan.plan, version));
    let parameters = check_parameters(plan, request.parameters, ParameterSchemas::check_provision);
    let mut violations = check_permissions(plan.plan, "/plan", facts);
    violations.extend(version);
    violations.extend(parameters);
    violations
}

pub(super) fn update(request: &UpdateCheck<'_>, facts: &PreflightFacts<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut next = Some(request.current);
    match request
        .plan
        .filter(|plan| !is_same(plan, request.current.plan))
    {
        Some(plan) => {
            violations.extend(check_plan_change(&request.current, &plan, facts));
            next = match plan {
                RequestedPlan::Offered(plan) => Some(plan),
                RequestedPlan::NotFound { .. } | RequestedPlan::Removed(_) => None,
            };
        }
        None => violations.extend(check_context(request)),
    }
    // Without the next plan there is nothing to compare with.
    if let Some(next) = next {
        let version = request.maintenance_version;
        violations.extend(version.and_then(|version| check_version(next.plan, version)));
        let parameters = request.parameters;
        violations.extend(parameters.and_then(|parameters| {
            check_parameters(next, parameters, ParameterSchemas::check_update)
        }));
    }
    violations
}

pub(super) fn bind(request: &BindCheck<'_>, facts: &PreflightFacts<'_>) -> Vec<Violation> {
    let plan = request.plan;
    let mut violations = Vec::from_iter(check_bindable(plan.plan));
    violations.extend(check_permissions(plan.plan, "/instance", facts));
    violations.extend(check_parameters(
        plan,
        request.parameters,
        ParameterSchemas::check_bind,
    ));
    violations
}

pub(super) fn rotate(plan: &PlanFacts<'_>) -> Vec<Violation> {
    let plan = plan.plan;
    let rotatable = (!plan.binding_rotatable).then(|| {
        let sentence = format!(
            "bindings of the plan {} cannot be rotated; make a new binding, and delete this one \
             when it is not used any more",
            full_name(plan)
        );
        violation("", sentence, "P-110")
    });
    check_bindable(plan).into_iter().chain(rotatable).collect()
}

/// Whether a user names the plan that the instance has.
fn is_same(plan: &RequestedPlan<'_>, current: &PinnedPlan) -> bool {
    let plan = match plan {
        RequestedPlan::NotFound { .. } => return false,
        RequestedPlan::Removed(plan) => plan,
        RequestedPlan::Offered(facts) => facts.plan,
    };
    plan.plan_id == current.plan_id && plan.service_id == current.service_id
}

/// P-070, P-090: an instance may leave its plan, for an offered one of the same offering.
fn check_plan_change(
    current: &PlanFacts<'_>,
    plan: &RequestedPlan<'_>,
    facts: &PreflightFacts<'_>,
) -> Vec<Violation> {
    let current = current.plan;
    let mut violations = Vec::new();
    if !current.plan_updateable {
        let sentence = format!(
            "the plan of an instance of {} cannot be changed; leave the plan as it is, or make a \
             new instance",
            full_name(current)
        );
        violations.push(violation("/plan", sentence, "P-090"));
    }
    let named = match plan {
        RequestedPlan::NotFound { service, plan } => {
            violations.push(not_found(service, plan));
            return violations;
        }
        RequestedPlan::Removed(plan) => {
            violations.push(removed(plan, "no instance can be moved to it"));
            plan
        }
        RequestedPlan::Offered(facts) => facts.plan,
    };
    if named.service_id != current.service_id {
        let sentence = format!(
            "the plan {} belongs to another offering; the instance can only have a plan of {}",
            full_name(named),
            quoted(current.service_name.as_str())
        );
        violations.push(violation("/plan", sentence, "P-070"));
    }
    violations.extend(check_permissions(named, "/plan", facts));
    violations
}

/// P-091: the context alone is sent only to offerings that allow it.
fn check_context(request: &UpdateCheck<'_>) -> Option<Violation> {
    let is_alone = request.maintenance_version.is_none() && request.parameters.is_none();
    let is_changed = request.context == ContextChange::Changed;
    let plan = request.current.plan;
    (is_changed && is_alone && !plan.allow_context_updates).then(|| {
        let sentence = format!(
            "the offering {} takes no update that changes only the name; change the plan or \
             parameters with it, or keep the name",
            quoted(plan.service_name.as_str())
        );
        violation("/name", sentence, "P-091")
    })
}

/// P-071: the maintenance version is the one of the catalog.
fn check_version(plan: &PinnedPlan, version: &str) -> Option<Violation> {
    let sentence = match plan.maintenance_version() {
        Some(known) if known == version => return None,
        Some(known) => format!(
            "the maintenance version of the plan {} is {}, not {}; name that one, or none",
            full_name(plan),
            quoted(known),
            quoted(version)
        ),
        None => format!(
            "the plan {} has no maintenance version; name none",
            full_name(plan)
        ),
    };
    Some(violation("/maintenanceVersion", sentence, "P-071"))
}

/// P-044: parameters fit their schema, unless secrets complete them later.
fn check_parameters(
    plan: PlanFacts<'_>,
    parameters: RequestedParameters<'_>,
    check: ParameterCheck,
) -> Option<Violation> {
    match parameters {
        RequestedParameters::WithSecrets => None,
        RequestedParameters::Inline(parameters) => {
            let sentence = check(plan.schemas, parameters).err()?;
            let sentence = shortened(&sentence, SCHEMA_SENTENCE_CHARS_MAX);
            Some(violation("/parameters", sentence, "P-044"))
        }
    }
}

/// P-100: only a bindable plan is bound.
fn check_bindable(plan: &PinnedPlan) -> Option<Violation> {
    (!plan.bindable).then(|| {
        let sentence = format!(
            "instances of the plan {} cannot be bound; use the instance without a binding, or \
             choose a plan that can be bound",
            full_name(plan)
        );
        violation("/instance", sentence, "P-100")
    })
}

/// P-103: what the offering demands of the platform is allowed to it.
fn check_permissions(
    plan: &PinnedPlan,
    pointer: &str,
    facts: &PreflightFacts<'_>,
) -> Vec<Violation> {
    let denied = |permission: &&Requires| !facts.allowed_permissions.contains(permission);
    let denied = plan.requires.iter().filter(denied);
    denied
        .map(|permission| {
            let sentence = format!(
                "the offering {} requires {}, which its broker is not allowed to use here; ask an \
                 operator to allow it",
                quoted(plan.service_name.as_str()),
                permission_name(*permission)
            );
            violation(pointer, sentence, "P-103")
        })
        .collect()
}

fn permission_name(permission: Requires) -> &'static str {
    match permission {
        Requires::SyslogDrain => "`syslog_drain`",
        Requires::RouteForwarding => "`route_forwarding`",
        Requires::VolumeMount => "`volume_mount`",
    }
}

/// P-070: the plan is in the catalog.
fn not_found(service: &str, plan: &str) -> Violation {
    let sentence = format!(
        "there is no plan {} of {} in this namespace; choose one of its marketplace",
        quoted(plan),
        quoted(service)
    );
    violation("/plan", sentence, "P-070")
}

/// P-070: the plan is in the catalog still.
fn removed(plan: &PinnedPlan, consequence: &str) -> Violation {
    let sentence = format!(
        "the plan {} is not offered any more, so {consequence}; choose another plan",
        full_name(plan)
    );
    violation("/plan", sentence, "P-070")
}

fn violation(pointer: &str, sentence: String, rule: &'static str) -> Violation {
    Violation {
        pointer: pointer.to_owned(),
        sentence,
        rule,
    }
}

/// Plan and offering by their names.
fn full_name(plan: &PinnedPlan) -> String {
    let (plan_name, service) = (plan.plan_name.as_str(), plan.service_name.as_str());
    format!("{} of {}", quoted(plan_name), quoted(service))
}
