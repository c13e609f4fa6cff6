//! Flaws of bindings that only change an outgoing answer; the others are in the decisions
//! themselves. Side effects of refused binds are here too.

use super::Flaws;
use super::answers::{Answer, malformed};
use super::request::{BrokerRequest, RequestTarget};
use super::state::{Binding, BrokerState, Kind, Operations, Phase};
use axum::http::Method;
use serde_json::{Map, Value, json};

/// Breaks an answer.
pub(crate) fn alter(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    match (&ask.place, &ask.method) {
        (RequestTarget::Binding(..), &Method::PUT) => bind(flaws, ask, answer),
        (RequestTarget::Binding(..), &Method::GET) => fetch(flaws, answer),
        (RequestTarget::Binding(..), &Method::DELETE) => unbind(flaws, ask, answer),
        (RequestTarget::BindingOperation(..), _) => last_operation(flaws, ask, answer),
        _ => {}
    }
    if matches!(answer.status, 200 | 201) && matches!(&ask.place, RequestTarget::Binding(..)) {
        given(flaws, answer);
    }
}

/// Breaks the fields of the catalog about bindings.
pub(crate) fn alter_catalog(flaws: &Flaws, catalog: &mut Value) {
    if flaws.has("bind-async-retrievable") {
        for offering in catalog["services"].as_array_mut().into_iter().flatten() {
            offering["bindings_retrievable"] = json!(false);
        }
    }
}

/// Creates a binding although it was refused.
pub(crate) fn make_anyway(world: &mut BrokerState, instance: &str, id: &str) {
    if !world.flaws.has("bind-refused-leaves-nothing") {
        return;
    }
    if let Some(instance) = world.instance_mut(instance) {
        let binding = Binding {
            phase: Phase::Live,
            wanted: json!({}),
            parameters: None,
            info: json!({}),
            operations: Operations::default(),
        };
        instance.bindings.entry(id.to_owned()).or_insert(binding);
    }
}

/// Removes the predecessor of a rotation.
pub(crate) fn replace(world: &mut BrokerState, instance: &str, predecessor: &str) {
    let replaces = world.flaws.has("rotate-old-stays");
    if replaces && let Some(instance) = world.instance_mut(instance) {
        instance.bindings.remove(predecessor);
    }
}

fn bind(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    let body = ask.object().ok();
    match answer.status {
        200 if flaws.has("rotate-repeat") && is_rotation(body.as_ref()) => answer.status = 201,
        200 if flaws.has("bind-repeat-done") => answer.status = 201,
        200 if flaws.has("bind-repeat-same") => {
            answer.set("credentials", json!({ "user": "somebody else" }));
        }
        201 if flaws.has("bind-created") => answer.status = 200,
        200 | 201 if flaws.has("bind-unique-credentials") || flaws.has("rotate-credentials") => {
            answer.set("credentials", json!({ "user": "everybody" }));
        }
        200..=202 if flaws.has("bind-optional-fields") && is_annotated(body.as_ref()) => {
            answer.become_like(malformed("Nobody asked for annotations."));
        }
        400 => refused(flaws, body.as_ref(), answer),
        404 if flaws.has("bind-unknown-instance") => answer.status = 500,
        422 if flaws.has("bind-async-required") || flaws.has("bind-requires-app") => {
            answer.unset("error");
        }
        _ => {}
    }
}

fn refused(flaws: &Flaws, body: Option<&Map<String, Value>>, answer: &mut Answer) {
    let is_rotation = is_rotation(body);
    let fields = [
        ("bind-without-service-id", "service_id"),
        ("bind-without-plan-id", "plan_id"),
    ];
    for (case, field) in fields {
        let lacks = body.is_some_and(|it| it.get(field).is_none_or(|text| text == ""));
        if lacks && !is_rotation && flaws.has(case) {
            answer.status = 422;
        }
    }
    let is = |field: &str, right: fn(&Value) -> bool| {
        body.is_none_or(|it| it.get(field).is_none_or(right))
    };
    let typed = is("service_id", Value::is_string)
        && is("plan_id", Value::is_string)
        && is("parameters", Value::is_object)
        && is("bind_resource", Value::is_object)
        && is("context", Value::is_object);
    if !typed && flaws.has("bind-wrong-types") {
        answer.status = 422;
    }
    let empty_app = body.is_some_and(|it| it.get("app_guid") == Some(&json!("")));
    if empty_app && flaws.has("bind-empty-app-guid") {
        answer.status = 422;
    }
    if body.is_none() && flaws.has("bind-malformed") {
        answer.status = 415;
    }
    if is_rotation && flaws.has("rotate-unknown-predecessor") {
        answer.status = 404;
    }
}

fn is_rotation(body: Option<&Map<String, Value>>) -> bool {
    body.is_some_and(|it| it.contains_key("predecessor_binding_id"))
}

fn is_annotated(body: Option<&Map<String, Value>>) -> bool {
    body.and_then(|it| it.get("bind_resource"))
        .is_some_and(|it| it.get("app_annotations").is_some())
}

fn fetch(flaws: &Flaws, answer: &mut Answer) {
    let missing = ["binding-fetch", "binding-fetch-at-once"];
    let there = ["binding-fetch-unknown", "binding-fetch-gone"];
    match answer.status {
        200 if missing.iter().any(|it| flaws.has(it)) => answer.status = 404,
        200 if flaws.has("binding-fetch-credentials") => answer.unset("credentials"),
        200 if flaws.has("binding-fetch-same") => {
            answer.set("credentials", json!({ "user": "somebody else" }));
        }
        404 if there.iter().any(|it| flaws.has(it)) => answer.status = 410,
        _ => {}
    }
}

fn given(flaws: &Flaws, answer: &mut Answer) {
    let needless = [
        (
            "bind-syslog-drain-declared",
            "syslog_drain_url",
            json!("syslog://logs.example"),
        ),
        (
            "bind-route-declared",
            "route_service_url",
            json!("https://proxy.example"),
        ),
        (
            "bind-volumes-declared",
            "volume_mounts",
            json!([{
                "driver": "nfs",
                "container_dir": "/data",
                "mode": "r",
                "device_type": "shared",
                "device": { "volume_id": "one" },
            }]),
        ),
    ];
    for (case, field, value) in needless {
        if flaws.has(case) {
            answer.set(field, value);
        }
    }
    if flaws.has("bind-syslog-drain-given") {
        answer.unset("syslog_drain_url");
    }
    if flaws.has("bind-volumes-given") {
        answer.unset("volume_mounts");
    }
    if flaws.has("bind-information") {
        answer.unset("credentials");
        answer.unset("endpoints");
    }
}

fn unbind(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    let unknown = ["unbind-unknown", "unbind-gone"];
    let lacks = |name: &str| ask.query(name).is_none();
    match answer.status {
        200 | 202 if flaws.has("unbind-deleted") => answer.status = 204,
        400 if lacks("service_id") && flaws.has("unbind-without-service-id") => answer.status = 422,
        400 if lacks("plan_id") && flaws.has("unbind-without-plan-id") => answer.status = 422,
        410 if unknown.iter().any(|it| flaws.has(it)) => answer.status = 404,
        422 if flaws.has("unbind-async-required") => answer.unset("error"),
        _ => {}
    }
}

/// Whether it forgets the result of such an operation.
pub(crate) fn forgets(flaws: &Flaws, kind: Kind) -> bool {
    match kind {
        Kind::Create => flaws.has("binding-poll-again"),
        Kind::Delete => flaws.has("unbind-poll-after"),
        Kind::Update => false,
    }
}

fn last_operation(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    let operation = ask.query("operation");
    let is_of = |verb: &str| operation.is_some_and(|it| it.starts_with(verb));
    match answer.status {
        200 if operation.is_none() && flaws.has("unbind-halts-bind-poll") => {
            answer.set("state", json!("in progress"));
        }
        200 if is_of("bind-") && flaws.has("bind-polled") => answer.set("state", json!("failed")),
        200 if is_of("unbind-") && flaws.has("unbind-polled") => {
            answer.set("state", json!("failed"));
        }
        200 if ask.query("plan_id").is_none() && flaws.has("binding-poll-without-hints") => {
            answer.become_like(malformed("Which plan?"));
        }
        400 if operation == Some("") && flaws.has("binding-poll-empty-operation") => {
            answer.status = 200;
            answer.body = Some(json!({ "state": "succeeded" }));
        }
        404 if flaws.has("binding-poll-unknown") => answer.status = 410,
        _ => {}
    }
}
