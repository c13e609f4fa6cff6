//! A rejected plan change, and what becomes of the intents behind it.
//!
//! Confirmed at #1: plan `small`, disk 10. B: plan `large` (#2). A, who is shown `large`: disk 50 (#3). C: a label (#4).
//! The broker rejects #2.

use crate::lifecycle::intent::{DependencyReason, IntentNumber};
use crate::projection::{dependency, fold};
use crate::spec::Spec;
use crate::spec::samples::{label_patch, parameters_patch, plan_patch, spec};
use serde_json::json;

const B: IntentNumber = IntentNumber(2);
const A: IntentNumber = IntentNumber(3);
const C: IntentNumber = IntentNumber(4);

fn with_label(mut spec: Spec) -> Spec {
    spec.labels.insert("team".to_owned(), "x".to_owned());
    spec
}

#[test]
fn all_pending_intents_are_shown_until_the_broker_answers() {
    let confirmed = spec("small", json!({"disk": 10}));
    let (plan, disk) = (plan_patch("large"), parameters_patch(json!({"disk": 50})));
    let label = label_patch("team", Some("x"));
    let shown = fold(&confirmed, [(B, &plan), (A, &disk), (C, &label)]);
    assert_eq!(shown.spec, with_label(spec("large", json!({"disk": 50}))));
    let mut authors_of = shown.authors_of;
    authors_of.sort();
    let expected = [("/labels/team", C), ("/parameters/disk", A), ("/plan", B)];
    assert_eq!(
        authors_of,
        expected.map(|(path, author)| (path.to_owned(), author))
    );
}

#[test]
fn a_rejected_plan_change_holds_later_parameter_changes() {
    let plan = plan_patch("large");
    let disk = parameters_patch(json!({"disk": 50}));
    let held = dependency(&disk, &[B], (B, &plan), true);
    assert_eq!(held, Some(DependencyReason::PlanChange));
}

#[test]
fn an_author_who_did_not_see_the_rejected_plan_change_is_not_held() {
    let plan = plan_patch("large");
    let disk = parameters_patch(json!({"disk": 50}));
    assert_eq!(dependency(&disk, &[], (B, &plan), true), None);
    let shown = fold(&spec("small", json!({"disk": 10})), [(A, &disk)]);
    assert_eq!(shown.spec, spec("small", json!({"disk": 50})));
}

#[test]
fn a_label_change_goes_on_after_a_rejected_plan_change() {
    let (plan, label) = (plan_patch("large"), label_patch("team", Some("x")));
    assert_eq!(dependency(&label, &[B, A], (B, &plan), false), None);
    // #2 is dropped and #3 is on hold: only the label counts.
    let shown = fold(&spec("small", json!({"disk": 10})), [(C, &label)]);
    assert_eq!(shown.spec, with_label(spec("small", json!({"disk": 10}))));
}
