//! Plans that cannot be bound, and bindings that cannot be rotated.

use super::{TestPlan, check, rules};
use crate::preflight::{BindCheck, PreflightRequest, RequestedParameters};
use serde_json::{Map, Value, json};

/// Holds: P-100.
#[test]
fn only_a_bindable_plan_is_bound() {
    let none = Map::new();
    let bind = |plan: &TestPlan| {
        let parameters = RequestedParameters::Inline(&none);
        check(PreflightRequest::Bind(BindCheck {
            plan: plan.facts(),
            parameters,
        }))
    };
    let violations = bind(&TestPlan::new(json!({}), json!({"bindable": false})));
    assert_eq!(rules(&violations), [("P-100", "/instance")]);
    assert!(
        violations[0]
            .sentence
            .starts_with("instances of the plan `small` of `db` cannot be")
    );
    let inherited = TestPlan::new(json!({"bindable": false}), json!({}));
    assert_eq!(rules(&bind(&inherited)), [("P-100", "/instance")]);
    let overridden = TestPlan::new(json!({"bindable": false}), json!({"bindable": true}));
    assert_eq!(bind(&overridden), []);
}

/// Holds: P-110.
#[test]
fn only_a_binding_of_a_rotatable_plan_is_rotated() {
    let rotate = |plan: Value| {
        let plan = TestPlan::new(json!({}), plan);
        check(PreflightRequest::Rotate { plan: plan.facts() })
    };
    let violations = rotate(json!({"binding_rotatable": null}));
    assert_eq!(rules(&violations), [("P-110", "")]);
    assert!(violations[0].sentence.contains("make a new binding"));
    assert_eq!(
        rules(&rotate(json!({"bindable": false}))),
        [("P-100", "/instance")]
    );
}
