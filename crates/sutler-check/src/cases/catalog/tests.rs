//! A catalog with every feature, and each way to break it with the case that must fail.

use super::field::CatalogVerdict;
use super::same_ids;
use crate::options::Profile;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};

fn whole() -> Value {
    let schema = json!({ "parameters": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": { "a": { "$ref": "#/definitions/a" } },
        "definitions": { "a": { "type": "string" } },
    }});
    json!({ "services": [{
        "id": "0c9f8a52-5d4e-4b7c-9a61-000000000001",
        "name": "one",
        "description": "The first",
        "bindable": true,
        "tags": ["a"],
        "requires": ["syslog_drain", "route_forwarding", "volume_mount"],
        "instances_retrievable": true,
        "bindings_retrievable": false,
        "allow_context_updates": true,
        "metadata": { "displayName": "One" },
        "dashboard_client": { "id": "client", "secret": "hidden", "redirect_uri": "https://x.example" },
        "plan_updateable": true,
        "plans": [
            {
                "id": "0c9f8a52-5d4e-4b7c-9a61-000000000002",
                "name": "small",
                "description": "A small one",
                "metadata": { "bullets": ["a"], "costs": [{ "amount": { "usd": 1.5 }, "unit": "MONTHLY" }] },
                "free": false,
                "bindable": true,
                "binding_rotatable": true,
                "plan_updateable": false,
                "maximum_polling_duration": 60,
                "maintenance_info": { "version": "1.2.3-beta+4", "description": "Restarts" },
                "schemas": {
                    "service_instance": { "create": schema.clone(), "update": schema.clone() },
                    "service_binding": { "create": schema },
                },
            },
            { "id": "0c9f8a52-5d4e-4b7c-9a61-000000000003", "name": "Small", "description": "Another", "metadata": null },
        ],
    }]})
}

fn check(catalog: &Value) -> Vec<(&'static crate::case::Case, CatalogVerdict)> {
    super::check(catalog, Profile::V2_17)
}

/// Names of the cases that a catalog fails.
fn failed(catalog: &Value) -> Vec<&'static str> {
    let all = check(catalog).into_iter();
    all.filter(|it| matches!(it.1, CatalogVerdict::Judged(Err(_))))
        .map(|it| it.0.name)
        .collect()
}

#[test]
fn a_catalog_with_everything_in_it_passes_every_case() {
    let mut covered = Vec::new();
    for (case, judged) in check(&whole()) {
        match judged {
            CatalogVerdict::Judged(judgement) => {
                assert_eq!(judgement, Ok(()), "{}", case.name);
                covered.push(case.name);
            }
            CatalogVerdict::Nowhere(reason) => {
                assert_eq!(reason, "no offering has `plan_updatable`")
            }
        }
    }
    for case in super::CASES.iter().skip(3) {
        assert!(covered.contains(&case.name), "{}", case.name);
    }
}

/// A path below the first offering, the cases that must fail, and the value put there.
const BROKEN: &str = r##"
name | catalog-names offering-name | ""
name | catalog-names | "two words"
name | catalog-names | "-"
id | offering-id | 7
id | catalog-ids-unreserved catalog-ids-guid | "a/b"
description | offering-description | null
bindable | offering-bindable | "yes"
tags | offering-tags | "a"
requires | offering-requires | ["everything"]
instances_retrievable | offering-instances-retrievable | 1
bindings_retrievable | offering-bindings-retrievable | "false"
allow_context_updates | offering-allow-context-updates | {}
metadata | offering-metadata | []
dashboard_client | offering-dashboard-client | {"id":"x"}
plan_updateable | offering-plan-updateable | "true"
plan_updatable | offering-plan-updateable | true
plans/0/id | catalog-ids-guid plan-id | ""
plans/0/id | plan-id-unique | "0c9f8a52-5d4e-4b7c-9a61-000000000003"
plans/0/name | plan-name-unique | "Small"
plans/0/name | plan-name | 7
plans/0/description | plan-description | ""
plans/0/metadata | plan-metadata | "x"
plans/0/metadata/bullets | plan-metadata-profile | "x"
plans/0/metadata/costs | plan-metadata-profile | [{"unit":"x"}]
plans/0/free | plan-free | "no"
plans/0/bindable | plan-bindable | 0
plans/0/binding_rotatable | plan-binding-rotatable | 0
plans/0/plan_updateable | plan-plan-updateable | 0
plans/0/maximum_polling_duration | plan-maximum-polling-duration | 1.5
plans/0/maintenance_info | plan-maintenance-info | {"version":"1.2"}
plans/0/maintenance_info | plan-maintenance-info | {}
plans/0/schemas | plan-schemas | []
SCHEMA | schema-dialect | {"type":"object"}
SCHEMA | schema-references | {"$schema":"x","properties":{"a":{"$ref":"https://elsewhere.example/a"}}}
SCHEMA | schema-valid | {"$schema":"http://json-schema.org/draft-04/schema#","type":7}
"##;

/// The cases that fail when the value at one path is replaced.
fn failed_with(place: &str, bad: Value) -> Vec<&'static str> {
    let schema = "plans/0/schemas/service_instance/create/parameters";
    let place = place.replace("SCHEMA", schema);
    let mut catalog = whole();
    let (parent, name) = match place.rsplit_once('/') {
        Some((parent, name)) => (format!("/services/0/{parent}"), name),
        None => ("/services/0".to_owned(), &*place),
    };
    catalog.pointer_mut(&parent).unwrap()[name] = bad;
    failed(&catalog)
}

#[test]
fn each_way_to_break_a_catalog_fails_the_case_of_its_rule() {
    for row in BROKEN.trim().lines() {
        let parts: Vec<&str> = row.splitn(3, " | ").collect();
        let bad = serde_json::from_str(parts[2]).unwrap();
        let expected: Vec<&str> = parts[1].split(' ').collect();
        assert_eq!(failed_with(parts[0], bad), expected, "{row}");
    }
    let long = json!("a".repeat(256));
    assert_eq!(failed_with("description", long), ["catalog-lengths"]);
    let dialect = "http://json-schema.org/draft-04/schema#";
    let huge = json!({ "$schema": dialect, "title": "a".repeat(65_536) });
    assert_eq!(failed_with("SCHEMA", huge), ["schema-size"]);
}

#[test]
fn missing_and_duplicate_rows_are_noticed() {
    for (field, expected) in [
        ("name", "offering-name"),
        ("id", "offering-id"),
        ("bindable", "offering-bindable"),
        ("plans", "offering-plans"),
    ] {
        let mut catalog = whole();
        catalog["services"][0]
            .as_object_mut()
            .unwrap()
            .remove(field);
        assert!(failed(&catalog).contains(&expected), "{field}");
    }
    let mut catalog = whole();
    let mut twin = catalog["services"][0].clone();
    twin["plans"][0]["id"] = json!("0c9f8a52-5d4e-4b7c-9a61-000000000004");
    twin["plans"][1]["id"] = json!("0c9f8a52-5d4e-4b7c-9a61-000000000005");
    catalog["services"].as_array_mut().unwrap().push(twin);
    assert_eq!(
        failed(&catalog),
        ["offering-name-unique", "offering-id-unique"]
    );
}

#[test]
fn ids_that_change_between_two_answers_are_noticed_and_new_plans_are_not() {
    let before = whole();
    let mut after = whole();
    let plans = after["services"][0]["plans"].as_array_mut().unwrap();
    plans.push(json!({ "id": "new", "name": "new" }));
    plans.remove(1);
    assert_eq!(same_ids(&before, &after), Ok(()));
    after["services"][0]["plans"][0]["id"] = json!("other");
    assert!(same_ids(&before, &after).is_err());
    after = whole();
    after["services"][0]["id"] = json!("other");
    assert!(same_ids(&before, &after).is_err());
}

#[test]
fn names_refused_by_older_suites_fail_in_their_profile_only() {
    let of = |profile| {
        let mut all = super::check(&whole(), profile).into_iter();
        all.find(|it| it.0.name == "catalog-names").unwrap().1
    };
    assert_eq!(of(Profile::V2_17), CatalogVerdict::Judged(Ok(())));
    assert!(matches!(
        of(Profile::Compat2_13),
        CatalogVerdict::Judged(Err(_))
    ));
}

/// Names of all fields in the catalog above.
fn names(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            into.extend(entries.keys().cloned());
            entries.values().for_each(|it| names(it, into));
        }
        Value::Array(items) => items.iter().for_each(|it| names(it, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Any JSON, with field names of a catalog in some places.
fn anything() -> impl Strategy<Value = Value> {
    let mut known = Vec::new();
    names(&whole(), &mut known);
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    plain.prop_recursive(6, 60, 6, move |inner| {
        let named = (prop::sample::select(known.clone()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(named, 0..9)
                .prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_case_has_a_verdict_or_a_reason_for_any_catalog(
        one in anything(),
        other in anything(),
    ) {
        let mut catalog = whole();
        catalog["services"][0]["plans"][0] = one.clone();
        for catalog in [&one, &catalog, &json!({ "services": [one, other] })] {
            assert_eq!(check(catalog).len(), check(&whole()).len());
            let _ = same_ids(catalog, &other);
            crate::catalog::read(catalog);
        }
    }
}
