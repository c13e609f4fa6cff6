//! From a request to a decision and back, in the order of D-06: authentication, version, body, and
//! then the resource.

use super::answers::{Answer, RefusalAnswer, refuse};
use super::request::{BrokerRequest, RequestTarget};
use super::state::BrokerState;
use super::{
    Era, PASSWORD, USER, allowed_variants, allowed_variants_bindings, bindings, fetches,
    flaws_bindings, flaws_catalog, flaws_instances, flaws_protocol, instances, updates,
};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, Response};
use base64::Engine as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest body read, in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The catalog of a broker never changes.
const ETAG: &str = "\"kit\"";

pub(crate) fn router(world: Arc<Mutex<BrokerState>>) -> Router {
    Router::new().fallback(serve).with_state(world)
}

async fn serve(State(world): State<Arc<Mutex<BrokerState>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return refuse(400, "The body is too long.").into_response();
    };
    let ask = BrokerRequest::new(parts.method, &parts.uri, parts.headers, body.to_vec());
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    world.requests += 1;
    if world.flaws.has("answers") {
        drop(world);
        // Closes this connection without an answer and without a message on the console.
        std::panic::resume_unwind(Box::new("the flaw `answers`"));
    }
    answer(&mut world, &ask).into_response()
}

fn answer(world: &mut BrokerState, ask: &BrokerRequest) -> Answer {
    let mut answer = decided(world, ask).unwrap_or_else(|refused| refused);
    if let Some(id) = ask.header("X-Broker-API-Request-Identity") {
        answer = answer.header("X-Broker-API-Request-Identity", id);
    }
    allowed_variants::alter(world, ask, &mut answer);
    allowed_variants_bindings::alter(world, ask, &mut answer);
    flaws_instances::alter(world, ask, &mut answer);
    flaws_bindings::alter(&world.flaws, ask, &mut answer);
    flaws_protocol::alter(&world.flaws, ask, &mut answer);
    answer
}

fn decided(world: &mut BrokerState, ask: &BrokerRequest) -> Result<Answer, RefusalAnswer> {
    authenticated(world, ask)?;
    versioned(world, ask)?;
    allowed_variants::prepare(world, ask);
    allowed_variants::refuses(world, ask)?;
    allowed_variants_bindings::refuses(world, ask)?;
    flaws_protocol::served(&world.flaws, world.requests, ask)?;
    match (&ask.place, ask.method.clone()) {
        (RequestTarget::Catalog, Method::GET) => {
            let mut catalog = world.kit.catalog();
            flaws_bindings::alter_catalog(&world.flaws, &mut catalog);
            flaws_catalog::alter_catalog(&world.flaws, world.requests, &mut catalog);
            let answer = Answer::new(200, catalog).header("etag", ETAG);
            let is_known = ask.header("if-none-match") == Some(ETAG);
            if is_known && !world.flaws.has("catalog-cached") {
                return Ok(Answer {
                    status: 304,
                    body: None,
                    ..answer
                });
            }
            Ok(answer)
        }
        (RequestTarget::Instance(id), Method::PUT) => instances::provision(world, ask, id),
        (RequestTarget::Instance(id), Method::GET) => fetches::instance(world, ask, id),
        (RequestTarget::Instance(id), Method::PATCH) => updates::update(world, ask, id),
        (RequestTarget::Instance(id), Method::DELETE) => instances::deprovision(world, ask, id),
        (RequestTarget::InstanceOperation(id), Method::GET) => {
            fetches::instance_operation(world, ask, id)
        }
        (RequestTarget::Binding(instance, id), Method::PUT) => {
            bindings::bind(world, ask, instance, id)
        }
        (RequestTarget::Binding(instance, id), Method::GET) => {
            fetches::binding(world, ask, instance, id)
        }
        (RequestTarget::Binding(instance, id), Method::DELETE) => {
            bindings::unbind(world, ask, instance, id)
        }
        (RequestTarget::BindingOperation(instance, id), Method::GET) => {
            fetches::binding_operation(world, ask, instance, id)
        }
        (RequestTarget::Nowhere, _) => Err(refuse(404, "There is nothing here.")),
        _ => Err(refuse(405, "This method is not part of the protocol.")),
    }
}

fn authenticated(world: &BrokerState, ask: &BrokerRequest) -> Result<(), RefusalAnswer> {
    let right = base64::prelude::BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let sent = ask
        .header("authorization")
        .and_then(|it| it.strip_prefix("Basic "));
    if sent == Some(right.as_str()) || flaws_protocol::lets_in(&world.flaws, ask, sent) {
        return Ok(());
    }
    Err(refuse(401, "Give the right user and password.")
        .header("www-authenticate", "Basic realm=\"kit\""))
}

fn versioned(world: &BrokerState, ask: &BrokerRequest) -> Result<(), RefusalAnswer> {
    if world.flaws.has_variant("serves every version") {
        return Ok(());
    }
    let Some(version) = ask.header("X-Broker-API-Version") else {
        let status = match world.era {
            Era::Now => 400,
            Era::Compat => 412,
        };
        return Err(refuse(status, "X-Broker-API-Version is required."));
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let known = version
        .split_once('.')
        .is_some_and(|(major, minor)| number(major) == Some(2) && number(minor).is_some());
    if known {
        Ok(())
    } else {
        Err(refuse(412, "Use X-Broker-API-Version: 2.17."))
    }
}
