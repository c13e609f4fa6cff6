//! Tests of the projection; nothing here is part of the product.

mod dependencies;
mod worked_example;

use super::{counts, fold};
use crate::lifecycle::intent::{HoldReason, IntentNumber, IntentState, UnknownQuestion};
use crate::spec::samples::{parameters_patch, patches, spec, specs};
use crate::spec::{SpecPatch, diff};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
use serde_json::json;

/// Changes with the numbers 1, 2, 3 …
fn numbered(patches: &[SpecPatch]) -> impl Iterator<Item = (IntentNumber, &SpecPatch)> {
    (1..).map(IntentNumber).zip(patches)
}

/// The paths of both that are equal or lead to each other, by their text.
fn shared_paths(one: &SpecPatch, other: &SpecPatch) -> Vec<String> {
    let below = |one: &str, other: &str| one == other || one.starts_with(&format!("{other}/"));
    let others = other.paths();
    let mut found = Vec::new();
    for path in one.paths() {
        for other in &others {
            if below(&path, other) {
                found.push(path.clone());
            } else if below(other, &path) {
                found.push(other.clone());
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_fold_of_nothing_is_the_base(base in specs()) {
        let projection = fold(&base, []);
        prop_assert_eq!(projection.spec, base);
        prop_assert_eq!(projection.authors_of, []);
    }

    #[test]
    fn changes_are_applied_in_their_order(base in specs(), patches in vec(patches(), 0..5)) {
        let expected = patches.iter().fold(base.clone(), |spec, patch| spec.apply(patch));
        prop_assert_eq!(fold(&base, numbered(&patches)).spec, expected);
    }

    #[test]
    fn each_differing_path_has_the_last_intent_that_touches_it(
        base in specs(),
        patches in vec(patches(), 0..5),
    ) {
        let projection = fold(&base, numbered(&patches));
        let difference = diff(&base, &projection.spec);
        let paths: Vec<_> = projection.authors_of.iter().map(|(path, _)| path.clone()).collect();
        prop_assert_eq!(paths, difference.paths());
        for (path, author) in projection.authors_of {
            let touches = |patch: &SpecPatch| patch.paths().iter().any(|it| {
                *it == path
                    || it.starts_with(&format!("{path}/"))
                    || path.starts_with(&format!("{it}/"))
            });
            let last = numbered(&patches).filter(|(_, patch)| touches(patch)).last();
            prop_assert_eq!(last.map(|(number, _)| number), Some(author), "{}", path);
        }
    }
}

#[test]
fn intents_on_hold_and_suspended_ones_do_not_count() {
    let counting = [
        IntentState::Queued { last: None },
        IntentState::Sending { attempt: 1 },
        IntentState::Unknown {
            question: UnknownQuestion::SendAgain,
        },
        IntentState::Polling {
            since: Timestamp::UNIX_EPOCH,
        },
    ];
    assert!(counting.iter().all(counts));
    assert!(!counts(&IntentState::OnHold(HoldReason::Interrupted)));
    assert!(!counts(&IntentState::Suspended));
}

#[test]
fn a_change_that_is_taken_back_has_no_author() {
    let base = spec("small", json!({"disk": 10}));
    let patches = [json!({"disk": 50, "cpu": 2}), json!({"disk": 10})].map(parameters_patch);
    let projection = fold(&base, numbered(&patches));
    assert_eq!(
        projection.authors_of,
        [("/parameters/cpu".to_owned(), IntentNumber(1))]
    );
}

#[test]
fn members_of_one_object_have_their_own_authors() {
    let base = spec("small", json!({"disk": {"old": 1}}));
    let patches = [
        json!({"disk": {"size": 1}}),
        json!({"disk": {"kind": "ssd"}}),
        json!({"disk": {"old": null}}),
    ];
    let patches = patches.map(parameters_patch);
    let projection = fold(&base, numbered(&patches));
    let expected = [("kind", 2), ("old", 3), ("size", 1)];
    let expected =
        expected.map(|(key, author)| (format!("/parameters/disk/{key}"), IntentNumber(author)));
    assert_eq!(projection.authors_of, expected);
}
