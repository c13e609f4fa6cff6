//! Conformant behaviour that differs from the default of this broker. A variant is implemented
//! either here, where it changes an outgoing answer, or in the decision that it affects.

use super::answers::{Answer, RefusalAnswer, busy, refuse};
use super::flaws_instances::names_nothing;
use super::request::{BrokerRequest, RequestTarget};
use super::state::{BrokerState, Phase};
use axum::http::Method;
use serde_json::{Value, json};

/// Every variant, named by its effect.
pub(crate) const VARIANTS: &[&str] = &[
    "names no operations",
    "names operations null",
    "is done with the answer if it has to be",
    "supports updates of the context only",
    "shows instances while they are updated",
    "shows hardly anything of instances",
    "deletes nothing that is being made",
    "deletes nothing that is bound",
    "uses no id again",
    "says 404 of what is not in the catalog",
    "fails to provision",
    "serves every version",
    "knows nothing of caches",
    "has no patience with guessers",
    "says more of its content type",
    "adds fields of its own",
    "says null of what it does not have",
];

/// Changes the state before a decision.
pub(crate) fn prepare(world: &mut BrokerState, ask: &BrokerRequest) {
    let hurries = world
        .flaws
        .has_variant("is done with the answer if it has to be");
    let is_change = ask.method != Method::GET;
    world.is_hurried = hurries && is_change && !ask.accepts_incomplete();
}

/// Refuses requests that need not be served.
pub(crate) fn refuses(world: &BrokerState, ask: &BrokerRequest) -> Result<(), RefusalAnswer> {
    let has_variant = |variant: &str| world.flaws.has_variant(variant);
    let RequestTarget::Instance(id) = &ask.place else {
        return Ok(());
    };
    let Some(instance) = world.instances.get(id) else {
        return Ok(());
    };
    let is_bound = instance.bindings.values().any(|it| it.phase != Phase::Gone);
    let is_whole = ask.query("service_id").is_some() && ask.query("plan_id").is_some();
    if ask.method == Method::DELETE && is_whole {
        if has_variant("deletes nothing that is being made") && instance.phase == Phase::Creating {
            return Err(busy());
        }
        let is_live = instance.phase == Phase::Live;
        if has_variant("deletes nothing that is bound") && is_live && is_bound {
            return Err(refuse(400, "Unbind it first."));
        }
    }
    let is_gone = instance.phase == Phase::Gone;
    if ask.method == Method::PUT && has_variant("uses no id again") && is_gone {
        return Err(refuse(409, "There was something with this id."));
    }
    Ok(())
}

/// Changes an outgoing answer to an equivalent one.
pub(crate) fn alter(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has_variant = |variant: &str| world.flaws.has_variant(variant);
    alter_protocol(world, ask, answer);
    match (&ask.place, answer.status) {
        (RequestTarget::Instance(_), 202) if has_variant("names no operations") => {
            answer.unset("operation")
        }
        (RequestTarget::Instance(_), 202) if has_variant("names operations null") => {
            if ask.method == Method::PUT {
                answer.set("operation", Value::Null);
            } else {
                answer.unset("operation");
            }
        }
        (RequestTarget::Instance(_), 200) if has_variant("shows hardly anything of instances") => {
            answer.body = Some(json!({}));
        }
        (RequestTarget::Instance(_), 400)
            if has_variant("says 404 of what is not in the catalog")
                && names_nothing(world, ask) =>
        {
            answer.status = 404;
        }
        (RequestTarget::InstanceOperation(_), 200) if has_variant("fails to provision") => {
            let is_create = ask
                .query("operation")
                .is_some_and(|it| it.starts_with("provision"));
            let is_over = answer
                .body
                .as_ref()
                .is_some_and(|it| it["state"] == "succeeded");
            if is_create && is_over {
                answer.set("state", json!("failed"));
            }
        }
        _ => {}
    }
}

/// Variants of every endpoint.
fn alter_protocol(world: &BrokerState, ask: &BrokerRequest, answer: &mut Answer) {
    let has_variant = |variant: &str| world.flaws.has_variant(variant);
    let is_catalog = ask.place == RequestTarget::Catalog;
    if has_variant("says more of its content type") {
        let kind = "application/json; charset=utf-8";
        *answer = answer.clone().header("content-type", kind);
    }
    if has_variant("adds fields of its own") && answer.status < 300 && !is_catalog {
        answer.set("acme_extra", json!({ "since": 2026 }));
    }
    if has_variant("knows nothing of caches") {
        answer.headers.retain(|(name, _)| name != "etag");
    }
    let guesses = ask.header("authorization").is_some() && !is_catalog;
    if has_variant("has no patience with guessers") && answer.status == 401 && guesses {
        answer.status = 429;
    }
    if let (true, Some(body)) = (is_catalog, &mut answer.body)
        && has_variant("says null of what it does not have")
        && let Some(offering) = body.pointer_mut("/services/0")
    {
        offering["requires"] = Value::Null;
        offering["plans"][1]["metadata"] = Value::Null;
        offering["plans"][1]["bindable"] = Value::Null;
    }
}
