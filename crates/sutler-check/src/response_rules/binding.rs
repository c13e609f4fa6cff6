//! Bodies of answers about bindings. No message ever contains a value of a credential.

use super::Judgement;
use super::endpoint::Verb;
use super::{instance, shape};
use crate::case::{Case, Level, Scope};
use jiff::Timestamp;
use serde_json::{Map, Value};

pub(super) const BIND_BODY: Case = Case {
    name: "bind-body",
    line: "B-189",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A bind is answered with an object: `credentials` and `metadata` are objects, the two URLs are strings.",
};

pub(super) const BIND_ACCEPTED_BODY: Case = Case {
    name: "bind-accepted-body",
    line: "B-184",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "The 202 of a bind is an object that tells the operation only, and no part of the binding.",
};

pub(super) const FETCH_BODY: Case = Case {
    name: "fetch-binding-body",
    line: "B-231",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A fetched binding is an object: `credentials`, `parameters` and `metadata` are objects, the two URLs are strings.",
};

pub(super) const UNBIND_BODY: Case = Case {
    name: "unbind-body",
    line: "B-242",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "An unbind is answered with an object, which may be empty.",
};

pub(super) const VOLUME_MOUNTS: Case = Case {
    name: "volume-mounts",
    line: "B-194",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Each of `volume_mounts` has `driver`, `container_dir`, `mode` (`r` or `rw`), `device_type` (`shared`) and a `device` with a `volume_id`.",
};

pub(super) const ENDPOINTS: Case = Case {
    name: "endpoints",
    line: "B-195",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Each of `endpoints` has a `host`, at least one of `ports` such as `\"443\"` or `\"9000-9010\"`, and `protocol` tcp, udp or all.",
};

pub(super) const TIMES: Case = Case {
    name: "binding-times",
    line: "B-196",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "`expires_at` and `renew_before` are times such as `2031-02-03T04:05:06.0Z`, and the second is not after the first.",
};

pub(super) const LAST_OPERATION: Case = Case {
    name: "binding-last-operation",
    line: "B-110",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A poll of a binding is answered with an object of `state`, which is one of the three, and perhaps a `description`.",
};

/// Fields that only an existing binding has.
const OF_A_BINDING: [&str; 6] = [
    "credentials",
    "syslog_drain_url",
    "route_service_url",
    "volume_mounts",
    "endpoints",
    "metadata",
];

/// Checks the body of a successful response.
pub(super) fn check(verb: Verb, status: u16, json: Option<&Value>, into: &mut Vec<Judgement>) {
    let case = match (verb, status) {
        (Verb::Create, 202) => return into.push((&BIND_ACCEPTED_BODY, accepted(json))),
        (Verb::Delete | Verb::Update, _) => {
            return into.push((&UNBIND_BODY, shape::object(json).map(|_| ())));
        }
        (Verb::Create, _) => &BIND_BODY,
        (Verb::Fetch, _) => &FETCH_BODY,
    };
    into.push((case, binding(json)));
    let Some(Value::Object(body)) = json else {
        return;
    };
    if let Some(mounts) = body.get("volume_mounts") {
        into.push((&VOLUME_MOUNTS, each("volume_mounts", mounts, volume_mount)));
    }
    if let Some(endpoints) = body.get("endpoints") {
        into.push((&ENDPOINTS, each("endpoints", endpoints, endpoint)));
    }
    if let Some(Value::Object(metadata)) = body.get("metadata") {
        into.push((&TIMES, times(metadata)));
    }
}

/// Checks the answer to a poll.
pub(super) fn judge_operation(json: Option<&Value>, into: &mut Vec<Judgement>) {
    into.push((&LAST_OPERATION, operation(json)));
}

fn operation(json: Option<&Value>) -> Result<(), String> {
    instance::state(json)?;
    let body = shape::object(json)?;
    shape::optional_string(body, "description")?;
    for name in ["instance_usable", "update_repeatable"] {
        if body.contains_key(name) {
            return Err(format!("`{name}` is not for bindings"));
        }
    }
    Ok(())
}

fn accepted(json: Option<&Value>) -> Result<(), String> {
    let body = shape::object(json)?;
    match OF_A_BINDING.iter().find(|it| body.contains_key(**it)) {
        Some(name) => Err(format!("`{name}` is there before the bind is done")),
        None => Ok(()),
    }
}

fn binding(json: Option<&Value>) -> Result<(), String> {
    let body = shape::object(json)?;
    for name in ["credentials", "metadata", "parameters"] {
        shape::optional_object(body, name)?;
    }
    for name in ["syslog_drain_url", "route_service_url"] {
        shape::nullable_string(body, name)?;
    }
    Ok(())
}

fn each(
    name: &str,
    list: &Value,
    check: fn(&Map<String, Value>) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Array(items) = list else {
        return Err(format!("`{name}` is not a list"));
    };
    for (index, item) in items.iter().enumerate() {
        let Value::Object(item) = item else {
            return Err(format!("{name}[{index}] is not an object"));
        };
        check(item).map_err(|it| format!("{name}[{index}]: {it}"))?;
    }
    Ok(())
}

fn volume_mount(mount: &Map<String, Value>) -> Result<(), String> {
    shape::words(mount, "driver")?;
    shape::words(mount, "container_dir")?;
    match shape::words(mount, "mode")? {
        "r" | "rw" => {}
        other => return Err(format!("`mode` is {other:?}")),
    }
    match shape::words(mount, "device_type")? {
        "shared" => {}
        other => return Err(format!("`device_type` is {other:?}")),
    }
    let Some(device) = shape::optional_object(mount, "device")? else {
        return Err("there is no `device`".to_owned());
    };
    shape::words(device, "volume_id")?;
    match device.get("mount_config") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => Err("`mount_config` is not an object".to_owned()),
    }
}

fn endpoint(endpoint: &Map<String, Value>) -> Result<(), String> {
    shape::words(endpoint, "host")?;
    match endpoint.get("ports") {
        Some(Value::Array(ports)) if !ports.is_empty() => {
            if let Some(port) = ports.iter().find(|it| !is_port(it)) {
                return Err(format!("{port} is neither a port nor a range of ports"));
            }
        }
        Some(_) => return Err("`ports` is not a list with something in it".to_owned()),
        None => return Err("there is no `ports`".to_owned()),
    }
    match endpoint.get("protocol") {
        None => Ok(()),
        Some(Value::String(it)) if matches!(it.as_str(), "tcp" | "udp" | "all") => Ok(()),
        Some(other) => Err(format!("`protocol` is {other}")),
    }
}

/// `"443"` or `"9000-9010"`.
fn is_port(port: &Value) -> bool {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| digits)
    };
    let Value::String(text) = port else {
        return false;
    };
    match text.split_once('-') {
        None => number(text).is_some(),
        Some((from, to)) => match (number(from), number(to)) {
            (Some(from), Some(to)) => from <= to,
            _ => false,
        },
    }
}

fn times(metadata: &Map<String, Value>) -> Result<(), String> {
    let expires_at = time(metadata, "expires_at")?;
    let renew_before = time(metadata, "renew_before")?;
    match (renew_before, expires_at) {
        (Some(renew), Some(expires)) if renew > expires => {
            Err("`renew_before` is after `expires_at`".to_owned())
        }
        _ => Ok(()),
    }
}

/// A time in the format of the specification: `2031-02-03T04:05:06.0Z`.
fn time(metadata: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>, String> {
    let Some(value) = metadata.get(name) else {
        return Ok(None);
    };
    let is_written_so = |text: &&str| {
        let fraction = text
            .strip_suffix('Z')
            .and_then(|it| it.split_once('.'))
            .map(|it| it.1);
        let has_fraction =
            fraction.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()));
        has_fraction && text.as_bytes().get(10) == Some(&b'T')
    };
    let time = value
        .as_str()
        .filter(is_written_so)
        .and_then(|it| it.parse::<Timestamp>().ok());
    match time {
        Some(time) => Ok(Some(time)),
        None => Err(format!("`{name}` is {value}")),
    }
}
