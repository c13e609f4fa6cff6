//! Cases about the fields of a plan.

use super::field::{
    CaseVerdict, CatalogVerdict, Presence, Rule, apply, boolean, object, offering_places,
    plan_places, plans, strings, unique, words,
};
use crate::case::{Case, Level, Scope};
use serde_json::Value;

/// A case of the catalog at level MUST.
const fn must(name: &'static str, line: &'static str, rule: &'static str) -> Case {
    Case {
        name,
        line,
        level: Level::Must,
        scope: Scope::Broker,
        rule,
    }
}

pub(super) const ID: Case = must(
    "plan-id",
    "B-068",
    "A plan has an `id`, a non-empty string.",
);
pub(super) const ID_UNIQUE: Case = must(
    "plan-id-unique",
    "B-068",
    "No two plans of the catalog have the same `id`.",
);
pub(super) const NAME: Case = must(
    "plan-name",
    "B-069",
    "A plan has a `name`, a non-empty string.",
);
pub(super) const NAME_UNIQUE: Case = must(
    "plan-name-unique",
    "B-069",
    "No two plans of an offering have the same `name`.",
);
pub(super) const DESCRIPTION: Case = must(
    "plan-description",
    "B-070",
    "A plan has a `description`, a non-empty string.",
);
pub(super) const METADATA: Case = must(
    "plan-metadata",
    "B-071",
    "`metadata` of a plan, if there, is an object.",
);
pub(super) const METADATA_PROFILE: Case = Case {
    name: "plan-metadata-profile",
    line: "B-071",
    level: Level::May,
    scope: Scope::Broker,
    rule: "`bullets` in a plan's metadata is a list of strings, and each of `costs` has an `amount` by currency and a `unit`.",
};
pub(super) const FREE: Case = must(
    "plan-free",
    "B-072",
    "`free` of a plan, if there, is a boolean.",
);
pub(super) const BINDABLE: Case = must(
    "plan-bindable",
    "B-073",
    "`bindable` of a plan, if there, is a boolean.",
);
pub(super) const BINDING_ROTATABLE: Case = must(
    "plan-binding-rotatable",
    "B-074",
    "`binding_rotatable` of a plan, if there, is a boolean.",
);
pub(super) const PLAN_UPDATEABLE: Case = must(
    "plan-plan-updateable",
    "B-075",
    "`plan_updateable` of a plan, if there, is a boolean.",
);
pub(super) const MAXIMUM_POLLING_DURATION: Case = must(
    "plan-maximum-polling-duration",
    "B-076",
    "`maximum_polling_duration` of a plan, if there, is a whole number of seconds.",
);
pub(super) const MAINTENANCE_INFO: Case = must(
    "plan-maintenance-info",
    "B-077",
    "`maintenance_info` of a plan, if there, has a `version` in the form of semantic versioning 2.0, and `description` is a string.",
);
pub(super) const SCHEMAS: Case = must(
    "plan-schemas",
    "B-078",
    "`schemas` of a plan, and what is in it, are objects down to `parameters`.",
);

const RULES: &[Rule] = &[
    rule(&ID, "id", Presence::Required, words),
    rule(&NAME, "name", Presence::Required, words),
    rule(&DESCRIPTION, "description", Presence::Required, words),
    rule(&METADATA, "metadata", Presence::Optional, object),
    rule(&METADATA_PROFILE, "metadata", Presence::Optional, profile),
    rule(&FREE, "free", Presence::Optional, boolean),
    rule(&BINDABLE, "bindable", Presence::Optional, boolean),
    rule(
        &BINDING_ROTATABLE,
        "binding_rotatable",
        Presence::Optional,
        boolean,
    ),
    rule(
        &PLAN_UPDATEABLE,
        "plan_updateable",
        Presence::Optional,
        boolean,
    ),
    rule(
        &MAXIMUM_POLLING_DURATION,
        "maximum_polling_duration",
        Presence::Optional,
        whole_number,
    ),
    rule(
        &MAINTENANCE_INFO,
        "maintenance_info",
        Presence::Optional,
        maintenance_info,
    ),
    rule(&SCHEMAS, "schemas", Presence::Optional, schemas),
];

const fn rule(
    case: &'static Case,
    field: &'static str,
    presence: Presence,
    check: fn(&Value) -> Result<(), String>,
) -> Rule {
    Rule {
        case,
        field,
        presence,
        check,
    }
}

/// Checks the plans of a catalog.
pub(super) fn check(catalog: &Value, into: &mut Vec<CaseVerdict>) {
    let places = plan_places(catalog);
    apply(RULES, &places, "plan", into);
    into.push((&ID_UNIQUE, unique(&places, "id", "plan")));
    into.push((&NAME_UNIQUE, unique_names(catalog)));
}

/// Names must be unique within an offering only.
fn unique_names(catalog: &Value) -> CatalogVerdict {
    let mut case_verdict = CatalogVerdict::Nowhere("there is no plan".to_owned());
    for (place, offering) in offering_places(catalog) {
        let all = plans(offering).into_iter().enumerate();
        let places = all
            .map(|(index, it)| (format!("{place}.plans[{index}]"), it))
            .collect();
        match unique(&places, "name", "plan") {
            CatalogVerdict::Judged(Err(message)) => return CatalogVerdict::Judged(Err(message)),
            CatalogVerdict::Judged(Ok(())) => case_verdict = CatalogVerdict::Judged(Ok(())),
            CatalogVerdict::Nowhere(_) => {}
        }
    }
    case_verdict
}

fn profile(value: &Value) -> Result<(), String> {
    if !value["bullets"].is_null() {
        strings(&value["bullets"]).map_err(|it| format!("has `bullets` that {it}"))?;
    }
    let costs = match &value["costs"] {
        Value::Null => return Ok(()),
        Value::Array(costs) => costs,
        _ => return Err("has `costs` that are not a list".to_owned()),
    };
    for cost in costs {
        let amounts = cost["amount"].as_object();
        let are_numbers = amounts.is_some_and(|it| it.values().all(Value::is_number));
        if !are_numbers || !cost["unit"].is_string() {
            return Err("has `costs` without an `amount` by currency or a `unit`".to_owned());
        }
    }
    Ok(())
}

fn whole_number(value: &Value) -> Result<(), String> {
    match value.as_f64() {
        // 60.0 is a whole number too.
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(()),
        _ => Err(format!("is {value}")),
    }
}

fn maintenance_info(value: &Value) -> Result<(), String> {
    object(value)?;
    let Some(version) = value["version"].as_str() else {
        return Err("has no `version` that is a string".to_owned());
    };
    if semver::Version::parse(version).is_err() {
        return Err(format!("has the `version` {version:?}"));
    }
    match value.get("description") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(_) => Err("has a `description` that is not a string".to_owned()),
    }
}

fn schemas(value: &Value) -> Result<(), String> {
    object(value)?;
    for (kind, verbs) in [
        ("service_instance", &["create", "update"][..]),
        ("service_binding", &["create"]),
    ] {
        let of_kind = match value.get(kind) {
            None | Some(Value::Null) => continue,
            Some(of_kind) => of_kind,
        };
        object(of_kind).map_err(|it| format!("has a `{kind}` that {it}"))?;
        for verb in verbs {
            let of_verb = match of_kind.get(*verb) {
                None | Some(Value::Null) => continue,
                Some(of_verb) => of_verb,
            };
            let place = format!("{kind}.{verb}");
            object(of_verb).map_err(|it| format!("has a `{place}` that {it}"))?;
            match of_verb.get("parameters") {
                None | Some(Value::Null | Value::Object(_)) => {}
                Some(_) => return Err(format!("has `{place}.parameters` that are not an object")),
            }
        }
    }
    Ok(())
}
