//! The rules that every answer is held to, whatever was asked. Pure: an exchange in, verdicts out.

use crate::case::{Case, Level, Scope};
use crate::exchange::Exchange;
use serde_json::Value;

const ANSWERS: Case = Case {
    name: "answers",
    line: "B-030",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Every request is answered with a whole HTTP response, in time and of a sane length.",
};

const ERROR_BODY: Case = Case {
    name: "error-body",
    line: "B-031",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "The body of an error is a JSON object; `error` and `description`, if there, are non-empty strings.",
};

const REQUEST_IDENTITY: Case = Case {
    name: "request-identity",
    line: "B-006",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A response carries the `X-Broker-API-Request-Identity` of its request.",
};

pub(crate) const CASES: &[&Case] = &[&ANSWERS, &ERROR_BODY, &REQUEST_IDENTITY];

/// A case and what an exchange shows about it.
pub(crate) type Judgement = (&'static Case, Result<(), String>);

/// What an exchange shows about the standing rules.
pub(crate) fn judge(exchange: &Exchange) -> Vec<Judgement> {
    let answer = match &exchange.outcome {
        Err(reason) => return vec![(&ANSWERS, Err(reason.to_string()))],
        Ok(answer) => answer,
    };
    let mut judgements: Vec<Judgement> = vec![(&ANSWERS, Ok(()))];
    if answer.status >= 400 {
        judgements.push((&ERROR_BODY, error_body(exchange.json())));
    }
    if let Some(sent) = sent(exchange, "X-Broker-API-Request-Identity") {
        judgements.push((&REQUEST_IDENTITY, echo(sent, exchange)));
    }
    judgements
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

fn error_body(json: Option<&Value>) -> Result<(), String> {
    let Some(Value::Object(body)) = json else {
        return Err("the body is not a JSON object".to_owned());
    };
    for name in ["error", "description"] {
        match body.get(name) {
            None => {}
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(_) => return Err(format!("`{name}` is not a non-empty string")),
        }
    }
    Ok(())
}
