//! Parameters of updates: a broker that reads them as it is said to has the new ones afterwards.

use super::fixtures::to_json;
use crate::broker_request::parameter_difference::{
    ResentField, UpdateParameters, parameter_difference,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use sutler_osb::Parameters;

/// Values below the top level, where `null` is a value.
fn nested_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[ab]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A top-level parameter: `null` stands for none.
fn value() -> impl Strategy<Value = Value> {
    nested_value().prop_filter("null is the absence of a parameter", |value| {
        !value.is_null()
    })
}

fn parameters() -> impl Strategy<Value = Map<String, Value>> {
    btree_map("[a-e]", value(), 0..5).prop_map(Map::from_iter)
}

/// A broker that merges, key by key (D-14).
fn merged(mut there: Map<String, Value>, sent: Option<Parameters>) -> Map<String, Value> {
    for (key, value) in sent.map(|it| it.0).unwrap_or_default() {
        match value {
            Value::Null => there.remove(&key),
            Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => there.insert(key, value),
        };
    }
    there
}

fn resent(keys: &BTreeSet<String>) -> BTreeSet<ResentField> {
    keys.iter().cloned().map(ResentField::Parameter).collect()
}

#[test]
fn the_choice_of_a_broker_has_these_names() {
    assert_eq!(
        to_json(&UpdateParameters::ChangedOnly),
        json!("changedOnly")
    );
    assert_eq!(to_json(&UpdateParameters::Whole), json!("whole"));
}

proptest! {
    #[test]
    fn a_broker_that_merges_has_the_new_parameters_after_an_update(
        before in parameters(),
        after in parameters(),
    ) {
        let sent = parameter_difference(
            UpdateParameters::ChangedOnly, &before, &after, &BTreeSet::new(),
        );
        prop_assert_eq!(sent.is_none(), before == after);
        prop_assert_eq!(merged(before, sent), after);
    }

    #[test]
    fn an_update_sends_no_key_that_stays_as_it_is(before in parameters(), after in parameters()) {
        let sent = parameter_difference(
            UpdateParameters::ChangedOnly, &before, &after, &BTreeSet::new(),
        );
        for key in sent.unwrap_or_default().0.keys() {
            prop_assert!(before.get(key) != after.get(key));
        }
    }

    /// The broker may or may not have done what the intent in doubt asked for, key by key.
    #[test]
    fn a_broker_in_doubt_has_the_new_parameters_after_an_update(
        before in parameters(),
        after in parameters(),
        doubtful in btree_map("[a-e]", proptest::option::of(value()), 0..4),
    ) {
        let mut there = before.clone();
        let touched: BTreeMap<String, Option<Value>> = doubtful;
        for (key, value) in &touched {
            match value {
                Some(value) => there.insert(key.clone(), value.clone()),
                None => there.remove(key),
            };
        }
        let keys = touched.into_keys().collect();
        let sent = parameter_difference(
            UpdateParameters::ChangedOnly, &before, &after, &resent(&keys),
        );
        prop_assert_eq!(merged(there, sent), after);
    }

    #[test]
    fn a_broker_that_replaces_has_the_new_parameters_after_an_update(
        before in parameters(),
        after in parameters(),
        keys in btree_set("[a-e]", 0..3),
    ) {
        let sent = parameter_difference(UpdateParameters::Whole, &before, &after, &resent(&keys));
        prop_assert_eq!(sent.is_none(), before == after && keys.is_empty());
        prop_assert_eq!(sent.map_or(before, |it| it.0), after);
    }
}
