//! Flaws of headers and bodies of every endpoint: they change an outgoing answer, or refuse
//! valid requests. Flaws of the catalog: `flaws_catalog.rs`.

use super::Flaws;
use super::answers::{Answer, RefusalAnswer, malformed};
use super::request::{BrokerRequest, RequestTarget};
use axum::http::Method;
use serde_json::{Value, json};

const IDENTITY: &str = "X-Broker-API-Originating-Identity";

/// Breaks an answer.
pub(crate) fn alter(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    if flaws.has("request-identity") {
        let (name, value) = ("x-broker-api-request-identity", "somebody");
        *answer = answer.clone().header(name, value);
    }
    if flaws.has("content-type") {
        *answer = answer.clone().header("content-type", "text/json");
    }
    if answer.status >= 400 {
        alter_error(flaws, ask, answer);
    } else {
        alter_success(flaws, ask, answer);
    }
}

fn alter_error(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    alter_status(flaws, ask, answer);
    if answer.status == 401 && flaws.has("unauthorized-body") {
        answer.body = Some(Value::String("no".to_owned()));
    }
    if flaws.has("error-body") {
        answer.body = Some(Value::String("no".to_owned()));
    }
    let code = answer.body.as_ref().and_then(|it| it["error"].as_str());
    if let Some(code) = code.map(str::to_lowercase)
        && flaws.has("error-code")
    {
        answer.set("error", json!(code));
    }
    if answer
        .body
        .as_ref()
        .is_some_and(|it| it["error"].is_string())
        && flaws.has("error-word")
    {
        answer.set("error", json!("two words"));
    }
    if ask.method == Method::PUT && flaws.has("error-instance-usable") {
        answer.set("instance_usable", json!(true));
    }
    if ask.method == Method::DELETE && flaws.has("error-update-repeatable") {
        answer.set("update_repeatable", json!(true));
    }
    if answer.status == 422
        && !ask.accepts_incomplete()
        && answer
            .body
            .as_ref()
            .is_some_and(|it| it["error"] == "AsyncRequired")
        && flaws.has("async-only-if-accepted")
    {
        *answer = Answer::new(202, json!({}));
    }
}

fn alter_success(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    if answer.status == 202 && flaws.has("operation") {
        answer.set("operation", json!(7));
    }
    if answer.status == 202 && flaws.has("operation-unreserved") {
        answer.set("operation", json!("a/b"));
    }
    if ask.method == Method::DELETE && answer.status == 200 && flaws.has("success-codes") {
        answer.status = 203;
    }
    match &ask.place {
        RequestTarget::Instance(_) => alter_instance(flaws, ask, answer),
        RequestTarget::InstanceOperation(_) => {
            if flaws.has("retry-after") {
                let date = "Wed, 21 Oct 2099 07:28:00 GMT";
                *answer = answer.clone().header("retry-after", date);
            }
            if flaws.has("last-operation-state") {
                answer.set("state", json!("done"));
            }
            if flaws.has("last-operation-description") {
                answer.set("description", json!(""));
            }
            if flaws.has("last-operation-usable") {
                answer.set("instance_usable", json!(true));
            }
        }
        RequestTarget::Binding(..) => alter_binding(flaws, ask, answer),
        RequestTarget::BindingOperation(..) => {
            if flaws.has("binding-last-operation") {
                answer.set("instance_usable", json!(true));
            }
        }
        RequestTarget::Catalog | RequestTarget::Nowhere => {}
    }
}

fn alter_instance(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    let text = || Some(json!("done"));
    if ask.method == Method::PUT && flaws.has("provision-body") {
        answer.set("dashboard_url", json!(7));
    }
    if ask.method == Method::PUT && flaws.has("extra-fields") {
        answer.set("extra", json!(7));
    }
    if ask.method == Method::PATCH && flaws.has("update-body") {
        answer.set("metadata", json!([]));
    }
    if ask.method == Method::DELETE && flaws.has("deprovision-body") {
        answer.body = text();
    }
    if ask.method == Method::GET && flaws.has("fetch-instance-body") {
        answer.set("parameters", json!([]));
    }
}

fn alter_binding(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    if ask.method == Method::DELETE && flaws.has("unbind-body") {
        answer.body = Some(json!("done"));
    }
    if ask.method == Method::PUT && answer.status == 202 {
        if flaws.has("bind-accepted-body") {
            answer.set("credentials", json!({}));
        }
        return;
    }
    if ask.method == Method::PUT && flaws.has("bind-body") {
        answer.set("credentials", json!("secret"));
    }
    if ask.method == Method::GET && flaws.has("fetch-binding-body") {
        answer.set("credentials", json!([]));
    }
    let Some(Value::Object(body)) = &mut answer.body else {
        return;
    };
    for (flaw, place, bad) in [
        ("volume-mounts", "/volume_mounts/0/mode", json!("w")),
        ("endpoints", "/endpoints/0/ports", json!([443])),
        ("binding-times", "/metadata/expires_at", json!("tomorrow")),
    ] {
        let (field, rest) = place[1..].split_once('/').unwrap();
        let part = body.get_mut(field);
        if let Some(part) = part.and_then(|it| it.pointer_mut(&format!("/{rest}")))
            && flaws.has(flaw)
        {
            *part = bad;
        }
    }
}

/// Accepts a request without valid credentials; `sent` is its `Authorization` header.
pub(crate) fn lets_in(flaws: &Flaws, _ask: &BrokerRequest, sent: Option<&str>) -> bool {
    match sent {
        None => flaws.has("auth-missing"),
        Some(_) => flaws.has("auth-wrong"),
    }
}

/// Returns a wrong status for an invalid request.
fn alter_status(flaws: &Flaws, ask: &BrokerRequest, answer: &mut Answer) {
    let version = ask.header("X-Broker-API-Version");
    let is_ours = version.is_some_and(|it| it.starts_with("2."));
    let body = serde_json::from_slice::<Value>(&ask.body);
    let is_deep = ask.body.starts_with(b"{\"context\":[[[[");
    let has_body = ask.method == Method::PUT || ask.method == Method::PATCH;
    let is_other_type = ask.header("content-type") == Some("application/xml");
    let bent = match answer.status {
        401 if version == Some("none") && flaws.has("auth-first") => 412,
        400 if version.is_none() && flaws.has("version-missing-status") => 412,
        400 if version.is_none() && flaws.has("version-missing") => 404,
        412 if !is_ours && flaws.has("version-unknown-status") => 400,
        412 if !is_ours && flaws.has("version-unknown") => 404,
        400 if is_other_type && flaws.has("content-type-wrong") => 415,
        400 if is_deep && flaws.has("body-nested") => 500,
        400 if has_body && body.is_err() && flaws.has("body-not-json") => 422,
        400 if body.is_ok_and(|it| !it.is_object()) && flaws.has("body-no-object") => 422,
        status => status,
    };
    answer.status = bent;
}

/// Refuses valid requests; not the first ones, so that the check reaches the cases.
pub(crate) fn served(
    flaws: &Flaws,
    requests: usize,
    ask: &BrokerRequest,
) -> Result<(), RefusalAnswer> {
    let identity = match ask.header(IDENTITY) {
        Some(_) => flaws.has("identity-present"),
        None => flaws.has("identity-absent") && requests > 3 && ask.place == RequestTarget::Catalog,
    };
    let is_unusual = match &ask.place {
        RequestTarget::Instance(id) | RequestTarget::InstanceOperation(id) => id.contains(' '),
        _ => false,
    };
    let has_body = !ask.body.is_empty();
    let body = serde_json::from_slice::<Value>(&ask.body).unwrap_or_default();
    let has_more = !body["bind_resource"]["sutler_check_unknown"].is_null();
    let kind = ask.header("content-type");
    let refused = identity
        || has_more && flaws.has("unknown-fields")
        || is_unusual && flaws.has("ids-unusual")
        || ask.header("X-Broker-API-Version") == Some("2.99") && flaws.has("version-newer")
        || kind.is_some_and(|it| it.contains(';')) && flaws.has("content-type-parameters")
        || has_body && kind.is_none() && flaws.has("content-type-missing");
    if refused {
        return Err(malformed("This is not to my liking."));
    }
    Ok(())
}
