//! Invalid catalogs: every fault is reported with its path and its rule.

use crate::catalog::{loaded, plan, service};
use serde_json::{Value, json};
use sutler_osb::{Catalog, CatalogSpec, from_json};

/// The faults of a catalog, one line each.
pub(crate) fn faults(services: Value) -> Vec<String> {
    let spec: CatalogSpec =
        from_json(json!({"services": services}).to_string().as_bytes()).unwrap();
    match Catalog::load(spec.services.unwrap()) {
        Ok(_) => Vec::new(),
        Err(refused) => refused.faults.iter().map(ToString::to_string).collect(),
    }
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn one_plan(field: &str, value: Value) -> Value {
    json!([service("s", json!([with(plan("p"), field, value)]))])
}

fn one_service(field: &str, value: Value) -> Value {
    json!([with(service("s", json!([plan("p")])), field, value)])
}

/// Holds: B-055, B-056, B-057, B-058, B-059, B-068, B-069, B-070.
#[test]
fn every_missing_field_is_reported_at_once() {
    assert_eq!(
        faults(json!([{}, {"plans": [{}]}])),
        [
            "services[0].name: is required (B-055)",
            "services[0].id: is required (B-056)",
            "services[0].description: is required (B-057)",
            "services[0].bindable: is required: true or false (B-058)",
            "services[0].plans: must have at least one plan (B-059)",
            "services[1].name: is required (B-055)",
            "services[1].id: is required (B-056)",
            "services[1].description: is required (B-057)",
            "services[1].bindable: is required: true or false (B-058)",
            "services[1].plans[0].id: is required (B-068)",
            "services[1].plans[0].name: is required (B-069)",
            "services[1].plans[0].description: is required (B-070)",
        ]
    );
}

/// Holds: B-055, B-056, B-057, B-068, B-069, B-070.
#[test]
fn every_empty_field_is_reported_at_once() {
    let plans = json!([plan("p"), {"id": "", "name": "", "description": ""}]);
    let service =
        json!({"id": "", "name": "", "description": "", "bindable": true, "plans": plans});
    assert_eq!(
        faults(json!([service])),
        [
            "services[0].name: must not be empty (B-055)",
            "services[0].id: must not be empty (B-056)",
            "services[0].description: must not be empty (B-057)",
            "services[0].plans[1].id: must not be empty (B-068)",
            "services[0].plans[1].name: must not be empty (B-069)",
            "services[0].plans[1].description: must not be empty (B-070)",
        ]
    );
}

/// Holds: B-059.
#[test]
fn an_offering_without_plans_is_refused() {
    let expected = ["services[0].plans: must have at least one plan (B-059)"];
    assert_eq!(faults(json!([service("s", json!([]))])), expected);
    assert_eq!(faults(json!([service("s", Value::Null)])), expected);
}

/// Holds: B-055, B-056.
#[test]
fn services_need_unique_names_and_ids() {
    let duplicate = service("s", json!([plan("p2")]));
    assert_eq!(
        faults(json!([service("s", json!([plan("p1")])), duplicate])),
        [
            "services[1].name: must be unique, but is the same as services[0].name (B-055)",
            "services[1].id: must be unique, but is the same as services[0].id (B-056)",
        ]
    );
}

/// Holds: B-068, B-069.
#[test]
fn a_plan_needs_an_id_unique_everywhere_and_a_name_unique_in_its_offering() {
    let first = service(
        "s1",
        json!([plan("p"), with(plan("q"), "name", json!("p"))]),
    );
    let second = service("s2", json!([plan("p")]));
    assert_eq!(
        faults(json!([first, second])),
        [
            "services[0].plans[1].name: must be unique, but is the same as \
             services[0].plans[0].name (B-069)",
            "services[1].plans[0].id: must be unique, but is the same as \
             services[0].plans[0].id (B-068)",
        ]
    );
}

/// Holds: B-054.
#[test]
fn names_that_differ_in_case_are_different() {
    assert!(faults(json!([service("s", json!([plan("p"), plan("P")]))])).is_empty());
}

#[test]
fn an_id_that_no_store_could_keep_is_refused() {
    assert_eq!(
        faults(one_service("id", json!("x".repeat(513)))),
        ["services[0].id: must not be longer than 512 bytes (B-056)"]
    );
    assert_eq!(
        faults(one_plan("id", json!("a\0b"))),
        ["services[0].plans[0].id: must not contain a NUL character (B-068)"]
    );
}

/// Holds: B-061.
#[test]
fn an_unknown_permission_is_refused() {
    let permission = "must be `syslog_drain`, `route_forwarding` or `volume_mount` (B-061)";
    assert_eq!(
        faults(one_service("requires", json!(["syslog_drain", "root", ""]))),
        [
            format!("services[0].requires[1]: {permission}"),
            format!("services[0].requires[2]: {permission}"),
        ]
    );
}

/// Holds: B-066.
#[test]
fn a_dashboard_client_needs_an_id_and_a_secret() {
    assert_eq!(
        faults(one_service("dashboard_client", json!({"secret": ""}))),
        [
            "services[0].dashboard_client.id: is required (B-066)",
            "services[0].dashboard_client.secret: must not be empty (B-066)",
        ]
    );
}

/// Holds: B-076.
#[test]
fn a_polling_duration_is_not_negative() {
    let found = faults(one_plan("maximum_polling_duration", json!(-1)));
    assert!(found[0].starts_with("services[0].plans[0].maximum_polling_duration: must be"));
    assert!(faults(one_plan("maximum_polling_duration", json!(0))).is_empty());
}

/// Holds: B-077.
#[test]
fn a_maintenance_version_is_semantic() {
    let path = "services[0].plans[0].maintenance_info.version";
    for version in ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3 "] {
        let found = faults(one_plan("maintenance_info", json!({"version": version})));
        assert_eq!(
            found,
            [format!(
                "{path}: must be a semantic version such as 1.2.3 (B-077)"
            )]
        );
    }
    let found = faults(one_plan("maintenance_info", json!({"description": "d"})));
    assert_eq!(found, [format!("{path}: is required (B-077)")]);
    for version in ["0.0.0", "1.2.3-rc.1+build.7"] {
        assert!(faults(one_plan("maintenance_info", json!({"version": version}))).is_empty());
    }
}

/// Holds: B-053.
#[test]
fn a_long_string_is_advised_against_but_loads() {
    let long = "ä".repeat(256);
    let services = one_service("description", json!(long));
    let catalog = loaded(&json!({"services": services}));
    let warnings: Vec<_> = catalog.warnings().iter().map(ToString::to_string).collect();
    let advice = "should not be longer than 255 characters, but has 256 (B-053)";
    assert_eq!(warnings, [format!("services[0].description: {advice}")]);
    let services = one_service("description", json!("ä".repeat(255)));
    assert!(loaded(&json!({"services": services})).warnings().is_empty());
}

/// Holds: B-054.
#[test]
fn a_name_that_is_hard_to_type_is_advised_against_but_loads() {
    for name in ["my service", "a/b", "-", "..", "under_score"] {
        let catalog = loaded(&json!({"services": one_plan("name", json!(name))}));
        assert_eq!(catalog.warnings().len(), 1, "{name}");
        assert_eq!(catalog.warnings()[0].path, "services[0].plans[0].name");
    }
    for name in ["p-mysql", "v1.2", "Small"] {
        let catalog = loaded(&json!({"services": one_plan("name", json!(name))}));
        assert!(catalog.warnings().is_empty(), "{name}");
    }
}

/// Holds: B-021.
#[test]
fn an_id_that_needs_encoding_in_a_url_is_advised_against_but_loads() {
    for id in ["a b", "a/b", "ä", "a+b"] {
        let catalog = loaded(&json!({"services": one_plan("id", json!(id))}));
        let advice = "should consist of letters, digits, `-`, `.`, `_` and `~`";
        assert_eq!(catalog.warnings()[0].reason, advice);
        assert_eq!(catalog.warnings()[0].path, "services[0].plans[0].id");
    }
    let catalog = loaded(&json!({"services": one_plan("id", json!("aZ0-._~"))}));
    assert!(catalog.warnings().is_empty());
}

#[test]
fn all_faults_make_one_readable_text() {
    let refused = Catalog::load(vec![Default::default()])
        .unwrap_err()
        .to_string();
    assert!(refused.starts_with("the catalog has 5 faults:\n  services[0].name: is required"));
}
