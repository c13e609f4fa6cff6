//! A plan for the tests of a preflight, and requests that break no rule or all of them.

mod binding_rules;
mod parameter_rules;
mod plan_rules;

use super::{
    BindCheck, ContextChange, PlanFacts, PreflightFacts, PreflightRequest, ProvisionCheck,
    RequestedParameters, RequestedPlan, UpdateCheck, Violation, compile_schemas, preflight,
};
use serde_json::{Map, Value, json};
use sutler_osb::{Catalog, CatalogSpec, PinnedPlan};
use sutler_schema::ParameterSchemas;

/// A plan that allows everything, with its compiled schemas.
struct TestPlan {
    pinned: PinnedPlan,
    schemas: ParameterSchemas,
}

impl TestPlan {
    /// `service` and `plan` replace fields of the offering and of the plan.
    fn new(service: Value, plan: Value) -> Self {
        let mut offering = json!({
            "id": "s", "name": "db", "description": "d", "bindable": true,
            "plan_updateable": true, "allow_context_updates": true,
        });
        let mut offered = json!({
            "id": "p", "name": "small", "description": "d", "binding_rotatable": true,
            "schemas": {
                "service_instance": {"create": needs("create"), "update": needs("update")},
                "service_binding": {"create": needs("bind")},
            },
        });
        replace(&mut offering, service);
        replace(&mut offered, plan);
        offering["plans"] = json!([offered]);
        let spec: CatalogSpec = serde_json::from_value(json!({"services": [offering]})).unwrap();
        let catalog = Catalog::try_from(spec).unwrap();
        let pinned = catalog.plans().next().unwrap().pin();
        let (schemas, errors) = compile_schemas(&pinned);
        assert_eq!(errors, []);
        Self { pinned, schemas }
    }

    fn plain() -> Self {
        Self::new(json!({}), json!({}))
    }

    fn facts(&self) -> PlanFacts<'_> {
        PlanFacts {
            plan: &self.pinned,
            schemas: &self.schemas,
        }
    }

    fn offered(&self) -> RequestedPlan<'_> {
        RequestedPlan::Offered(self.facts())
    }

    /// An update that changes nothing.
    fn update(&self) -> UpdateCheck<'_> {
        UpdateCheck {
            current: self.facts(),
            plan: None,
            maintenance_version: None,
            parameters: None,
            context: ContextChange::Unchanged,
        }
    }
}

/// A schema that only one parameter fits.
fn needs(parameter: &str) -> Value {
    let properties = json!({parameter: {"type": "integer"}});
    json!({"parameters": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": properties,
        "additionalProperties": false,
    }})
}

fn replace(object: &mut Value, fields: Value) {
    for (name, value) in parameters(fields) {
        object[name] = value;
    }
}

fn parameters(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn check(request: PreflightRequest<'_>) -> Vec<Violation> {
    preflight(
        &request,
        &PreflightFacts {
            allowed_permissions: &[],
        },
    )
}

fn check_update(update: UpdateCheck<'_>) -> Vec<Violation> {
    check(PreflightRequest::Update(update))
}

fn check_provision(plan: RequestedPlan<'_>, parameters: Value) -> Vec<Violation> {
    let parameters = self::parameters(parameters);
    check(PreflightRequest::Provision(ProvisionCheck {
        plan,
        maintenance_version: None,
        parameters: RequestedParameters::Inline(&parameters),
    }))
}

/// Rule and place of each violation.
fn rules(violations: &[Violation]) -> Vec<(&str, &str)> {
    violations
        .iter()
        .map(|it| (it.rule, it.pointer.as_str()))
        .collect()
}

#[test]
fn a_request_that_breaks_no_rule_has_no_violation() {
    let (plan, other) = (
        TestPlan::plain(),
        TestPlan::new(json!({}), json!({"id": "q"})),
    );
    assert_eq!(check_provision(plan.offered(), json!({"create": 1})), []);
    let changed = parameters(json!({"update": 1}));
    let update = UpdateCheck {
        plan: Some(other.offered()),
        parameters: Some(RequestedParameters::Inline(&changed)),
        context: ContextChange::Changed,
        ..plan.update()
    };
    assert_eq!(check_update(update), []);
    let bound = parameters(json!({"bind": 1}));
    let bind = BindCheck {
        plan: plan.facts(),
        parameters: RequestedParameters::Inline(&bound),
    };
    assert_eq!(check(PreflightRequest::Bind(bind)), []);
    assert_eq!(check(PreflightRequest::Rotate { plan: plan.facts() }), []);
}

#[test]
fn all_violations_are_found_at_once_and_in_the_same_order() {
    let plan = TestPlan::new(json!({}), json!({"plan_updateable": false}));
    let other = TestPlan::new(
        json!({"id": "t", "name": "queue", "requires": ["route_forwarding"]}),
        json!({}),
    );
    let wrong = parameters(json!({"x": 1}));
    let update = UpdateCheck {
        plan: Some(other.offered()),
        maintenance_version: Some("1.0.0"),
        parameters: Some(RequestedParameters::Inline(&wrong)),
        context: ContextChange::Changed,
        ..plan.update()
    };
    let expected = [
        ("P-090", "/plan"),
        ("P-070", "/plan"),
        ("P-103", "/plan"),
        ("P-071", "/maintenanceVersion"),
        ("P-044", "/parameters"),
    ];
    assert_eq!(rules(&check_update(update)), expected);
    assert_eq!(check_update(update), check_update(update));
}

#[test]
fn a_violation_is_answered_as_json() {
    let violations = check_provision(
        RequestedPlan::NotFound {
            service: "s",
            plan: "p",
        },
        json!({}),
    );
    let json = serde_json::to_value(&violations).unwrap();
    assert_eq!(json[0]["pointer"], json!("/plan"));
    assert_eq!(json[0]["rule"], json!("P-070"));
    assert!(json[0]["sentence"].is_string());
}
