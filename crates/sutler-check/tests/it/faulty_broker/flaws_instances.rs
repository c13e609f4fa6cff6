//! Flaws of instances that only change an outgoing answer; the others are in the decisions
//! themselves. Side effects of refused provisions and updates are here too.

use super::answers::{Answer, coded, malformed};
use super::request::{BrokerRequest, RequestTarget};
use super::state::{BrokerState, Instance, Operations, Phase, RequestedState};
use axum::http::Method;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Breaks an answer.
pub(crate) fn alter(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    match (&ask.place, &ask.method) {
        (RequestTarget::Instance(_), &Method::PUT) => provision(world, ask, answer),
        (RequestTarget::Instance(_), &Method::GET) => fetch(world, ask, answer),
        (RequestTarget::Instance(_), &Method::PATCH) => update(world, ask, answer),
        (RequestTarget::Instance(_), &Method::DELETE) => deprovision(world, ask, answer),
        (RequestTarget::InstanceOperation(_), _) => last_operation(world, ask, answer),
        _ => {}
    }
}

fn provision(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let body = ask.object();
    match answer.status {
        200 if has("race-one-creation") => answer.status = 201,
        200 if has("race-same-provision") => answer.status = 409,
        200 if has("provision-repeat-done") => answer.status = 202,
        400 => refused_provision(world, body.ok().as_ref(), answer),
        422 if has("provision-maintenance-conflict") => answer.unset("error"),
        422 if has("provision-maintenance-unknown") => answer.unset("error"),
        422 if has("provision-async-required") => answer.unset("error"),
        200..=202 if has("provision-created") => answer.status = 200,
        200..=202 if has("provision-dashboard-first") => answer.unset("dashboard_url"),
        200..=202 if has("provision-maintenance-same") && is_versioned(body.as_ref().ok()) => {
            answer.become_like(coded("MaintenanceInfoConflict", "Nobody is up to date."));
        }
        200..=202 if has("provision-unknown-fields") && has_unknown_fields(body.as_ref().ok()) => {
            answer.become_like(malformed("There is a field that nobody knows."));
        }
        200..=202 if has("provision-minimal") && lacks(body.as_ref().ok(), "context") => {
            answer.become_like(malformed("There is no context."));
        }
        200..=202 if has("provision-accepted") => answer.become_like(malformed("Not today.")),
        _ => {}
    }
}

fn refused_provision(world: &BrokerState, body: Option<&Map<String, Value>>, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let fields = [
        ("provision-without-service", "service_id"),
        ("provision-without-plan", "plan_id"),
        ("provision-without-organization", "organization_guid"),
        ("provision-without-space", "space_guid"),
    ];
    for (case, field) in fields {
        if has(case) && lacks(body, field) {
            answer.status = 422;
        }
    }
    if has("provision-malformed") && is_malformed(body) {
        answer.status = 422;
    }
    let accepts = [
        ("provision-unknown-service", Fault::Service),
        ("provision-unknown-plan", Fault::Plan),
        ("provision-foreign-plan", Fault::ForeignPlan),
        ("provision-invalid-parameters", Fault::Other),
    ];
    for (case, fault) in accepts {
        if has(case) && fault_of(world, body) == fault {
            answer.become_like(Answer::new(201, json!({})));
        }
    }
}

fn fetch(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let missing = [
        "fetch-instance-unknown",
        "fetch-instance-running",
        "fetch-instance-deleted",
    ];
    match answer.status {
        404 if missing.into_iter().any(has) => answer.status = 410,
        422 if has("fetch-instance-updating") => answer.unset("error"),
        200 if has("fetch-instance-available") => answer.status = 404,
        200 if has("fetch-instance-hints") && ask.query("plan_id").is_some() => {
            answer.status = 400;
        }
        200 if has("fetch-instance-ids") => answer.set("plan_id", json!("another")),
        200 if has("fetch-instance-parameters") => {
            answer.set("parameters", json!({"replicas": -1, "title": -1}));
        }
        200 if has("fetch-instance-maintenance") => {
            answer.set("maintenance_info", json!({"version": "9.9.9"}));
        }
        200 if has("update-dashboard-first") => {
            // Another one in every answer.
            let url = format!("https://dashboard.example/{}", world.requests);
            answer.set("dashboard_url", json!(url));
        }
        _ => {}
    }
}

fn update(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let body = ask.object().ok();
    let names = |field: &str| body.as_ref().is_some_and(|it| it.contains_key(field));
    let is_plain = !names("plan_id") && !names("parameters") && !names("maintenance_info");
    match answer.status {
        400 => refused_update(world, body.as_ref(), answer),
        404 if has("update-unknown-instance") => answer.become_like(Answer::new(200, json!({}))),
        404 if has("update-deleted-instance") => answer.become_like(Answer::new(200, json!({}))),
        422 if has("update-maintenance-conflict") => answer.unset("error"),
        422 if has("update-maintenance-unknown") => answer.unset("error"),
        422 if has("update-async-required") => answer.unset("error"),
        422 if has("update-plan-fixed") => answer.status = 400,
        422 if has("update-concurrent") => answer.status = 409,
        422 if has("concurrency-error") => answer.unset("error"),
        200..=202 if has("update-parameters") && names("parameters") => answer.status = 201,
        200..=202 if has("update-plan") && names("plan_id") => answer.status = 201,
        200..=202 if has("update-context") && is_plain => answer.status = 422,
        200..=202 if has("update-maintenance-same") && is_versioned(body.as_ref()) => {
            answer.become_like(coded("MaintenanceInfoConflict", "Nobody is up to date."));
        }
        _ => {}
    }
}

fn refused_update(world: &BrokerState, body: Option<&Map<String, Value>>, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    if has("update-without-service") && lacks(body, "service_id") {
        answer.status = 422;
    }
    if has("update-malformed") && is_malformed(body) {
        answer.status = 422;
    }
    let accepts = [
        ("update-unknown-service", Fault::Service),
        ("update-unknown-plan", Fault::Plan),
        ("update-foreign-plan", Fault::ForeignPlan),
    ];
    for (case, fault) in accepts {
        if has(case) && fault_of(world, body) == fault {
            answer.become_like(Answer::new(200, json!({})));
        }
    }
}

fn deprovision(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let missing = [
        "deprovision-gone",
        "deprovision-unknown",
        "race-same-deprovision",
    ];
    match answer.status {
        410 if missing.into_iter().any(has) => answer.status = 404,
        400 if has("deprovision-without-service") && ask.query("service_id").is_none() => {
            answer.status = 422;
        }
        400 if has("deprovision-without-plan") && ask.query("plan_id").is_none() => {
            answer.status = 422;
        }
        422 if has("deprovision-async-required") => answer.unset("error"),
        200..=202 if has("deprovision-deleted") => answer.status = 204,
        _ => {}
    }
}

fn last_operation(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has = |case: &str| world.flaws.has(case);
    let begins = |verb: &str| {
        ask.query("operation")
            .is_some_and(|it| it.starts_with(verb))
    };
    let is_running = |answer: &Answer| {
        let body = answer.body.as_ref();
        body.is_some_and(|it| it["state"] == "in progress")
    };
    match answer.status {
        404 if has("last-operation-unknown") => {
            answer.become_like(Answer::new(200, json!({"state": "succeeded"})));
        }
        400 if has("last-operation-empty") => {
            answer.become_like(Answer::new(200, json!({"state": "succeeded"})));
        }
        200 if has("provision-done") => answer.set("state", json!("in progress")),
        200 if has("provision-started") && begins("provision") => answer.status = 500,
        200 if has("update-ends") && begins("update") => answer.status = 500,
        200 if has("last-operation-410") && is_running(answer) => answer.status = 410,
        200 if has("last-operation-hints") && ask.query("service_id").is_none() => {
            answer.status = 400;
        }
        _ => {}
    }
}

/// Faults of the ids in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Service,
    Plan,
    ForeignPlan,
    Other,
}

fn fault_of(world: &BrokerState, body: Option<&Map<String, Value>>) -> Fault {
    let text = |name: &str| body.and_then(|it| it.get(name)).and_then(Value::as_str);
    let filled = |name: &str| text(name).filter(|it| !it.is_empty());
    let catalog = world.kit.catalog();
    let services = catalog["services"].as_array().cloned().unwrap_or_default();
    let is_plan = |service: &Value, id: &str| {
        let plans = service["plans"].as_array();
        plans.is_some_and(|all| all.iter().any(|it| it["id"] == id))
    };
    let (Some(service), plan) = (filled("service_id"), filled("plan_id")) else {
        return Fault::Other;
    };
    let Some(offering) = services.iter().find(|it| it["id"] == service) else {
        return Fault::Service;
    };
    match plan {
        Some(plan) if is_plan(offering, plan) => Fault::Other,
        Some(plan) if services.iter().any(|it| is_plan(it, plan)) => Fault::ForeignPlan,
        Some(_) => Fault::Plan,
        None => Fault::Other,
    }
}

/// Whether a body names a service or a plan that is not offered.
pub(crate) fn names_nothing(world: &BrokerState, ask: &BrokerRequest) -> bool {
    fault_of(world, ask.object().ok().as_ref()) != Fault::Other
}

fn lacks(body: Option<&Map<String, Value>>, field: &str) -> bool {
    body.is_some_and(|it| matches!(it.get(field).map(Value::as_str), None | Some(Some(""))))
}

fn is_malformed(body: Option<&Map<String, Value>>) -> bool {
    let Some(body) = body else {
        return true;
    };
    let is_text = |name: &str| body.get(name).is_none_or(Value::is_string);
    let is_object = |name: &str| body.get(name).is_none_or(Value::is_object);
    !is_text("service_id") || !is_text("plan_id") || !is_object("parameters")
}

fn is_versioned(body: Option<&Map<String, Value>>) -> bool {
    body.is_some_and(|it| it.contains_key("maintenance_info"))
}

fn has_unknown_fields(body: Option<&Map<String, Value>>) -> bool {
    body.is_some_and(|it| it.contains_key("sutler-check"))
}

/// Leaves a resource behind although the provision was refused.
pub(crate) fn leave(
    world: &mut BrokerState,
    id: &str,
    wanted: Option<&RequestedState>,
    refusal: &Answer,
) {
    let is_async = refusal
        .body
        .as_ref()
        .is_some_and(|it| it["error"] == "AsyncRequired");
    let left = world.flaws.has("provision-refused-makes-nothing")
        || is_async && world.flaws.has("async-required-makes-nothing");
    let Some(wanted) = wanted.filter(|_| left && world.instance(id).is_none()) else {
        return;
    };
    let instance = Instance {
        phase: Phase::Live,
        is: wanted.clone(),
        update: None,
        operations: Operations::default(),
        bindings: BTreeMap::new(),
    };
    world.instances.insert(id.to_owned(), instance);
}

/// Changes an existing instance although the request was refused.
pub(crate) fn touch(world: &mut BrokerState, id: &str, case: &str, status: u16) {
    if (400..500).contains(&status) && world.flaws.has(case) {
        let other = world
            .instance(id)
            .and_then(|it| another_plan(world, &it.is));
        if let Some((instance, other)) = world.instance_mut(id).zip(other) {
            instance.is.plan_id = other;
        }
    }
}

/// Another plan of the same offering.
pub(crate) fn another_plan(world: &BrokerState, is: &RequestedState) -> Option<String> {
    let catalog = world.kit.catalog();
    let mut services = catalog["services"].as_array()?.iter();
    let offering = services.find(|it| it["id"] == is.service_id)?;
    let plans = offering["plans"].as_array()?.iter();
    let mut ids = plans.filter_map(|it| it["id"].as_str());
    ids.find(|it| *it != is.plan_id).map(str::to_owned)
}

/// Whether a difference between existing and requested state is ignored.
pub(crate) fn overlooks(
    world: &BrokerState,
    is: &RequestedState,
    wanted: &RequestedState,
    phase: Phase,
) -> bool {
    let has = |case: &str| world.flaws.has(case);
    phase == Phase::Creating && has("provision-conflict-running")
        || is.organization_guid != wanted.organization_guid
            && has("provision-conflict-organization")
        || is.space_guid != wanted.space_guid && has("provision-conflict-space")
        || is.plan_id != wanted.plan_id && has("provision-conflict-plan")
        || is.parameters != wanted.parameters && has("provision-conflict-parameters")
}
