//! Parameters that do not fit their schema, and schemas that cannot be used.

use super::{TestPlan, check, check_provision, check_update, needs, parameters, rules};
use crate::preflight::{
    BindCheck, PreflightRequest, RequestedParameters, UpdateCheck, compile_schemas,
};
use serde_json::{Map, json};

/// Holds: P-044.
#[test]
fn parameters_are_checked_against_the_schema_of_their_request() {
    let plan = TestPlan::plain();
    let wrong = parameters(json!({"x": "hunter2"}));
    let parameters = RequestedParameters::Inline(&wrong);
    let update = UpdateCheck {
        parameters: Some(parameters),
        ..plan.update()
    };
    let bind = BindCheck {
        plan: plan.facts(),
        parameters,
    };
    let all = [
        check_provision(plan.offered(), json!({"x": "hunter2"})),
        check_update(update),
        check(PreflightRequest::Bind(bind)),
    ];
    for violations in all {
        assert_eq!(rules(&violations), [("P-044", "/parameters")]);
        assert!(
            violations[0].sentence.contains("`x` is not allowed"),
            "{violations:?}"
        );
        assert!(!violations[0].sentence.contains("hunter2"));
    }
    assert!(!format!("{update:?}").contains("hunter2"));
}

#[test]
fn the_parameters_of_a_plan_change_are_checked_against_the_new_plan() {
    let plan = TestPlan::plain();
    let schemas = json!({"service_instance": {"update": needs("other")}});
    let other = TestPlan::new(json!({}), json!({"id": "q", "schemas": schemas}));
    let of_old = parameters(json!({"update": 1}));
    let update = UpdateCheck {
        plan: Some(other.offered()),
        parameters: Some(RequestedParameters::Inline(&of_old)),
        ..plan.update()
    };
    assert_eq!(rules(&check_update(update)), [("P-044", "/parameters")]);
    let of_new = parameters(json!({"other": 1}));
    let parameters = Some(RequestedParameters::Inline(&of_new));
    assert_eq!(
        check_update(UpdateCheck {
            parameters,
            ..update
        }),
        []
    );
}

#[test]
fn parameters_with_secrets_are_not_checked_yet() {
    let schema = json!({"parameters": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "required": ["password"],
    }});
    let plan = TestPlan::new(
        json!({}),
        json!({"schemas": {"service_binding": {"create": schema}}}),
    );
    let bind = |parameters| {
        check(PreflightRequest::Bind(BindCheck {
            plan: plan.facts(),
            parameters,
        }))
    };
    assert_eq!(bind(RequestedParameters::WithSecrets), []);
    let none = Map::new();
    assert_eq!(
        rules(&bind(RequestedParameters::Inline(&none))),
        [("P-044", "/parameters")]
    );
}

#[test]
fn a_schema_that_cannot_be_compiled_is_reported_and_not_used() {
    let look_ahead = json!({"parameters": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"x": {"pattern": "^(?!a)"}},
    }});
    let schemas = json!({"service_instance": {"create": look_ahead, "update": needs("update")}});
    let mut plan = TestPlan::plain();
    plan.pinned.schemas = serde_json::from_value(schemas).unwrap();
    let (schemas, errors) = compile_schemas(&plan.pinned);
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0]
            .path
            .starts_with("schemas.service_instance.create.parameters")
    );
    plan.schemas = schemas;
    assert_eq!(check_provision(plan.offered(), json!({"x": "a"})), []);
    let wrong = parameters(json!({"x": 1}));
    let parameters = Some(RequestedParameters::Inline(&wrong));
    let update = UpdateCheck {
        parameters,
        ..plan.update()
    };
    assert_eq!(rules(&check_update(update)), [("P-044", "/parameters")]);
}
