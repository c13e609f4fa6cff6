//! Rules of the specification for parameter schemas.

use crate::catalog::{plan, service};
use crate::catalog_faults::faults;
use serde_json::{Value, json};
use sutler_osb::SCHEMA_BYTES_MAX;

const DIALECT: &str = "http://json-schema.org/draft-04/schema#";
const CREATE: &str = "services[0].plans[0].schemas.service_instance.create.parameters";

fn catalog(schemas: Value) -> Value {
    let mut plan = plan("p");
    plan["schemas"] = schemas;
    json!([service("s", json!([plan]))])
}

fn create(schema: Value) -> Vec<String> {
    faults(catalog(
        json!({"service_instance": {"create": {"parameters": schema}}}),
    ))
}

/// Holds: B-078.
#[test]
fn all_three_schemas_are_checked() {
    let bad = json!({"parameters": {}});
    let found = faults(catalog(json!({
        "service_instance": {"create": bad, "update": bad}, "service_binding": {"create": bad}
    })));
    let places = [
        "service_instance.create",
        "service_instance.update",
        "service_binding.create",
    ];
    let expected = places.map(|place| {
        let path = format!("services[0].plans[0].schemas.{place}.parameters");
        format!("{path}: must say its dialect in `$schema` (B-079)")
    });
    assert_eq!(found, expected);
}

/// Holds: B-078.
#[test]
fn a_plan_may_leave_any_schema_out() {
    for schemas in [
        json!({}),
        json!({"service_instance": {}}),
        json!({"service_binding": {"create": {}}}),
    ] {
        assert!(faults(catalog(schemas)).is_empty());
    }
}

/// Holds: B-079.
#[test]
fn a_schema_is_an_object_that_names_its_dialect() {
    assert!(create(json!({"$schema": DIALECT})).is_empty());
    for schema in [json!(true), json!("x"), json!([])] {
        assert_eq!(
            create(schema),
            [format!("{CREATE}: must be a JSON object (B-079)")]
        );
    }
    for schema in [json!({}), json!({"$schema": ""}), json!({"$schema": 4})] {
        let found = create(schema);
        assert_eq!(
            found,
            [format!(
                "{CREATE}: must say its dialect in `$schema` (B-079)"
            )]
        );
    }
}

/// Holds: B-079.
#[test]
fn a_schema_is_at_most_64_kb() {
    let empty = json!({"$schema": DIALECT, "title": ""}).to_string().len();
    let titled = |bytes: usize| json!({"$schema": DIALECT, "title": "x".repeat(bytes - empty)});
    assert!(create(titled(SCHEMA_BYTES_MAX)).is_empty());
    let found = create(titled(SCHEMA_BYTES_MAX + 1));
    let sentence = "must not be larger than 65536 bytes, but has 65537 (B-079)";
    assert_eq!(found, [format!("{CREATE}: {sentence}")]);
}

/// Holds: B-079.
#[test]
fn a_schema_refers_to_nothing_outside_itself() {
    for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
        for target in [
            "https://x/y",
            "other.json",
            "/abs",
            "other.json#/a",
            "file:///etc/x",
            "",
        ] {
            let found = create(json!({
                "$schema": DIALECT,
                "properties": {"a": {"anyOf": [{}, {keyword: target}]}}
            }));
            let path = format!("{CREATE}.properties.a.anyOf[1]");
            let sentence = format!("must not refer outside itself, but {keyword} is `{target}`");
            assert_eq!(found, [format!("{path}: {sentence} (B-079)")]);
        }
    }
}

/// Holds: B-079.
#[test]
fn a_schema_may_refer_to_itself_and_have_a_property_called_ref() {
    let schema = json!({
        "$schema": DIALECT,
        "definitions": {"size": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/definitions/size"}, "b": {"$ref": "#"}, "$ref": {"type": "string"}}
    });
    assert!(create(schema).is_empty());
}
