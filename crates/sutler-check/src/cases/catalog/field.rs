//! Applies rules about one field to all offerings or plans of a catalog.
//!
//! An absent optional field and a null one count the same.

use crate::case::Case;
use serde_json::Value;
use std::collections::BTreeMap;

/// Verdict of a catalog about a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CatalogVerdict {
    Judged(Result<(), String>),
    /// There is nothing to check; the reason.
    Nowhere(String),
}

/// A case with its verdict.
pub(super) type CaseVerdict = (&'static Case, CatalogVerdict);

/// Whether a field is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

/// A rule of one field.
pub(super) struct Rule {
    pub(super) case: &'static Case,
    pub(super) field: &'static str,
    pub(super) presence: Presence,
    pub(super) check: fn(&Value) -> Result<(), String>,
}

/// Values of a catalog, each with a readable path.
pub(super) type Places<'a> = Vec<(String, &'a Value)>;

/// The offerings.
pub(super) fn offerings(catalog: &Value) -> Vec<&Value> {
    list(&catalog["services"])
}

/// The plans of an offering.
pub(super) fn plans(offering: &Value) -> Vec<&Value> {
    list(&offering["plans"])
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

/// The offerings with their paths.
pub(super) fn offering_places(catalog: &Value) -> Places<'_> {
    let all = offerings(catalog).into_iter().enumerate();
    all.map(|(index, it)| (place("services", index, it), it))
        .collect()
}

/// The plans of all offerings with their paths.
pub(super) fn plan_places(catalog: &Value) -> Places<'_> {
    let mut all = Vec::new();
    for (place_of, offering) in offering_places(catalog) {
        for (index, plan) in plans(offering).into_iter().enumerate() {
            all.push((format!("{place_of}.{}", place("plans", index, plan)), plan));
        }
    }
    all
}

/// `services[0]`, or with its name: `services[0] (demo)`.
fn place(list: &str, index: usize, value: &Value) -> String {
    match value["name"].as_str() {
        Some(name) if name.len() <= 64 => format!("{list}[{index}] ({name})"),
        _ => format!("{list}[{index}]"),
    }
}

/// Applies a table of rules.
pub(super) fn apply(rules: &[Rule], places: &Places<'_>, thing: &str, into: &mut Vec<CaseVerdict>) {
    for rule in rules {
        into.push((rule.case, verdict_of(rule, places, thing)));
    }
}

fn verdict_of(rule: &Rule, places: &Places<'_>, thing: &str) -> CatalogVerdict {
    let mut judged = false;
    for (place, value) in places {
        let judgement = match value.get(rule.field) {
            None | Some(Value::Null) if rule.presence == Presence::Optional => continue,
            None => Err("is missing".to_owned()),
            Some(field) => (rule.check)(field),
        };
        judged = true;
        if let Err(why) = judgement {
            return CatalogVerdict::Judged(Err(format!("{place}: `{}` {why}", rule.field)));
        }
    }
    if judged {
        CatalogVerdict::Judged(Ok(()))
    } else if places.is_empty() {
        CatalogVerdict::Nowhere(format!("there is no {thing}"))
    } else {
        CatalogVerdict::Nowhere(format!("no {thing} has `{}`", rule.field))
    }
}

/// Fails if two values have the same text in a field.
pub(super) fn unique(places: &Places<'_>, field: &str, thing: &str) -> CatalogVerdict {
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (place, value) in places {
        let Some(text) = value[field].as_str() else {
            continue;
        };
        if let Some(first) = known.insert(text, place) {
            let message = format!("{first} and {place} have the same `{field}`, {text:?}");
            return CatalogVerdict::Judged(Err(message));
        }
    }
    if known.is_empty() {
        CatalogVerdict::Nowhere(format!("there is no {thing} with `{field}`"))
    } else {
        CatalogVerdict::Judged(Ok(()))
    }
}

/// Checks of values; a failure completes a sentence about the field.
pub(super) fn words(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if !text.is_empty() => Ok(()),
        _ => Err("is not a non-empty string".to_owned()),
    }
}

pub(super) fn boolean(value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(_) => Ok(()),
        _ => Err("is neither true nor false".to_owned()),
    }
}

pub(super) fn object(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(_) => Ok(()),
        _ => Err("is not an object".to_owned()),
    }
}

pub(super) fn strings(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(all) if all.iter().all(Value::is_string) => Ok(()),
        _ => Err("is not a list of strings".to_owned()),
    }
}
