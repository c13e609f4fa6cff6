//! Cases about the fields of an offering.

use super::field::{
    CaseVerdict, Presence, Rule, apply, boolean, object, offering_places, strings, unique, words,
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

pub(super) const NAME: Case = must(
    "offering-name",
    "B-055",
    "An offering has a `name`, a non-empty string.",
);
pub(super) const NAME_UNIQUE: Case = must(
    "offering-name-unique",
    "B-055",
    "No two offerings have the same `name`.",
);
pub(super) const ID: Case = must(
    "offering-id",
    "B-056",
    "An offering has an `id`, a non-empty string.",
);
pub(super) const ID_UNIQUE: Case = must(
    "offering-id-unique",
    "B-056",
    "No two offerings have the same `id`.",
);
pub(super) const DESCRIPTION: Case = must(
    "offering-description",
    "B-057",
    "An offering has a `description`, a non-empty string.",
);
pub(super) const BINDABLE: Case = must(
    "offering-bindable",
    "B-058",
    "An offering says by the boolean `bindable` whether its instances can be bound.",
);
pub(super) const PLANS: Case = must(
    "offering-plans",
    "B-059",
    "An offering has `plans`, a list of at least one.",
);
pub(super) const TAGS: Case = must(
    "offering-tags",
    "B-060",
    "`tags` of an offering, if there, is a list of strings.",
);
pub(super) const REQUIRES: Case = must(
    "offering-requires",
    "B-061",
    "`requires` of an offering, if there, lists only syslog_drain, route_forwarding and volume_mount.",
);
pub(super) const INSTANCES_RETRIEVABLE: Case = must(
    "offering-instances-retrievable",
    "B-062",
    "`instances_retrievable` of an offering, if there, is a boolean.",
);
pub(super) const BINDINGS_RETRIEVABLE: Case = must(
    "offering-bindings-retrievable",
    "B-063",
    "`bindings_retrievable` of an offering, if there, is a boolean.",
);
pub(super) const ALLOW_CONTEXT_UPDATES: Case = must(
    "offering-allow-context-updates",
    "B-064",
    "`allow_context_updates` of an offering, if there, is a boolean.",
);
pub(super) const METADATA: Case = must(
    "offering-metadata",
    "B-065",
    "`metadata` of an offering, if there, is an object.",
);
pub(super) const DASHBOARD_CLIENT: Case = must(
    "offering-dashboard-client",
    "B-066",
    "`dashboard_client` of an offering, if there, has a non-empty `id` and `secret`; `redirect_uri` is a string.",
);
pub(super) const PLAN_UPDATEABLE: Case = must(
    "offering-plan-updateable",
    "B-067",
    "`plan_updateable` of an offering, if there, is a boolean; no other spelling is known.",
);

const RULES: &[Rule] = &[
    required(&NAME, "name", words),
    required(&ID, "id", words),
    required(&DESCRIPTION, "description", words),
    required(&BINDABLE, "bindable", boolean),
    required(&PLANS, "plans", some_plans),
    optional(&TAGS, "tags", strings),
    optional(&REQUIRES, "requires", permissions),
    optional(&INSTANCES_RETRIEVABLE, "instances_retrievable", boolean),
    optional(&BINDINGS_RETRIEVABLE, "bindings_retrievable", boolean),
    optional(&ALLOW_CONTEXT_UPDATES, "allow_context_updates", boolean),
    optional(&METADATA, "metadata", object),
    optional(&DASHBOARD_CLIENT, "dashboard_client", dashboard_client),
    optional(&PLAN_UPDATEABLE, "plan_updateable", boolean),
    // The common spelling, which no platform reads.
    optional(&PLAN_UPDATEABLE, "plan_updatable", misspelt),
];

const fn required(
    case: &'static Case,
    field: &'static str,
    check: fn(&Value) -> Result<(), String>,
) -> Rule {
    Rule {
        case,
        field,
        presence: Presence::Required,
        check,
    }
}

const fn optional(
    case: &'static Case,
    field: &'static str,
    check: fn(&Value) -> Result<(), String>,
) -> Rule {
    Rule {
        case,
        field,
        presence: Presence::Optional,
        check,
    }
}

/// Checks the offerings of a catalog.
pub(super) fn check(catalog: &Value, into: &mut Vec<CaseVerdict>) {
    let places = offering_places(catalog);
    apply(RULES, &places, "offering", into);
    into.push((&NAME_UNIQUE, unique(&places, "name", "offering")));
    into.push((&ID_UNIQUE, unique(&places, "id", "offering")));
}

fn some_plans(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(all) if all.is_empty() => Err("is empty".to_owned()),
        Value::Array(_) => Ok(()),
        _ => Err("is not a list".to_owned()),
    }
}

fn permissions(value: &Value) -> Result<(), String> {
    strings(value)?;
    let known = |it: &&Value| {
        matches!(
            it.as_str(),
            Some("syslog_drain" | "route_forwarding" | "volume_mount")
        )
    };
    let mut all = value.as_array().into_iter().flatten();
    match all.find(|it| !known(it)) {
        Some(other) => Err(format!("has {other}, which is not known")),
        None => Ok(()),
    }
}

/// Checks a dashboard client; errors contain no secret.
fn dashboard_client(value: &Value) -> Result<(), String> {
    object(value)?;
    for name in ["id", "secret"] {
        words(&value[name]).map_err(|it| format!("has a `{name}` that {it}"))?;
    }
    match &value["redirect_uri"] {
        Value::Null | Value::String(_) => Ok(()),
        _ => Err("has a `redirect_uri` that is not a string".to_owned()),
    }
}

fn misspelt(_: &Value) -> Result<(), String> {
    Err("is not read by platforms: it is spelt `plan_updateable`".to_owned())
}
