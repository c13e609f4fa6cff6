//! The bodies of answers about instances.

use super::Judgement;
use super::endpoint::Verb;
use super::shape;
use crate::case::{Case, Level, Scope};
use serde_json::{Map, Value};

pub(super) const PROVISION_BODY: Case = Case {
    name: "provision-body",
    line: "B-130",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A provision is answered with an object: `dashboard_url` a string or null, `metadata` an object of the objects `labels` and `attributes`.",
};

pub(super) const UPDATE_BODY: Case = Case {
    name: "update-body",
    line: "B-171",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "An update is answered with an object: `dashboard_url` a string or null, `metadata` an object of the objects `labels` and `attributes`.",
};

pub(super) const DEPROVISION_BODY: Case = Case {
    name: "deprovision-body",
    line: "B-252",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A deprovision is answered with an object, which may be empty.",
};

pub(super) const FETCH_BODY: Case = Case {
    name: "fetch-instance-body",
    line: "B-151",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A fetched instance is an object: ids and `dashboard_url` are strings; `parameters`, `maintenance_info` and `metadata` are objects.",
};

pub(super) const LAST_OPERATION: Case = Case {
    name: "last-operation-state",
    line: "B-100",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A poll is answered with an object whose `state` is `in progress`, `succeeded` or `failed`.",
};

pub(super) const LAST_OPERATION_WORDS: Case = Case {
    name: "last-operation-description",
    line: "B-101",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`description` in the answer to a poll, if there, is a non-empty string.",
};

pub(super) const LAST_OPERATION_USABLE: Case = Case {
    name: "last-operation-usable",
    line: "B-102",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`instance_usable` and `update_repeatable` are booleans, and only where an operation is reported as failed.",
};

/// Checks the body of a successful response.
pub(super) fn check(verb: Verb, json: Option<&Value>, into: &mut Vec<Judgement>) {
    match verb {
        Verb::Create => into.push((&PROVISION_BODY, changed(json))),
        Verb::Update => into.push((&UPDATE_BODY, changed(json))),
        Verb::Delete => into.push((&DEPROVISION_BODY, shape::object(json).map(|_| ()))),
        Verb::Fetch => into.push((&FETCH_BODY, fetched(json))),
    }
}

/// Checks the answer to a poll.
pub(super) fn judge_operation(json: Option<&Value>, into: &mut Vec<Judgement>) {
    into.push((&LAST_OPERATION, state(json)));
    if let Some(Value::Object(body)) = json {
        let words = shape::optional_words(body, "description");
        into.push((&LAST_OPERATION_WORDS, words));
        into.push((&LAST_OPERATION_USABLE, usable(body)));
    }
}

/// An object with a known `state`.
pub(super) fn state(json: Option<&Value>) -> Result<(), String> {
    match shape::words(shape::object(json)?, "state")? {
        "in progress" | "succeeded" | "failed" => Ok(()),
        other => Err(format!("`state` is {other:?}")),
    }
}

fn usable(body: &Map<String, Value>) -> Result<(), String> {
    let failed = body.get("state").and_then(Value::as_str) == Some("failed");
    for name in ["instance_usable", "update_repeatable"] {
        if body.contains_key(name) && !failed {
            return Err(format!("`{name}` is there, and nothing has failed"));
        }
        shape::optional_bool(body, name)?;
    }
    Ok(())
}

fn changed(json: Option<&Value>) -> Result<(), String> {
    let body = shape::object(json)?;
    shape::nullable_string(body, "dashboard_url")?;
    metadata(body)
}

fn fetched(json: Option<&Value>) -> Result<(), String> {
    let body = shape::object(json)?;
    for name in ["service_id", "plan_id"] {
        shape::optional_string(body, name)?;
    }
    shape::nullable_string(body, "dashboard_url")?;
    shape::optional_object(body, "parameters")?;
    if let Some(info) = shape::optional_object(body, "maintenance_info")? {
        shape::optional_words(info, "version").map_err(|it| format!("maintenance_info: {it}"))?;
    }
    metadata(body)
}

fn metadata(body: &Map<String, Value>) -> Result<(), String> {
    let Some(metadata) = shape::optional_object(body, "metadata")? else {
        return Ok(());
    };
    for name in ["labels", "attributes"] {
        shape::optional_object(metadata, name).map_err(|it| format!("metadata: {it}"))?;
    }
    Ok(())
}
