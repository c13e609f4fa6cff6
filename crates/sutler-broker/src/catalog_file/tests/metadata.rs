//! Free-form metadata stays as written, except for the names that platforms know.

use super::{OFFERING, parse, served};
use serde_json::{Value, json};

/// The offering with these lines added.
fn offering_with(lines: &str) -> Value {
    served(&parse(&format!("{OFFERING}{lines}")))["services"][0].clone()
}

/// The plan with these lines added.
fn plan_with(lines: &str) -> Value {
    let plan = format!("  - id: p\n    name: small\n    description: A small one.\n{lines}");
    let yaml = OFFERING.replace(
        "  - {id: p, name: small, description: A small one.}\n",
        &plan,
    );
    served(&parse(&yaml))["services"][0]["plans"][0].clone()
}

/// Holds: B-065.
#[test]
fn names_of_the_profile_become_camel_case() {
    let expected = json!({
        "displayName": "a",
        "imageUrl": "https://example.com/b.png",
        "longDescription": "c",
        "providerDisplayName": "d",
        "documentationUrl": "e",
        "supportUrl": "f",
        "shareable": true,
    });
    let kebab = "  metadata:
    display-name: a
    image-url: https://example.com/b.png
    long-description: c
    provider-display-name: d
    documentation-url: e
    support-url: f
    shareable: true
";
    let names = [
        ("display-name", "display_name", "displayName"),
        ("image-url", "image_url", "imageUrl"),
        ("long-description", "long_description", "longDescription"),
        (
            "provider-display-name",
            "provider_display_name",
            "providerDisplayName",
        ),
        ("documentation-url", "documentation_url", "documentationUrl"),
        ("support-url", "support_url", "supportUrl"),
    ];
    let (mut snake, mut camel) = (kebab.to_owned(), kebab.to_owned());
    for (one, two, three) in names {
        snake = snake.replace(&format!(" {one}:"), &format!(" {two}:"));
        camel = camel.replace(&format!(" {one}:"), &format!(" {three}:"));
    }
    for yaml in [kebab, &snake, &camel] {
        assert_eq!(offering_with(yaml)["metadata"], expected, "{yaml}");
    }
}

/// Holds: B-065.
#[test]
fn unknown_metadata_keeps_its_keys_case_and_shape() {
    let metadata = &offering_with(
        "  metadata:
    x-My_Own-Key: {inner-Key: [no, on, yes, off, Y, 1.50, null, true, '5']}
    properties:
      some-Property: {Deep-Key: 1}
      displayName: from properties
",
    )["metadata"];
    let expected = json!({
        "x-My_Own-Key": {"inner-Key": ["no", "on", "yes", "off", "Y", 1.5, null, true, "5"]},
        "some-Property": {"Deep-Key": 1},
        "displayName": "from properties",
    });
    assert_eq!(*metadata, expected);
}

/// Holds: B-071.
#[test]
fn bullets_and_costs_of_a_plan_are_served_as_they_are() {
    let plan = plan_with(
        "    metadata:
      display-name: Small
      bullets:
      - 1 GB
      - no backups
      costs:
      - amount: {USD: 99.5, eUR: 49}
        unit: MONTHLY
      - {amount: {usd: 0.99}, unit: 1GB of messages over 20GB}
",
    );
    let expected = json!({
        "displayName": "Small",
        "bullets": ["1 GB", "no backups"],
        "costs": [
            {"amount": {"USD": 99.5, "eUR": 49}, "unit": "MONTHLY"},
            {"amount": {"usd": 0.99}, "unit": "1GB of messages over 20GB"},
        ],
    });
    assert_eq!(plan["metadata"], expected);
}

/// Holds: B-060.
/// Holds: B-061.
/// Holds: B-064.
/// Holds: B-066.
/// Holds: B-067.
#[test]
fn every_field_of_an_offering_can_be_written() {
    let offering = offering_with(
        "  tags: [one, 2]
  requires: [syslog_drain, volume_mount]
  allow-context-updates: true
  plan-updateable: yes
  dashboard-client: {id: dash, secret: 12345, redirect-uri: 'https://example.com/'}
",
    );
    assert_eq!(offering["tags"], json!(["one", "2"]));
    assert_eq!(
        offering["requires"],
        json!(["syslog_drain", "volume_mount"])
    );
    assert_eq!(offering["allow_context_updates"], json!(true));
    assert_eq!(offering["plan_updateable"], json!(true));
    let client = json!({"id": "dash", "secret": "12345", "redirect_uri": "https://example.com/"});
    assert_eq!(offering["dashboard_client"], client);
}

/// Holds: B-072.
/// Holds: B-073.
/// Holds: B-074.
/// Holds: B-075.
/// Holds: B-076.
/// Holds: B-077.
#[test]
fn every_field_of_a_plan_can_be_written() {
    let plan = plan_with(
        "    free: false
    bindable: false
    binding-rotatable: true
    plan-updateable: true
    maximum-polling-duration: '3600'
    maintenance-info: {version: 1.2.3, description: no downtime}
",
    );
    let expected = json!({
        "id": "p",
        "name": "small",
        "description": "A small one.",
        "free": false,
        "bindable": false,
        "binding_rotatable": true,
        "plan_updateable": true,
        "maximum_polling_duration": 3600,
        "maintenance_info": {"version": "1.2.3", "description": "no downtime"},
    });
    assert_eq!(plan, expected);
}

/// Holds: B-078.
/// Holds: B-079.
#[test]
fn schemas_are_left_untouched_inside() {
    let schema = "
            $schema: http://json-schema.org/draft-04/schema#
            type: object
            additional-properties: kept
            additionalProperties: false
            properties:
              display-name: {type: string, enum: [no, on, 'true', off]}
              Service-Instance: {type: boolean, default: true}
              a.b_c: {type: number, minimum: 0.5}
";
    let expected = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "additional-properties": "kept",
        "additionalProperties": false,
        "properties": {
            "display-name": {"type": "string", "enum": ["no", "on", "true", "off"]},
            "Service-Instance": {"type": "boolean", "default": true},
            "a.b_c": {"type": "number", "minimum": 0.5},
        },
    });
    for (instance, binding) in [
        ("service-instance", "service-binding"),
        ("service_instance", "service_binding"),
        ("serviceinstance", "serviceBinding"),
    ] {
        let plan = plan_with(&format!(
            "    schemas:
      {instance}:
        create:
          parameters:{schema}
        update:
          parameters:{schema}
      {binding}:
        create:
          parameters:{schema}
"
        ));
        let operation = json!({"parameters": expected});
        let schemas = json!({
            "service_instance": {"create": operation, "update": operation},
            "service_binding": {"create": operation},
        });
        assert_eq!(plan["schemas"], schemas);
    }
}
