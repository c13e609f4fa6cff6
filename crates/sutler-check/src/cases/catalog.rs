//! Cases about the catalog, which is fetched twice and decides which other cases apply.
//!
//! Each rule is a pure function of raw JSON. Rules about single fields are tables (`catalog/offering.rs`,
//! `catalog/plan.rs`), applied by `catalog/field.rs`; rules about parameter schemas are in
//! `catalog/schemas.rs`.

mod field;
mod names;
mod offering;
mod plan;
mod schemas;
#[cfg(test)]
mod tests;

use crate::case::{Case, Level, Scope};
use crate::client::{CheckClient, StopReason};
use crate::exchange::Exchange;
use crate::options::Profile;
use crate::verdicts::{Subject, Verdict};
use field::CatalogVerdict;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_client::wire::{Method, Request};

const CATALOG: Case = Case {
    name: "catalog",
    line: "B-050",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "GET /v2/catalog answers 200 with an object whose `services` is an array.",
};

const STABLE: Case = Case {
    name: "catalog-stable-ids",
    line: "B-051",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "The id of an offering or plan is the same whenever the catalog is asked for.",
};

const CACHED: Case = Case {
    name: "catalog-cached",
    line: "B-052",
    level: Level::May,
    scope: Scope::Broker,
    rule: "Who has the catalog already, and says so by `If-None-Match` or `If-Modified-Since`, gets 304 without a body.",
};

pub(crate) const CASES: &[&Case] = &[
    &CATALOG,
    &STABLE,
    &CACHED,
    &names::LENGTHS,
    &names::CLI_FRIENDLY,
    &names::UNRESERVED,
    &names::GUID,
    &offering::NAME,
    &offering::NAME_UNIQUE,
    &offering::ID,
    &offering::ID_UNIQUE,
    &offering::DESCRIPTION,
    &offering::BINDABLE,
    &offering::PLANS,
    &offering::TAGS,
    &offering::REQUIRES,
    &offering::INSTANCES_RETRIEVABLE,
    &offering::BINDINGS_RETRIEVABLE,
    &offering::ALLOW_CONTEXT_UPDATES,
    &offering::METADATA,
    &offering::DASHBOARD_CLIENT,
    &offering::PLAN_UPDATEABLE,
    &plan::ID,
    &plan::ID_UNIQUE,
    &plan::NAME,
    &plan::NAME_UNIQUE,
    &plan::DESCRIPTION,
    &plan::METADATA,
    &plan::METADATA_PROFILE,
    &plan::FREE,
    &plan::BINDABLE,
    &plan::BINDING_ROTATABLE,
    &plan::PLAN_UPDATEABLE,
    &plan::MAXIMUM_POLLING_DURATION,
    &plan::MAINTENANCE_INFO,
    &plan::SCHEMAS,
    &schemas::DIALECT,
    &schemas::SIZE,
    &schemas::REFERENCES,
    &schemas::VALID,
];

/// Fetches and checks the catalog.
pub(crate) async fn walk(client: &CheckClient) -> Result<Arc<Exchange>, StopReason> {
    let first = client.ask(request()).await?;
    let is_catalog = services(&first);
    let is_read = is_catalog.is_ok();
    client.record(&CATALOG, &Subject::Broker, &first, is_catalog);
    if !is_read {
        for case in CASES.iter().skip(1) {
            skip(client, case, "there is no catalog to be read");
        }
        return Ok(first);
    }
    let catalog = first.json().unwrap_or(&Value::Null);
    for (case, case_verdict) in check(catalog, client.options.profile) {
        match case_verdict {
            CatalogVerdict::Judged(judgement) => {
                client.record(case, &Subject::Broker, &first, judgement)
            }
            CatalogVerdict::Nowhere(reason) => skip(client, case, &reason),
        }
    }
    let second = client.ask(request()).await?;
    let stable = services(&second).and_then(|()| {
        let again = second.json().unwrap_or(&Value::Null);
        same_ids(catalog, again)
    });
    client.record(&STABLE, &Subject::Broker, &second, stable);
    cached(client, &second).await?;
    Ok(first)
}

fn request() -> Request {
    Request::new(Method::Get, &["v2", "catalog"])
}

fn skip(client: &CheckClient, case: &'static Case, reason: &str) {
    let verdict = Verdict::NotApplicable(reason.to_owned());
    client.verdicts.record(case, &Subject::Broker, verdict);
}

/// Fetches the catalog again with its `ETag`.
async fn cached(client: &CheckClient, known: &Exchange) -> Result<(), StopReason> {
    let request = match (known.header("ETag"), known.header("Last-Modified")) {
        (Some(tag), _) => request().header("If-None-Match", tag),
        (None, Some(time)) => request().header("If-Modified-Since", time),
        (None, None) => {
            let reason = "the catalog comes with neither ETag nor Last-Modified";
            skip(client, &CACHED, reason);
            return Ok(());
        }
    };
    let answer = client.ask(request).await?;
    let judgement = answer.must_be(&[304]).and_then(|()| match &answer.outcome {
        Ok(it) if !it.body.is_empty() => Err("the 304 has a body".to_owned()),
        _ => Ok(()),
    });
    client.record(&CACHED, &Subject::Broker, &answer, judgement);
    Ok(())
}

fn services(exchange: &Exchange) -> Result<(), String> {
    exchange.must_be(&[200])?;
    match exchange.field("services") {
        Some(Value::Array(_)) => Ok(()),
        Some(_) => Err("`services` is not an array".to_owned()),
        None => Err("there is no `services`".to_owned()),
    }
}

/// Checks one catalog.
fn check(catalog: &Value, profile: Profile) -> Vec<(&'static Case, CatalogVerdict)> {
    let mut all = Vec::new();
    names::check(catalog, profile, &mut all);
    offering::check(catalog, &mut all);
    plan::check(catalog, &mut all);
    schemas::check(catalog, &mut all);
    all
}

/// Equal names in both catalogs must have equal ids.
fn same_ids(one: &Value, other: &Value) -> Result<(), String> {
    let after = named(field::offerings(other));
    for (name, before) in named(field::offerings(one)) {
        let Some(after) = after.get(name) else {
            continue;
        };
        same_id("offering", name, before, after)?;
        let later = named(field::plans(after));
        for (name, before) in named(field::plans(before)) {
            if let Some(after) = later.get(name) {
                same_id("plan", name, before, after)?;
            }
        }
    }
    Ok(())
}

fn named(all: Vec<&Value>) -> BTreeMap<&str, &Value> {
    all.into_iter()
        .filter_map(|it| Some((it["name"].as_str()?, it)))
        .collect()
}

fn same_id(thing: &str, name: &str, before: &Value, after: &Value) -> Result<(), String> {
    let (was, is) = (&before["id"], &after["id"]);
    if was == is {
        return Ok(());
    }
    Err(format!(
        "the {thing} {name:?} had the id {was} and has {is}"
    ))
}
