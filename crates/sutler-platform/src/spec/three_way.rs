//! Declarative apply: what one manager changed since it last applied, as a change of what is shown now.
//!
//! A manager (a person with a file, a GitOps tool) applies complete specs again and again. A plain difference to what is
//! shown would take back everything that others have changed meanwhile, their pending changes included. So only
//! differences between the last applied spec and the wanted one count; the rest stays as it is shown.

use super::{ParametersPatch, Spec, SpecPatch};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The change that a manager asks for, as a change of `shown`.
///
/// # Guarantees
/// - A field with the same value in `last` and `wanted` is not changed, whatever is shown.
/// - A key in `last` and not in `wanted` is removed, except what others have added inside it.
/// - A field that is shown as wanted is not named, so the pending change of another author is not adopted.
/// - Without `last` nothing is removed: an absent key, no maintenance version and an empty list of sources ask for
///   nothing.
/// - If `wanted` becomes `last` and the result is applied to `shown`, the same again is the empty change.
#[must_use]
pub fn three_way(last: Option<&Spec>, wanted: &Spec, shown: &Spec) -> SpecPatch {
    let no_object = Map::new();
    let no_entries = BTreeMap::new();
    // Without `last` an absent value is no wish.
    let names_version = last.is_some() || wanted.maintenance_version.is_some();
    let names_sources = last.is_some() || !wanted.parameter_sources.is_empty();
    SpecPatch {
        plan: field(last.map(|it| &it.plan), &wanted.plan, &shown.plan),
        maintenance_version: field(
            last.map(|it| &it.maintenance_version),
            &wanted.maintenance_version,
            &shown.maintenance_version,
        )
        .filter(|_| names_version),
        parameters: ParametersPatch::new(object(
            last.map_or(&no_object, |it| it.parameters.as_map()),
            wanted.parameters.as_map(),
            shown.parameters.as_map(),
        )),
        parameter_sources: field(
            last.map(|it| &it.parameter_sources),
            &wanted.parameter_sources,
            &shown.parameter_sources,
        )
        .filter(|_| names_sources),
        labels: entries(
            last.map_or(&no_entries, |it| &it.labels),
            &wanted.labels,
            &shown.labels,
        ),
        annotations: entries(
            last.map_or(&no_entries, |it| &it.annotations),
            &wanted.annotations,
            &shown.annotations,
        ),
        name: field(last.map(|it| &it.name), &wanted.name, &shown.name),
    }
}

/// A value that is replaced as a whole.
fn field<T: Clone + PartialEq>(last: Option<&T>, wanted: &T, shown: &T) -> Option<T> {
    (last != Some(wanted) && shown != wanted).then(|| wanted.clone())
}

fn entries(
    last: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    shown: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let set = wanted
        .iter()
        .filter(|(key, value)| last.get(*key) != Some(*value) && shown.get(*key) != Some(*value));
    let set = set.map(|(key, value)| (key.clone(), Some(value.clone())));
    let withdrawn = last.keys().filter(|key| !wanted.contains_key(*key));
    let removed = withdrawn.filter(|key| shown.contains_key(*key));
    set.chain(removed.map(|key| (key.clone(), None))).collect()
}

/// The merge patch of an object: members are compared one by one, down to the leaves.
fn object(
    last: &Map<String, Value>,
    wanted: &Map<String, Value>,
    shown: &Map<String, Value>,
) -> Map<String, Value> {
    let set = wanted.iter().filter_map(|(key, value)| {
        let change = member(last.get(key), value, shown.get(key))?;
        Some((key.clone(), change))
    });
    let withdrawn = last.iter().filter(|(key, _)| !wanted.contains_key(*key));
    let removed = withdrawn.filter_map(|(key, value)| {
        let change = removal(value, shown.get(key)?)?;
        Some((key.clone(), change))
    });
    set.chain(removed).collect()
}

/// The change of a member that the manager wants.
fn member(last: Option<&Value>, wanted: &Value, shown: Option<&Value>) -> Option<Value> {
    let Value::Object(inside) = wanted else {
        let differs = last != Some(wanted) && shown != Some(wanted);
        return differs.then(|| wanted.clone());
    };
    let none = Map::new();
    let before = last.and_then(Value::as_object);
    let now = shown.and_then(Value::as_object);
    let change = object(before.unwrap_or(&none), inside, now.unwrap_or(&none));
    // The manager newly wants an object here; if it only removed members, there is nothing to remove them from.
    let becomes_object = before.is_none() && now.is_none();
    (becomes_object || !change.is_empty()).then_some(Value::Object(change))
}

/// The change of a member that the manager no longer wants: all of it goes that `last` names.
fn removal(last: &Value, shown: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(now)) = (last, shown) else {
        return Some(Value::Null);
    };
    let change = object(before, &Map::new(), now);
    if now.keys().all(|key| change.get(key) == Some(&Value::Null)) {
        return Some(Value::Null);
    }
    (!change.is_empty()).then_some(Value::Object(change))
}
