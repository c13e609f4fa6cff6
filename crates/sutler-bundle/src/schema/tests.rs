//! Schemas compared with `validate.rs`, by examples; random ones are `tests/random.rs`.

mod random;

use super::{Dialect, schema};
use crate::manifest::{Manifest, PlanEntry, ValidationPoint, accepts, with_defaults};
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

/// A plan with these parameters.
fn plan(parameters: Value) -> PlanEntry {
    let manifest = json!({
        "name": "some",
        "description": "Some.",
        "plans": [{ "name": "p", "description": "P.", "parameters": parameters }],
    });
    let loaded = Manifest::load(manifest.to_string().as_bytes(), "bundle.yml");
    let mut manifest = loaded.unwrap_or_else(|faults| panic!("{faults}\n{manifest:#}"));
    manifest.plans.remove(0)
}

fn validator(schema: &Value, dialect: Dialect) -> Validator {
    let draft = match dialect {
        Dialect::Draft2020 => Draft::Draft202012,
        Dialect::Draft4 => Draft::Draft4,
    };
    let built = jsonschema::options()
        .with_draft(draft)
        .offline()
        .build(schema);
    built.unwrap_or_else(|error| panic!("{error}\n{schema:#}"))
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

/// Asserts that `validate.rs` and both schemas agree about the values, and give the expected result.
#[track_caller]
fn check(plan: &PlanEntry, occasion: ValidationPoint, values: &Value, expected: bool) {
    let own = accepts(&plan.parameters, object(values), occasion);
    assert_eq!(own.is_ok(), expected, "{values}: {own:?}");
    for dialect in [Dialect::Draft2020, Dialect::Draft4] {
        let schema = schema(&plan.parameters, occasion, dialect);
        let valid = validator(&schema, dialect).is_valid(values);
        assert_eq!(valid, expected, "{values}: {dialect:?}\n{schema:#}");
    }
}

#[test]
fn choices_are_of_the_type_of_their_parameter() {
    let plan = plan(json!([
        { "name": "size", "type": "int", "enum": ["1", "2", 3], "default": "2" },
        { "name": "version", "type": "enum", "enum": ["9.6", "10"] },
        { "name": "fast", "type": "bool", "enum": ["true"] },
    ]));
    let schema = schema(&plan.parameters, ValidationPoint::Create, Dialect::Draft4);
    assert_eq!(schema["properties"]["size"]["enum"], json!([1, 2, 3]));
    assert_eq!(schema["properties"]["size"]["default"], json!(2));
    assert_eq!(schema["properties"]["version"]["type"], json!("string"));
    assert_eq!(schema["properties"]["fast"]["enum"], json!([true]));
    check(
        &plan,
        ValidationPoint::Create,
        &json!({ "size": 3, "version": "10" }),
        true,
    );
    check(
        &plan,
        ValidationPoint::Create,
        &json!({ "size": "3" }),
        false,
    );
    check(&plan, ValidationPoint::Create, &json!({ "size": 4 }), false);
    check(
        &plan,
        ValidationPoint::Create,
        &json!({ "fast": false }),
        false,
    );
}

#[test]
fn objects_and_lists_have_what_is_said_of_them_and_may_be_any_otherwise() {
    let plan = plan(json!([
        { "name": "any", "type": "object" },
        { "name": "list", "type": "array" },
        { "name": "ports", "type": "array", "items": { "type": "integer", "minimum": 1 }, "max_items": 2 },
        { "name": "disk", "type": "object", "properties": [
            { "name": "size", "type": "integer", "required": true },
            { "name": "tags", "type": "array", "items": { "type": "string" } },
        ] },
    ]));
    for (values, fits) in [
        (
            json!({ "any": { "a": [1, null] }, "list": [1, "b", {}] }),
            true,
        ),
        (json!({ "ports": [80, 443] }), true),
        (json!({ "ports": [80, 0] }), false),
        (json!({ "ports": [1, 2, 3] }), false),
        (json!({ "ports": ["80"] }), false),
        (json!({ "disk": { "size": 1, "tags": ["a"] } }), true),
        (json!({ "disk": { "tags": [] } }), false),
        (json!({ "disk": { "size": 1, "other": 1 } }), false),
        (json!({ "any": [] }), false),
    ] {
        check(&plan, ValidationPoint::Create, &values, fits);
    }
}

#[test]
fn a_bound_that_is_outside_is_so_in_every_draft() {
    let plan = plan(json!([
        { "name": "n", "type": "number", "exclusive_minimum": 0, "exclusive_maximum": 1 },
        { "name": "m", "type": "int", "minimum": 0, "exclusive_minimum": 3, "multiple_of": 2 },
        { "name": "z", "type": "int", "maximum": 0 },
    ]));
    let schema = schema(&plan.parameters, ValidationPoint::Create, Dialect::Draft4);
    let n = &schema["properties"]["n"];
    assert_eq!(
        (&n["minimum"], &n["exclusiveMinimum"]),
        (&json!(0), &json!(true))
    );
    for (values, fits) in [
        (json!({ "n": 0 }), false),
        (json!({ "n": 0.5 }), true),
        (json!({ "n": 1 }), false),
        (json!({ "m": 3 }), false),
        (json!({ "m": 4 }), true),
        (json!({ "m": 5 }), false),
        // Zero is a bound like any other.
        (json!({ "z": 1 }), false),
        (json!({ "z": -1 }), true),
    ] {
        check(&plan, ValidationPoint::Create, &values, fits);
    }
}

fn conditional() -> PlanEntry {
    plan(json!([
        { "name": "storage", "type": "enum", "enum": ["none", "disk", "cloud"], "default": "none", "updatable": true },
        { "name": "gigabytes", "type": "int", "required": true,
          "updatable": true, "dependencies": [{ "key": "storage", "value": ["disk", "cloud"] }] },
        { "name": "region", "type": "string", "default": "eu",
          "dependencies": [{ "key": "storage", "value": "cloud" }] },
        { "name": "zone", "type": "string",
          "dependencies": [{ "key": "region", "value": "eu" }] },
    ]))
}

/// With the old schemas a conditional parameter could never be sent.
///
/// Regression: R36.
#[test]
fn a_conditional_parameter_can_be_given_where_its_condition_holds_and_only_there() {
    for (values, fits) in [
        (json!({}), true),
        (json!({ "storage": "none" }), true),
        (json!({ "gigabytes": 5 }), false),
        (json!({ "storage": "none", "gigabytes": 5 }), false),
        (json!({ "storage": "disk" }), false),
        (json!({ "storage": "disk", "gigabytes": 5 }), true),
        (
            json!({ "storage": "disk", "gigabytes": 5, "region": "us" }),
            false,
        ),
        (
            json!({ "storage": "cloud", "gigabytes": 5, "region": "us" }),
            true,
        ),
        // The region has its default only if its own condition holds.
        (
            json!({ "storage": "cloud", "gigabytes": 5, "zone": "a" }),
            true,
        ),
        (
            json!({ "storage": "disk", "gigabytes": 5, "zone": "a" }),
            false,
        ),
        (
            json!({ "storage": "cloud", "gigabytes": 5, "region": "us", "zone": "a" }),
            false,
        ),
    ] {
        check(&conditional(), ValidationPoint::Create, &values, fits);
    }
}

#[test]
fn a_change_names_what_it_changes_and_nothing_else_is_asked_for() {
    for (values, fits) in [
        (json!({}), true),
        (json!({ "gigabytes": 7 }), true),
        (json!({ "storage": "disk" }), true),
        (json!({ "storage": "none", "gigabytes": 7 }), false),
        (json!({ "region": "us" }), false),
        (json!({ "unknown": 1 }), false),
    ] {
        check(&conditional(), ValidationPoint::Update, &values, fits);
    }
}

#[test]
fn what_has_a_default_is_never_missed_and_is_filled_in_where_it_belongs() {
    let plan = plan(json!([
        { "name": "user", "type": "string", "required": true, "default": "admin" },
        { "name": "password", "type": "string", "required": true },
    ]));
    check(
        &plan,
        ValidationPoint::Create,
        &json!({ "password": "x" }),
        true,
    );
    check(
        &plan,
        ValidationPoint::Create,
        &json!({ "user": "x" }),
        false,
    );
    let filled = with_defaults(&plan.parameters, object(&json!({ "password": "x" })));
    assert_eq!(
        Value::Object(filled),
        json!({ "user": "admin", "password": "x" })
    );
    // No default where the condition does not hold.
    let conditional = conditional();
    let filled = |values: Value| with_defaults(&conditional.parameters, object(&values));
    assert_eq!(
        Value::Object(filled(json!({}))),
        json!({ "storage": "none" })
    );
    let cloud = filled(json!({ "storage": "cloud" }));
    assert_eq!(cloud.get("region"), Some(&json!("eu")));
}

#[test]
fn a_refusal_names_every_parameter_and_no_value() {
    let values = json!({ "storage": "s3cret", "gigabytes": "s3cret", "s3": 1 });
    let refusal = accepts(
        &conditional().parameters,
        object(&values),
        ValidationPoint::Create,
    );
    let refusal = refusal.expect_err("nothing of it fits");
    for name in ["storage", "gigabytes", "\"s3\" is not known"] {
        assert!(refusal.contains(name), "{refusal}");
    }
    assert!(!refusal.contains("s3cret"), "{refusal}");
}
