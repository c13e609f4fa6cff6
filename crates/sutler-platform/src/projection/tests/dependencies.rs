//! Reasons why an intent depends on a dropped one, and their precedence.

use super::shared_paths;
use crate::lifecycle::intent::{DependencyReason, IntentNumber};
use crate::projection::dependency;
use crate::spec::SpecPatch;
use crate::spec::samples::{label_patch, parameters_patch, patches, plan_patch};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

const DROPPED: IntentNumber = IntentNumber(2);

/// The reason for an author who saw the dropped intent.
fn reason(later: &SpecPatch, dropped: &SpecPatch, fits: bool) -> Option<DependencyReason> {
    dependency(later, &[IntentNumber(1), DROPPED], (DROPPED, dropped), fits)
}

fn same_path(pointer: &str) -> Option<DependencyReason> {
    Some(DependencyReason::SamePath(pointer.to_owned()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_same_path_is_found_wherever_paths_overlap(later in patches(), dropped in patches()) {
        let shared = shared_paths(&later, &dropped);
        match dependency(&later, &[], (DROPPED, &dropped), true) {
            Some(DependencyReason::SamePath(path)) => prop_assert!(shared.contains(&path)),
            other => {
                prop_assert_eq!(other, None);
                prop_assert!(shared.is_empty());
            }
        }
    }

    #[test]
    fn a_local_change_depends_only_on_the_same_path(
        later in patches(),
        dropped in patches(),
        fits in any::<bool>(),
    ) {
        if later.is_local() {
            let found = reason(&later, &dropped, fits);
            prop_assert_eq!(found.is_some(), !shared_paths(&later, &dropped).is_empty());
        }
    }
}

#[test]
fn a_path_inside_a_dropped_one_is_the_same_path() {
    let outer = parameters_patch(json!({"disk": null}));
    let inner = parameters_patch(json!({"disk": {"size": {"gb": 5}}}));
    let expected = same_path("/parameters/disk/size/gb");
    assert_eq!(reason(&inner, &outer, true), expected);
    assert_eq!(reason(&outer, &inner, true), expected);
    assert_eq!(reason(&inner, &inner, true), expected);
}

#[test]
fn paths_are_compared_segment_by_segment() {
    let disk = parameters_patch(json!({"disk": 1, "a/b": 1}));
    let others = parameters_patch(json!({"disk2": 1, "dis": 1, "a": {"b": 1}}));
    assert_eq!(reason(&others, &disk, true), None);
    let neighbours = parameters_patch(json!({"list": {"one": 1}}));
    assert_eq!(
        reason(
            &neighbours,
            &parameters_patch(json!({"list": {"two": 1}})),
            true
        ),
        None
    );
}

#[test]
fn labels_and_the_plan_have_paths_too() {
    let label = label_patch("team", None);
    assert_eq!(
        reason(&label, &label_patch("team", Some("x")), true),
        same_path("/labels/team")
    );
    assert_eq!(reason(&label, &label_patch("tier", Some("x")), true), None);
    assert_eq!(
        reason(&plan_patch("a"), &plan_patch("b"), true),
        same_path("/plan")
    );
}

#[test]
fn parameters_depend_on_a_plan_that_their_author_saw() {
    let plan = plan_patch("large");
    let parameters = parameters_patch(json!({"disk": 50}));
    let sources = SpecPatch {
        parameter_sources: Some(Vec::new()),
        ..SpecPatch::default()
    };
    for later in [&parameters, &sources] {
        assert_eq!(
            reason(later, &plan, true),
            Some(DependencyReason::PlanChange)
        );
        assert_eq!(
            dependency(later, &[IntentNumber(1)], (DROPPED, &plan), true),
            None
        );
    }
    // Only a plan change counts, and only for parameters.
    assert_eq!(
        reason(&parameters, &parameters_patch(json!({"cpu": 1})), true),
        None
    );
    let version = SpecPatch {
        maintenance_version: Some(Some("2.0.0".to_owned())),
        ..SpecPatch::default()
    };
    assert_eq!(reason(&version, &plan, true), None);
}

#[test]
fn parameters_that_no_longer_fit_depend_on_what_was_dropped() {
    let later = parameters_patch(json!({"disk": 50}));
    let dropped = parameters_patch(json!({"kind": "ssd"}));
    assert_eq!(
        reason(&later, &dropped, false),
        Some(DependencyReason::SchemaMismatch)
    );
}

#[test]
fn the_same_path_precedes_the_plan_and_the_plan_precedes_the_schema() {
    let later = parameters_patch(json!({"disk": 50}));
    let dropped = SpecPatch {
        plan: plan_patch("large").plan,
        ..later.clone()
    };
    assert_eq!(
        reason(&later, &dropped, false),
        same_path("/parameters/disk")
    );
    let plan = plan_patch("large");
    assert_eq!(
        reason(&later, &plan, false),
        Some(DependencyReason::PlanChange)
    );
    let unseen = dependency(&later, &[], (DROPPED, &plan), false);
    assert_eq!(unseen, Some(DependencyReason::SchemaMismatch));
}

#[test]
fn a_very_long_path_is_shortened_in_the_reason() {
    let long = parameters_patch(json!({"disk": {"x".repeat(600): 1}}));
    assert_eq!(reason(&long, &long, true), same_path("/parameters/disk"));
}
