//! Conformant behaviour with bindings that differs from the default. Implemented either here, where it
//! changes an outgoing answer or refuses, or in the decision that it affects.

use super::answers::{Answer, RefusalAnswer, busy, malformed, refuse};
use super::request::{BrokerRequest, RequestTarget};
use super::state::{BrokerState, Phase};
use axum::http::Method;
use serde_json::json;

/// Every variant, named by its effect.
pub(crate) const BINDING_VARIANTS: &[&str] = &[
    "names no operations of bindings",
    "binds one after the other",
    "tells credentials once",
    "shows no parameters of bindings",
    "deletes no binding that is being made",
    "uses no id of a binding again",
    "rotates only with service and plan",
    "ignores predecessors where it does not rotate",
    "says 400 of binds to what is not there",
    "says 410 when an unbind is done",
    "says nothing of routes",
    "unbinds at once what takes time to bind",
];

/// Refuses requests that need not be served.
pub(crate) fn refuses(world: &BrokerState, ask: &BrokerRequest) -> Result<(), RefusalAnswer> {
    let has_variant = |variant: &str| world.flaws.has_variant(variant);
    let RequestTarget::Binding(instance, id) = &ask.place else {
        return Ok(());
    };
    let Some(instance) = world.instance(instance) else {
        return Ok(());
    };
    let phase = instance.bindings.get(id).map(|it| it.phase);
    let names = |field: &str| ask.object().is_ok_and(|it| it.contains_key(field));
    if ask.method == Method::DELETE {
        let is_whole = ask.query("service_id").is_some() && ask.query("plan_id").is_some();
        let is_early = phase == Some(Phase::Creating) && is_whole;
        if is_early && has_variant("deletes no binding that is being made") {
            return Err(busy());
        }
    }
    if ask.method == Method::PUT {
        if phase == Some(Phase::Gone) && has_variant("uses no id of a binding again") {
            return Err(refuse(409, "There was a binding with this id."));
        }
        let mut others = instance.bindings.iter().filter(|(other, _)| *other != id);
        let is_crowded = others.any(|(_, it)| it.phase == Phase::Creating);
        if is_crowded && has_variant("binds one after the other") {
            return Err(busy());
        }
        let is_bare = names("predecessor_binding_id") && !names("service_id");
        if is_bare && has_variant("rotates only with service and plan") {
            return Err(malformed("service_id is missing."));
        }
    }
    Ok(())
}

/// Changes an outgoing answer to an equivalent one.
pub(crate) fn alter(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has_variant = |variant: &str| world.flaws.has_variant(variant);
    match (&ask.place, answer.status) {
        (RequestTarget::Binding(..), 202) if has_variant("names no operations of bindings") => {
            answer.unset("operation");
        }
        (RequestTarget::Binding(instance, id), 200) if has_variant("tells credentials once") => {
            let binding = world.binding(instance, id);
            let was_reported = binding.is_some_and(|it| it.operations.is_empty());
            if was_reported || ask.method == Method::PUT {
                answer.unset("credentials");
            }
        }
        (RequestTarget::Binding(..), 200) if has_variant("shows no parameters of bindings") => {
            answer.unset("parameters");
        }
        (RequestTarget::Binding(instance, _), 404)
            if has_variant("says 400 of binds to what is not there")
                && ask.method == Method::PUT
                && world.instance(instance).is_none() =>
        {
            answer.status = 400;
        }
        (RequestTarget::Binding(..), 200 | 201) if has_variant("says nothing of routes") => {
            let body = answer.body.as_ref();
            if body.is_some_and(|it| it.get("route_service_url").is_some()) {
                answer.body = Some(json!({}));
            }
        }
        (RequestTarget::BindingOperation(..), 200)
            if has_variant("says 410 when an unbind is done") =>
        {
            let is_unbind = ask
                .query("operation")
                .is_some_and(|it| it.starts_with("unbind"));
            let is_done = answer
                .body
                .as_ref()
                .is_some_and(|it| it["state"] == "succeeded");
            if is_unbind && is_done {
                answer.become_like(Answer::new(410, json!({})));
            }
        }
        _ => {}
    }
}
