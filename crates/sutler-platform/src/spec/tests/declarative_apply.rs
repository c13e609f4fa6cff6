//! Rules of `three_way`: which differences of an applied spec count.

use crate::spec::samples::{parameters_patch, plan_patch, spec, specs};
use crate::spec::{Parameters, ParametersPatch, Spec, SpecPatch, diff, three_way};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Whether one pointer is the other or leads to it.
fn overlap(one: &str, other: &str) -> bool {
    one == other || one.starts_with(&format!("{other}/")) || other.starts_with(&format!("{one}/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn applying_twice_changes_nothing_the_second_time(
        last in option::of(specs()),
        wanted in specs(),
        shown in specs(),
    ) {
        let after = shown.apply(&three_way(last.as_ref(), &wanted, &shown));
        prop_assert!(three_way(Some(&wanted), &wanted, &after).is_empty());
    }

    #[test]
    fn resubmitting_changes_nothing_whatever_others_changed(wanted in specs(), shown in specs()) {
        prop_assert!(three_way(Some(&wanted), &wanted, &shown).is_empty());
    }

    #[test]
    fn a_manager_that_is_alone_gets_what_it_wants(last in specs(), wanted in specs()) {
        prop_assert_eq!(last.apply(&three_way(Some(&last), &wanted, &last)), wanted);
    }

    #[test]
    fn the_first_apply_merges_what_is_wanted_into_what_is_shown(
        wanted in specs(),
        shown in specs(),
    ) {
        let set = |entries: &BTreeMap<String, String>| {
            entries.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
        };
        let version = wanted.maintenance_version.clone();
        let sources = wanted.parameter_sources.clone();
        let names_all = SpecPatch {
            plan: Some(wanted.plan.clone()),
            maintenance_version: version.map(Some),
            parameters: ParametersPatch::new(wanted.parameters.as_map().clone()),
            parameter_sources: Some(sources).filter(|it| !it.is_empty()),
            labels: set(&wanted.labels),
            annotations: set(&wanted.annotations),
            name: Some(wanted.name.clone()),
        };
        let after = shown.apply(&three_way(None, &wanted, &shown));
        prop_assert_eq!(after, shown.apply(&names_all));
    }

    #[test]
    fn nothing_is_named_that_is_shown_already(
        last in option::of(specs()),
        wanted in specs(),
        shown in specs(),
    ) {
        let patch = three_way(last.as_ref(), &wanted, &shown);
        prop_assert_eq!(diff(&shown, &shown.apply(&patch)), patch);
    }

    #[test]
    fn only_paths_that_the_manager_changed_are_named(
        last in specs(),
        wanted in specs(),
        shown in specs(),
    ) {
        let changed = diff(&last, &wanted).paths();
        for path in three_way(Some(&last), &wanted, &shown).paths() {
            prop_assert!(changed.iter().any(|it| overlap(it, &path)), "{}", path);
        }
    }

    #[test]
    fn managers_of_disjoint_keys_never_undo_each_other(
        universe in specs(),
        leaves in vec(leaf(), 1..12),
    ) {
        let shown = version(&universe, &leaves, |leaf| leaf.shown.clone());
        let of = |wanted_by_a: bool, second: bool| {
            version(&universe, &leaves, |leaf| {
                let value = if second { &leaf.second } else { &leaf.first };
                value.clone().filter(|_| leaf.of_a == wanted_by_a)
            })
        };
        let (a1, b1, a2, b2) = (of(true, false), of(false, false), of(true, true), of(false, true));
        let names_nothing_more = |wanted: &Spec, shown: &Spec| three_way(None, wanted, shown).is_empty();

        let shown = shown.apply(&three_way(None, &a1, &shown));
        let shown = shown.apply(&three_way(None, &b1, &shown));
        prop_assert!(names_nothing_more(&a1, &shown) && names_nothing_more(&b1, &shown));
        let shown = shown.apply(&three_way(Some(&a1), &a2, &shown));
        prop_assert!(names_nothing_more(&a2, &shown) && names_nothing_more(&b1, &shown));
        let shown = shown.apply(&three_way(Some(&b1), &b2, &shown));
        prop_assert!(names_nothing_more(&a2, &shown) && names_nothing_more(&b2, &shown));
        // What a manager no longer wants is gone.
        let left = paths_of(&shown);
        for withdrawn in [(&a1, &a2), (&b1, &b2)] {
            let kept = paths_of(withdrawn.1);
            for path in paths_of(withdrawn.0).iter().filter(|it| !kept.contains(it)) {
                prop_assert!(!left.contains(path), "{}", path);
            }
        }
    }
}

/// A leaf of the parameters: its manager, its value at first, and in each manager's two versions.
#[derive(Clone, Debug)]
struct LeafHistory {
    of_a: bool,
    shown: Option<Value>,
    first: Option<Value>,
    second: Option<Value>,
}

fn leaf() -> impl Strategy<Value = LeafHistory> {
    let value = || {
        option::weighted(
            0.7,
            select(vec![json!(1), json!(2), json!([null]), json!({})]),
        )
    };
    let of_a = select(vec![true, false]);
    (of_a, value(), value(), value()).prop_map(|(of_a, shown, first, second)| LeafHistory {
        of_a,
        shown,
        first,
        second,
    })
}

/// A spec with the paths of `universe`, and at each leaf what `pick` says; objects without leaves are left out.
fn version(
    universe: &Spec,
    leaves: &[LeafHistory],
    pick: impl Fn(&LeafHistory) -> Option<Value>,
) -> Spec {
    let mut values = leaves.iter().cycle().map(pick);
    let object = rebuilt(universe.parameters.as_map(), &mut values);
    Spec {
        parameters: Parameters::new(object),
        ..spec("small", json!({}))
    }
}

fn rebuilt(
    object: &Map<String, Value>,
    values: &mut dyn Iterator<Item = Option<Value>>,
) -> Map<String, Value> {
    let members = object.iter().filter_map(|(key, value)| {
        let value = match value {
            Value::Object(inside) if !inside.is_empty() => {
                let inside = rebuilt(inside, values);
                (!inside.is_empty()).then_some(Value::Object(inside))
            }
            _ => values.next().flatten(),
        };
        Some((key.clone(), value?))
    });
    members.collect()
}

fn paths_of(one: &Spec) -> Vec<String> {
    diff(&spec("small", json!({})), one).paths()
}

/// `last`, `wanted` and `shown` are parameters.
fn check(last: Option<Value>, wanted: Value, shown: Value, expected: Value) {
    let last = last.map(|it| spec("small", it));
    let patch = three_way(last.as_ref(), &spec("small", wanted), &spec("small", shown));
    assert_eq!(Value::Object(patch.parameters.as_map().clone()), expected);
    assert_eq!(patch, parameters_patch(expected));
}

#[test]
fn a_field_that_the_manager_left_as_it_was_is_not_changed() {
    let (last, wanted) = (json!({"disk": 10, "cpu": 1}), json!({"disk": 10, "cpu": 2}));
    check(
        Some(last),
        wanted,
        json!({"disk": 50, "cpu": 1}),
        json!({"cpu": 2}),
    );
}

#[test]
fn a_key_that_the_manager_withdraws_is_removed() {
    let last = json!({"a": 1, "b": {"c": 1, "d": {"e": 1}}});
    let shown = json!({"a": 5, "b": {"c": 1, "d": {"e": 1}}});
    check(
        Some(last.clone()),
        json!({}),
        shown,
        json!({"a": null, "b": null}),
    );
    check(Some(last), json!({}), json!({"other": 1}), json!({}));
}

#[test]
fn what_others_added_inside_a_withdrawn_object_stays() {
    let last = json!({"b": {"c": 1, "d": {"e": 1}}});
    let shown = json!({"b": {"c": 1, "d": {"e": 1}, "of_another": 1}});
    check(
        Some(last.clone()),
        json!({}),
        shown,
        json!({"b": {"c": null, "d": null}}),
    );
    let shown = json!({"b": {"d": {"e": 1, "of_another": 1}}});
    check(
        Some(last),
        json!({}),
        shown,
        json!({"b": {"d": {"e": null}}}),
    );
}

#[test]
fn without_an_earlier_apply_nothing_is_removed() {
    let shown = json!({"disk": {"size": 10, "kind": "ssd"}, "cpu": 1});
    let wanted = json!({"disk": {"size": 50}});
    check(None, wanted, shown, json!({"disk": {"size": 50}}));

    let mut shown = spec("small", json!({}));
    shown.maintenance_version = Some("1.0.0".to_owned());
    shown.labels.insert("team".to_owned(), "x".to_owned());
    assert!(three_way(None, &spec("small", json!({})), &shown).is_empty());
}

#[test]
fn a_version_that_the_manager_withdraws_is_removed() {
    let mut last = spec("small", json!({}));
    last.maintenance_version = Some("1.0.0".to_owned());
    let patch = three_way(Some(&last), &spec("small", json!({})), &last);
    assert_eq!(patch.maintenance_version, Some(None));
}

#[test]
fn nothing_is_removed_from_what_is_no_object_any_more() {
    let (last, wanted) = (json!({"a": {"b": 1, "c": 1}}), json!({"a": {"b": 1}}));
    for shown in [json!({}), json!({"a": 5}), json!({"a": {"b": 7}})] {
        check(Some(last.clone()), wanted.clone(), shown, json!({}));
    }
}

#[test]
fn a_member_inside_what_another_replaced_is_set_alone() {
    let (last, wanted) = (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}}));
    check(Some(last), wanted, json!({"a": 5}), json!({"a": {"c": 2}}));
}

#[test]
fn the_pending_change_of_another_author_is_neither_adopted_nor_reverted() {
    let mut shown = spec("large", json!({"disk": 50}));
    let file = spec("small", json!({"disk": 10}));
    assert!(three_way(Some(&file), &file, &shown).is_empty());
    // A manager that comes to the same value does not adopt it either.
    let same = spec("large", json!({"disk": 50}));
    assert!(three_way(Some(&file), &same, &shown).is_empty());
    // A manager that changes the plan once more changes only that.
    shown.labels.insert("team".to_owned(), "x".to_owned());
    let next = spec("medium", json!({"disk": 10}));
    assert_eq!(three_way(Some(&file), &next, &shown), plan_patch("medium"));
}
