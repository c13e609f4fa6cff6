//! Contents of a binding compared with the catalog and with other answers of the same plan.
//!
//! The form of the fields is checked in `response_rules/binding.rs`.

use super::LiveBinding;
use crate::case::Case;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use serde_json::Value;
use std::sync::Arc;

const INFORMATION: Case = Case::must(
    "bind-information",
    "B-190",
    "What a binding gives is given at least once: with the answer to the bind, or by a fetch.",
);

pub(crate) const UNIQUE: Case = Case::should(
    "bind-unique-credentials",
    "B-191",
    "Every binding has credentials of its own, so that each can be revoked alone.",
);

const SYSLOG: Case = Case::must(
    "bind-syslog-drain-declared",
    "B-192",
    "Only an offering that requires `syslog_drain` gives a `syslog_drain_url`.",
);

const SYSLOG_GIVEN: Case = Case::should(
    "bind-syslog-drain-given",
    "B-192",
    "An offering that requires `syslog_drain` gives a `syslog_drain_url`.",
);

const ROUTE: Case = Case::must(
    "bind-route-declared",
    "B-193",
    "Only an offering that requires `route_forwarding` gives a `route_service_url`.",
);

const ROUTE_GIVEN: Case = Case::may(
    "bind-route-given",
    "B-193",
    "An offering that requires `route_forwarding` gives a `route_service_url`.",
);

const VOLUMES: Case = Case::must(
    "bind-volumes-declared",
    "B-194",
    "Only an offering that requires `volume_mount` gives `volume_mounts`.",
);

const VOLUMES_GIVEN: Case = Case::should(
    "bind-volumes-given",
    "B-194",
    "An offering that requires `volume_mount` gives `volume_mounts`.",
);

const ENDPOINTS: Case = Case::may(
    "bind-endpoints-given",
    "B-195",
    "A binding names the endpoints that its application needs.",
);

pub(crate) const CASES: &[&Case] = &[
    &INFORMATION,
    &UNIQUE,
    &SYSLOG,
    &SYSLOG_GIVEN,
    &ROUTE,
    &ROUTE_GIVEN,
    &VOLUMES,
    &VOLUMES_GIVEN,
    &ENDPOINTS,
];

/// Fields with information for an application.
const INFORMING: [&str; 5] = [
    "credentials",
    "syslog_drain_url",
    "route_service_url",
    "volume_mounts",
    "endpoints",
];

/// Contents allowed only if the catalog announces them: the field, the word in `requires`, the case
/// for a field that is not announced, and the case for an announced field that is missing.
const ANNOUNCED: [(&str, &str, &Case, &Case); 3] = [
    ("syslog_drain_url", "syslog_drain", &SYSLOG, &SYSLOG_GIVEN),
    (
        "route_service_url",
        "route_forwarding",
        &ROUTE,
        &ROUTE_GIVEN,
    ),
    ("volume_mounts", "volume_mount", &VOLUMES, &VOLUMES_GIVEN),
];

/// Whether the offering requires a permission of the platform.
pub(crate) fn requires(run: &PlanRun, word: &str) -> bool {
    let list = run.offering().raw["requires"].as_array();
    list.is_some_and(|it| it.iter().any(|each| each == word))
}

/// The fields of a body that have a value.
pub(crate) fn named_in(body: Option<&Value>) -> Vec<&'static str> {
    let is_there = |name: &&str| {
        let value = body.and_then(|it| it.get(*name));
        value.is_some_and(|it| match it {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(entries) => !entries.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        })
    };
    INFORMING.into_iter().filter(is_there).collect()
}

/// The credentials in an answer, if any.
pub(crate) fn credentials(answer: &Exchange) -> Option<&Value> {
    let value = answer.field("credentials")?;
    let empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    (!value.is_null() && !empty).then_some(value)
}

/// Fails if two answers about one binding differ in a field of both.
pub(crate) fn same(one: &Exchange, other: &Exchange) -> Result<(), String> {
    for name in INFORMING {
        // An answer may omit a field that another one contained.
        if let (Some(before), Some(after)) = (one.field(name), other.field(name))
            && before != after
            && !before.is_null()
            && !after.is_null()
        {
            return Err(format!("`{name}` is not what it was in an earlier answer"));
        }
    }
    Ok(())
}

/// Checks the contents of a new binding.
pub(crate) fn check(run: &PlanRun, bound: &LiveBinding) {
    let mut named = Vec::new();
    for answer in bound.answers() {
        named.extend(named_in(answer.json()));
    }
    let Some(answer) = bound.answers().last() else {
        return run.skip(&INFORMATION, "nothing that was given could be seen");
    };
    if !named.is_empty() {
        run.record(&INFORMATION, answer, Ok(()));
    } else if requires(run, "route_forwarding") {
        let reason = "a route service may be set up without telling anything";
        run.skip(&INFORMATION, reason);
    } else {
        let message = format!("none of {} was given", INFORMING.join(", "));
        run.record(&INFORMATION, answer, Err(message));
    }
    for (field, word, declared, given) in ANNOUNCED {
        announced(run, answer, &named, (field, word, declared, given));
    }
    let endpoints = if named.contains(&"endpoints") {
        Ok(())
    } else {
        Err("there are no `endpoints`".to_owned())
    };
    run.record(&ENDPOINTS, answer, endpoints);
}

fn announced(
    run: &PlanRun,
    answer: &Arc<Exchange>,
    named: &[&str],
    (field, word, declared, given): (&str, &str, &'static Case, &'static Case),
) {
    let needless = format!("the offering does not require {word:?}");
    match (requires(run, word), named.contains(&field)) {
        (true, true) => {
            run.record(declared, answer, Ok(()));
            run.record(given, answer, Ok(()));
        }
        (true, false) => {
            run.skip(declared, &format!("no `{field}` was given"));
            let text = format!("the offering requires {word:?}, and there is no `{field}`");
            run.record(given, answer, Err(text));
        }
        (false, true) => {
            let text = format!("there is a `{field}`, and `requires` has no {word:?}");
            run.record(declared, answer, Err(text));
            run.skip(given, &needless);
        }
        (false, false) => {
            run.record(declared, answer, Ok(()));
            run.skip(given, &needless);
        }
    }
}

/// Checks that two bindings have different credentials.
pub(crate) fn unlike(run: &PlanRun, case: &'static Case, one: &LiveBinding, other: &LiveBinding) {
    let of = |bound: &LiveBinding| {
        let mut answers = bound.answers();
        answers.find_map(|it| Some((it.clone(), credentials(it)?.clone())))
    };
    let (Some((_, one)), Some((answer, other))) = (of(one), of(other)) else {
        let reason = "no two bindings with credentials were seen";
        return run.skip(case, reason);
    };
    let judgement = if one == other {
        Err("two bindings have the same credentials".to_owned())
    } else {
        Ok(())
    };
    run.record(case, &answer, judgement);
}

#[cfg(test)]
mod tests {
    use super::{credentials, named_in, same};
    use crate::exchange::Exchange;
    use serde_json::json;

    #[test]
    fn empty_fields_carry_no_information() {
        let body = json!({
            "credentials": {},
            "volume_mounts": [],
            "syslog_drain_url": null,
            "endpoints": [{ "host": "a.example" }],
        });
        assert_eq!(named_in(Some(&body)), ["endpoints"]);
        assert!(named_in(None).is_empty());
        assert!(credentials(&Exchange::answered(200, &body)).is_none());
    }

    #[test]
    fn an_answer_may_omit_a_field_of_another_but_not_change_it() {
        let one = Exchange::answered(201, &json!({ "credentials": { "password": "a" } }));
        let silent = Exchange::answered(200, &json!({}));
        let other = Exchange::answered(200, &json!({ "credentials": { "password": "b" } }));
        assert!(same(&one, &one).is_ok());
        assert!(same(&one, &silent).is_ok());
        assert!(same(&one, &other).unwrap_err().contains("`credentials`"));
    }
}
