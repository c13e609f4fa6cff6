//! Rules for every answer, whatever was requested. Pure: an exchange in, verdicts out.
//!
//! Checks everything that a single exchange shows: statuses by method, 202 only where it was allowed,
//! `operation`, headers, and the form of every body. Bodies of instances: `response_rules/instance.rs`; of
//! bindings: `response_rules/binding.rs`; of errors: `response_rules/error.rs`; the endpoint of a request:
//! `response_rules/endpoint.rs`. The body of the catalog is checked in `cases/catalog.rs`.

mod binding;
mod endpoint;
mod error;
mod instance;
mod shape;
#[cfg(test)]
mod tests;

use crate::case::{Case, Level, Scope};
use crate::exchange::Exchange;
use endpoint::{EndpointShape, Verb};
use serde_json::Value;

const ANSWERS: Case = Case {
    name: "answers",
    line: "B-030",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Every request is answered with a whole HTTP response, in time and of a sane length.",
};

const SUCCESS_CODES: Case = Case {
    name: "success-codes",
    line: "B-081",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Success is 200, 201 or 202 to PUT, 200 or 202 to PATCH and DELETE, and 200 to GET; there are no redirects.",
};

const ASYNC_ONLY_IF_ACCEPTED: Case = Case {
    name: "async-only-if-accepted",
    line: "B-082",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "202 is answered only to requests with `accepts_incomplete=true`.",
};

const OPERATION: Case = Case {
    name: "operation",
    line: "B-086",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`operation` of a 202 is a string of at most 10,000 characters, of a provision also null, and of an update not empty.",
};

const OPERATION_UNRESERVED: Case = Case {
    name: "operation-unreserved",
    line: "B-021",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "`operation` has only characters that need no encoding in a URL: letters, digits, `-`, `.`, `_` and `~`.",
};

const REQUEST_IDENTITY: Case = Case {
    name: "request-identity",
    line: "B-006",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A response carries the `X-Broker-API-Request-Identity` of its request.",
};

const CONTENT_TYPE: Case = Case {
    name: "content-type",
    line: "B-040",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A response with a body has the content type `application/json`.",
};

const RETRY_AFTER: Case = Case {
    name: "retry-after",
    line: "B-107",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "`Retry-After` of a poll, if there, is a number of seconds.",
};

const EXTRA_FIELDS: Case = Case {
    name: "extra-fields",
    line: "B-004",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "Fields of a response that the specification does not know have a prefix that is the broker's own.",
};

pub(crate) const CASES: &[&Case] = &[
    &ANSWERS,
    &SUCCESS_CODES,
    &ASYNC_ONLY_IF_ACCEPTED,
    &OPERATION,
    &OPERATION_UNRESERVED,
    &error::BODY,
    &error::UNAUTHORIZED_BODY,
    &error::WORD,
    &error::CODE,
    &error::INSTANCE_USABLE,
    &error::UPDATE_REPEATABLE,
    &instance::PROVISION_BODY,
    &instance::UPDATE_BODY,
    &instance::DEPROVISION_BODY,
    &instance::FETCH_BODY,
    &instance::LAST_OPERATION,
    &instance::LAST_OPERATION_WORDS,
    &instance::LAST_OPERATION_USABLE,
    &binding::BIND_BODY,
    &binding::BIND_ACCEPTED_BODY,
    &binding::FETCH_BODY,
    &binding::UNBIND_BODY,
    &binding::VOLUME_MOUNTS,
    &binding::ENDPOINTS,
    &binding::TIMES,
    &binding::LAST_OPERATION,
    &RETRY_AFTER,
    &EXTRA_FIELDS,
    &CONTENT_TYPE,
    &REQUEST_IDENTITY,
];

/// Maximum characters of an operation.
const OPERATION_MAX: usize = 10_000;

/// A case and the verdict of one exchange.
pub(crate) type Judgement = (&'static Case, Result<(), String>);

/// Checks an exchange against the rules for every response.
pub(crate) fn check(exchange: &Exchange) -> Vec<Judgement> {
    let answer = match &exchange.outcome {
        Err(reason) => return vec![(&ANSWERS, Err(reason.to_string()))],
        Ok(answer) => answer,
    };
    let mut judgements: Vec<Judgement> = vec![(&ANSWERS, Ok(()))];
    if let Some(sent) = sent(exchange, "X-Broker-API-Request-Identity") {
        judgements.push((&REQUEST_IDENTITY, echo(sent, exchange)));
    }
    if !answer.body.is_empty() {
        judgements.push((&CONTENT_TYPE, content_type(exchange.header("Content-Type"))));
    }
    let Some(endpoint) = EndpointShape::of(&exchange.request) else {
        return judgements;
    };
    if answer.status >= 400 {
        error::check(endpoint, answer.status, exchange.json(), &mut judgements);
        return judgements;
    }
    let status = success_code(endpoint, exchange);
    let is_named = status.is_ok();
    judgements.push((&SUCCESS_CODES, status));
    if answer.status == 202 {
        judgements.push((&ASYNC_ONLY_IF_ACCEPTED, was_accepted(exchange)));
        accepted(endpoint, exchange.json(), &mut judgements);
    }
    if matches!(
        endpoint,
        EndpointShape::InstanceOperation | EndpointShape::BindingOperation
    ) && let Some(value) = exchange.header("Retry-After")
    {
        judgements.push((&RETRY_AFTER, seconds(value)));
    }
    if is_named && answer.status != 304 {
        bodies(endpoint, answer.status, exchange.json(), &mut judgements);
    }
    judgements
}

/// Checks the body of a successful response.
fn bodies(endpoint: EndpointShape, status: u16, json: Option<&Value>, into: &mut Vec<Judgement>) {
    match endpoint {
        EndpointShape::Catalog => return,
        EndpointShape::Instance(verb) => instance::check(verb, json, into),
        EndpointShape::InstanceOperation => instance::judge_operation(json, into),
        EndpointShape::Binding(verb) => binding::check(verb, status, json, into),
        EndpointShape::BindingOperation => binding::judge_operation(json, into),
    }
    if let Some(Value::Object(body)) = json {
        into.push((&EXTRA_FIELDS, shape::prefixed(body, endpoint.fields())));
    }
}

fn success_code(endpoint: EndpointShape, exchange: &Exchange) -> Result<(), String> {
    let allowed: &[u16] = match endpoint {
        EndpointShape::Catalog if sent(exchange, "If-None-Match").is_some() => &[200, 304],
        EndpointShape::Catalog
        | EndpointShape::InstanceOperation
        | EndpointShape::BindingOperation => &[200],
        EndpointShape::Instance(verb) | EndpointShape::Binding(verb) => match verb {
            Verb::Create => &[200, 201, 202],
            Verb::Fetch => &[200],
            Verb::Update | Verb::Delete => &[200, 202],
        },
    };
    exchange.must_be(allowed)
}

fn was_accepted(exchange: &Exchange) -> Result<(), String> {
    let mut all = exchange.request.query.iter();
    match all.find(|(name, _)| name == "accepts_incomplete") {
        Some((_, value)) if value == "true" => Ok(()),
        Some((_, value)) => Err(format!("got 202 with `accepts_incomplete={value}`")),
        None => Err("got 202 without `accepts_incomplete`".to_owned()),
    }
}

/// Checks the operation of a 202.
fn accepted(endpoint: EndpointShape, json: Option<&Value>, into: &mut Vec<Judgement>) {
    let operation = json.and_then(|it| it.get("operation"));
    let judgement = match operation {
        None => Ok(()),
        Some(Value::Null) if endpoint == EndpointShape::Instance(Verb::Create) => Ok(()),
        Some(Value::String(text)) if text.chars().count() > OPERATION_MAX => Err(format!(
            "`operation` is longer than {OPERATION_MAX} characters"
        )),
        Some(Value::String(text))
            if text.is_empty() && endpoint == EndpointShape::Instance(Verb::Update) =>
        {
            Err("`operation` is empty".to_owned())
        }
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err("`operation` is not a string".to_owned()),
    };
    into.push((&OPERATION, judgement));
    if let Some(Value::String(text)) = operation {
        let judgement = if shape::is_unreserved(text) {
            Ok(())
        } else {
            Err("`operation` has characters that must be encoded in a URL".to_owned())
        };
        into.push((&OPERATION_UNRESERVED, judgement));
    }
}

fn sent<'a>(exchange: &'a Exchange, name: &str) -> Option<&'a str> {
    let headers = &exchange.request.headers;
    let (_, value) = headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value)
}

fn echo(sent: &str, exchange: &Exchange) -> Result<(), String> {
    match exchange.header("X-Broker-API-Request-Identity") {
        Some(value) if value == sent => Ok(()),
        Some(value) => Err(format!("sent {sent:?}, got {value:?} back")),
        None => Err("the header was not sent back".to_owned()),
    }
}

fn content_type(value: Option<&str>) -> Result<(), String> {
    let Some(value) = value else {
        return Err("there is a body and no Content-Type".to_owned());
    };
    let kind = value.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(format!("the Content-Type is {value:?}"))
    }
}

fn seconds(value: &str) -> Result<(), String> {
    match value.trim().parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("`Retry-After` is {value:?}")),
    }
}
