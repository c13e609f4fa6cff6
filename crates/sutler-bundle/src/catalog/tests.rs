//! Catalog entries of bundles, in the current scheme and in Automation Broker's.

use super::{Offer, offering, resolve_collisions};
use crate::manifest::Manifest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use sutler_osb::{Catalog, ServiceSpec};

fn manifest(text: &str, file: &str) -> Manifest {
    Manifest::load(text.as_bytes(), file).unwrap_or_else(|faults| panic!("{faults}"))
}

fn named(name: &str, more: &str) -> Manifest {
    let text =
        format!("{{name: {name}, description: d, plans: [{{name: p, description: d}}]{more}}}");
    manifest(&text, "bundle.yml")
}

fn json_of(spec: ServiceSpec) -> Value {
    let catalog = Catalog::load(vec![spec]).unwrap_or_else(|faults| panic!("{faults}"));
    let mut catalog = serde_json::to_value(catalog).expect("a catalog");
    catalog["services"][0].take()
}

const OLD: &str = "
version: 1.0
name: postgresql-apb
description: A database
bindable: true
async: optional
plans:
  - name: dev
    description: A single DB server with no storage
    free: true
    metadata: {displayName: Development, cost: $0.00}
    parameters:
      - {name: postgresql_database, type: string, display_group: Database}
      - {name: postgresql_user, type: string, display_group: Database}
      - {name: postgresql_password, type: string, display_type: password, required: true}
      - {name: postgresql_version, type: enum, enum: ['10', '9.6', '9.5'], default: '10', title: PostgreSQL Version, required: true, updatable: true}
    updates_to: [prod]
  - name: prod
    description: With storage
";

#[test]
fn a_bundle_is_offered_as_by_automation_broker_if_configured() {
    let service = json_of(offering(
        &manifest(OLD, "apb.yml"),
        &Offer::compatible("dh"),
    ));
    assert_eq!(service["name"], json!("dh-postgresql-apb"));
    assert_eq!(service["id"], json!("1dda1477cace09730bd8ed7a6505607e"));
    assert_eq!(service["bindings_retrievable"], json!(true));
    assert_eq!(service["plan_updateable"], json!(true));
    let plan = &service["plans"][0];
    assert_eq!(plan["id"], json!("7f4a5e35e4af2beb70076e72fab0b7ff"));
    let forms = &plan["metadata"]["schemas"];
    let create = &forms["service_instance"]["create"]["openshift_form_definition"];
    let expected = json!([
        { "title": "Database", "type": "fieldset", "items": ["postgresql_database", "postgresql_user"] },
        { "key": "postgresql_password", "type": "password" },
        "postgresql_version",
    ]);
    assert_eq!(*create, expected);
    let update = &forms["service_instance"]["update"]["openshift_form_definition"];
    assert_eq!(*update, json!(["postgresql_version"]));
    let schema = &plan["schemas"]["service_instance"]["create"]["parameters"];
    assert_eq!(
        schema["$schema"],
        json!("http://json-schema.org/draft-04/schema")
    );
    let version = json!({ "title": "PostgreSQL Version", "type": "string", "default": "10", "enum": ["10", "9.6", "9.5"] });
    assert_eq!(schema["properties"]["postgresql_version"], version);
    assert_eq!(schema["required"], json!(["postgresql_password"]));
    let bind = &plan["schemas"]["service_binding"]["create"]["parameters"];
    let empty = json!({ "$schema": "http://json-schema.org/draft-04/schema", "type": "object", "additionalProperties": false });
    assert_eq!(*bind, empty);
}

#[test]
fn a_bundle_is_offered_by_its_own_name_and_in_todays_schemas_otherwise() {
    let service = json_of(offering(&manifest(OLD, "apb.yml"), &Offer::default()));
    assert_eq!(service["name"], json!("postgresql-apb"));
    let plan = &service["plans"][0];
    assert!(plan["metadata"]["schemas"].is_null(), "no forms");
    let schema = &plan["schemas"]["service_instance"]["update"]["parameters"];
    assert_eq!(
        schema["$schema"],
        json!("https://json-schema.org/draft/2020-12/schema")
    );
    let names: Vec<&String> = schema["properties"]
        .as_object()
        .expect("some")
        .keys()
        .collect();
    assert_eq!(names, ["postgresql_version"], "only what may be changed");
    // The other plan allows no change.
    assert_eq!(service["plans"][1]["plan_updateable"], json!(false));
}

#[test]
fn a_plan_may_disable_bindings() {
    let text = "
name: a
bundle_version: 1.2.3
description: d
bindable: true
plans:
  - {name: p, description: d, bindable: false}
  - {name: q, description: d}
";
    let service = json_of(offering(&manifest(text, "bundle.yml"), &Offer::default()));
    assert_eq!(service["bindable"], json!(true));
    assert_eq!(service["plans"][0]["bindable"], json!(false));
    assert!(service["plans"][0]["schemas"]["service_binding"].is_null());
    assert!(service["plans"][1]["bindable"].is_null());
    assert_eq!(service["metadata"]["bundleVersion"], json!("1.2.3"));
}

#[test]
fn users_are_not_asked_for_parameters_that_the_operator_answers() {
    let text = "
name: a
description: d
bindable: true
plans:
  - name: p
    description: d
    parameters:
      - {name: server, type: enum, enum: [x, y], required: true}
      - {name: depends, type: string, dependencies: [{key: server, value: x}]}
      - {name: size, type: int}
    bind_parameters:
      - {name: server, type: string}
";
    let offer = Offer {
        answered: BTreeSet::from(["server".to_owned()]),
        ..Offer::default()
    };
    let service = json_of(offering(&manifest(text, "bundle.yml"), &offer));
    let schemas = &service["plans"][0]["schemas"];
    let create = &schemas["service_instance"]["create"]["parameters"];
    let names: Vec<&String> = create["properties"]
        .as_object()
        .expect("some")
        .keys()
        .collect();
    assert_eq!(names, ["size"]);
    assert!(create["required"].is_null());
    assert!(schemas["service_binding"]["create"]["parameters"]["properties"].is_null());
}

#[test]
fn of_bundles_that_collide_the_first_stays_and_both_are_named() {
    let offered = |name: &str, more: &str| offering(&named(name, more), &Offer::default());
    let bundles = [
        ("one", offered("a", "")),
        ("two", offered("a", "")),
        ("three", offered("b", ", id: chosen")),
        ("four", offered("c", ", id: chosen")),
        ("five", offered("d", "")),
    ];
    let bundles = bundles.map(|(bundle, spec)| (bundle.to_owned(), spec));
    let (kept, collisions) = resolve_collisions(bundles);
    let kept: Vec<&str> = kept.iter().map(|(bundle, _)| bundle.as_str()).collect();
    assert_eq!(kept, ["one", "three", "five"]);
    let sentences: Vec<String> = collisions.iter().map(ToString::to_string).collect();
    let expected = [
        "one and two both have the service name a: two is not offered until one of them has another",
        "three and four both have the service id chosen: four is not offered until one of them has another",
    ];
    assert_eq!(sentences, expected);
}

#[test]
fn names_that_the_old_scheme_cuts_to_the_same_are_a_collision() {
    let long = "x".repeat(60);
    let offer = Offer::compatible("dh");
    let one = offering(&named(&format!("{long}-one"), ""), &offer);
    let two = offering(&named(&format!("{long}-two"), ""), &offer);
    let (kept, collisions) = resolve_collisions([("1".to_owned(), one), ("2".to_owned(), two)]);
    assert_eq!((kept.len(), collisions.len()), (1, 1));
}
