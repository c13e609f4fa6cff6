//! Laws of apply, difference, undo and composition.

use crate::spec::samples::{label_patch, parameters_patch, patches, plan_patch, spec, specs};
use crate::spec::{Parameters, ParametersPatch, SpecPatch, diff, undo};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_difference_makes_one_spec_of_the_other(from in specs(), to in specs()) {
        prop_assert_eq!(from.apply(&diff(&from, &to)), to);
    }

    #[test]
    fn equal_specs_have_no_difference(one in specs()) {
        prop_assert!(diff(&one, &one.clone()).is_empty());
    }

    #[test]
    fn applying_a_change_twice_is_applying_it_once(before in specs(), patch in patches()) {
        let once = before.apply(&patch);
        prop_assert_eq!(once.apply(&patch), once);
    }

    #[test]
    fn no_change_brings_null_members_into_parameters(before in specs(), patch in patches()) {
        let after = before.apply(&patch).parameters;
        prop_assert_eq!(Parameters::new(after.as_map().clone()), after);
    }

    #[test]
    fn an_empty_change_changes_nothing(before in specs()) {
        prop_assert_eq!(before.apply(&SpecPatch::default()), before);
    }

    #[test]
    fn undo_leads_back(before in specs(), patch in patches()) {
        let after = before.apply(&patch);
        prop_assert_eq!(after.apply(&undo(&before, &patch)), before);
    }

    #[test]
    fn a_composition_has_the_effect_of_both(
        before in specs(),
        first in patches(),
        later in patches(),
    ) {
        if let Some(both) = first.then(&later) {
            prop_assert_eq!(before.apply(&both), before.apply(&first).apply(&later));
        }
    }

    #[test]
    fn changes_without_objects_in_parameters_always_compose(
        first in patches(),
        mut later in patches(),
    ) {
        let mut flat = later.parameters.as_map().clone();
        flat.retain(|_, value| !value.is_object());
        later.parameters = ParametersPatch::new(flat);
        prop_assert!(first.then(&later).is_some());
    }

    #[test]
    fn only_differences_of_local_fields_are_local(from in specs(), to in specs()) {
        let same_for_broker = from.plan == to.plan
            && from.maintenance_version == to.maintenance_version
            && from.parameters == to.parameters
            && from.parameter_sources == to.parameter_sources;
        prop_assert_eq!(diff(&from, &to).is_local(), same_for_broker);
    }
}

#[test]
fn a_removed_key_is_null_in_the_difference() {
    let from = spec(
        "small",
        json!({"disk": {"size": 10, "kind": "ssd"}, "old": 1}),
    );
    let to = spec("small", json!({"disk": {"size": 50}}));
    let expected = parameters_patch(json!({"disk": {"size": 50, "kind": null}, "old": null}));
    assert_eq!(diff(&from, &to), expected);
}

#[test]
fn the_last_word_of_a_composition_is_the_later_one() {
    let first = plan_patch("large").then(&label_patch("team", Some("x")));
    let both = first.and_then(|it| it.then(&label_patch("team", None)));
    let both = both.and_then(|it| it.then(&parameters_patch(json!({"a": {"b": 1}}))));
    let both = both.and_then(|it| it.then(&parameters_patch(json!({"a": {"b": null, "c": 2}}))));
    let expected = SpecPatch {
        plan: plan_patch("large").plan,
        parameters: parameters_patch(json!({"a": {"b": null, "c": 2}})).parameters,
        ..label_patch("team", None)
    };
    assert_eq!(both, Some(expected));
}

/// Both together make the member exactly `{"b": 1}`. A merge patch with an object keeps what else is there.
#[test]
fn a_removal_and_a_later_object_do_not_compose() {
    let later = parameters_patch(json!({"a": {"b": 1}}));
    for first in [json!({"a": null}), json!({"a": 5}), json!({"a": []})] {
        let first = parameters_patch(first);
        let before = spec("small", json!({"a": {"c": 1}}));
        let both = before.apply(&first).apply(&later);
        assert_eq!(both, spec("small", json!({"a": {"b": 1}})));
        assert_ne!(before.apply(&later), both);
        assert_eq!(first.then(&later), None);
        let deeper = |patch: &SpecPatch| parameters_patch(json!({"x": patch.parameters.as_map()}));
        assert_eq!(deeper(&first).then(&deeper(&later)), None);
    }
}

#[test]
fn an_object_and_a_later_removal_compose() {
    let first = parameters_patch(json!({"a": {"b": 1}}));
    for later in [
        json!({"a": null}),
        json!({"a": 5}),
        json!({"a": {"b": null}}),
    ] {
        let later = parameters_patch(later);
        assert_eq!(first.then(&later), Some(later));
    }
}

#[test]
fn an_object_without_members_is_a_change() {
    let patch = parameters_patch(json!({"a": {}}));
    assert!(!patch.is_empty());
    assert_eq!(
        spec("small", json!({})).apply(&patch),
        spec("small", json!({"a": {}}))
    );
    let object = spec("small", json!({"a": {"b": 1}}));
    assert_eq!(object.apply(&patch), object);
}

#[test]
fn a_change_says_what_it_touches() {
    let parameters = parameters_patch(json!({"a": null}));
    let sources = SpecPatch {
        parameter_sources: Some(Vec::new()),
        ..SpecPatch::default()
    };
    let version = SpecPatch {
        maintenance_version: Some(None),
        ..SpecPatch::default()
    };
    let check = |patch: &SpecPatch, local: bool, plan: bool, parameters: bool| {
        assert!(!patch.is_empty());
        assert_eq!(patch.is_local(), local, "{patch:?}");
        assert_eq!(patch.changes_plan(), plan, "{patch:?}");
        assert_eq!(patch.changes_parameters(), parameters, "{patch:?}");
    };
    check(&plan_patch("large"), false, true, false);
    check(&parameters, false, false, true);
    check(&sources, false, false, true);
    check(&version, false, false, false);
    check(&label_patch("team", None), true, false, false);
    assert!(SpecPatch::default().is_empty() && SpecPatch::default().is_local());
}
