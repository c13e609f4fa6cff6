//! The bodies of errors, on every endpoint.

use super::Judgement;
use super::endpoint::{EndpointShape, Verb};
use super::shape;
use crate::case::{Case, Level, Scope};
use serde_json::Value;

pub(super) const BODY: Case = Case {
    name: "error-body",
    line: "B-031",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "The body of an error is a JSON object; `error` and `description`, if there, are non-empty strings.",
};

pub(super) const UNAUTHORIZED_BODY: Case = Case {
    name: "unauthorized-body",
    line: "B-031",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "The body of a 401 is a JSON object too, whoever in front of the broker has sent it.",
};

pub(super) const WORD: Case = Case {
    name: "error-word",
    line: "B-031",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "`error` is a single word in camel case.",
};

pub(super) const CODE: Case = Case {
    name: "error-code",
    line: "B-032",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "AsyncRequired, ConcurrencyError, RequiresApp and MaintenanceInfoConflict are spelt so, and come with 422.",
};

pub(super) const INSTANCE_USABLE: Case = Case {
    name: "error-instance-usable",
    line: "B-033",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`instance_usable` is a boolean, and only in errors of updates and deprovisions.",
};

pub(super) const UPDATE_REPEATABLE: Case = Case {
    name: "error-update-repeatable",
    line: "B-034",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`update_repeatable` is a boolean, and only in errors of updates.",
};

/// Error codes with a meaning for platforms.
const CODES: [&str; 4] = [
    "AsyncRequired",
    "ConcurrencyError",
    "RequiresApp",
    "MaintenanceInfoConflict",
];

/// Checks the body of an error.
pub(super) fn check(
    endpoint: EndpointShape,
    status: u16,
    json: Option<&Value>,
    into: &mut Vec<Judgement>,
) {
    // A proxy in front of a broker often answers 401 in its own format.
    match status {
        401 => into.push((&UNAUTHORIZED_BODY, body(json))),
        _ => into.push((&BODY, body(json))),
    }
    let Some(Value::Object(body)) = json else {
        return;
    };
    if let Some(Value::String(word)) = body.get("error") {
        into.push((&WORD, single_word(word)));
        into.push((&CODE, code(status, word)));
    }
    let is_update = endpoint == EndpointShape::Instance(Verb::Update);
    let is_delete = endpoint == EndpointShape::Instance(Verb::Delete);
    let only = |name: &str, allowed: bool| {
        if body.contains_key(name) && !allowed {
            return Err(format!("`{name}` is in the error of another request"));
        }
        shape::optional_bool(body, name)
    };
    into.push((
        &INSTANCE_USABLE,
        only("instance_usable", is_update || is_delete),
    ));
    into.push((&UPDATE_REPEATABLE, only("update_repeatable", is_update)));
}

fn body(json: Option<&Value>) -> Result<(), String> {
    let body = shape::object(json)?;
    shape::optional_words(body, "error")?;
    shape::optional_words(body, "description")
}

fn single_word(word: &str) -> Result<(), String> {
    if word.chars().all(char::is_alphanumeric) {
        Ok(())
    } else {
        Err(format!("`error` is {word:?}"))
    }
}

fn code(status: u16, word: &str) -> Result<(), String> {
    let Some(code) = CODES.iter().find(|it| it.eq_ignore_ascii_case(word)) else {
        return Ok(());
    };
    if *code != word {
        return Err(format!("`error` is {word:?} in place of {code:?}"));
    }
    if status == 422 {
        Ok(())
    } else {
        Err(format!("{code} came with {status} in place of 422"))
    }
}
