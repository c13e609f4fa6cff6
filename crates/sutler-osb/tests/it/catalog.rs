//! A valid catalog: its serialised form, look-up of plans, and effective values.

use serde_json::{Value, json};
use sutler_osb::{Catalog, CatalogSpec, PinnedPlan, PlanId, Requires, ServiceId, from_json};

pub(crate) fn loaded(wire: &Value) -> Catalog {
    let spec: CatalogSpec = from_json(wire.to_string().as_bytes()).unwrap();
    Catalog::load(spec.services.unwrap()).unwrap_or_else(|faults| panic!("{faults}"))
}

pub(crate) fn plan(id: &str) -> Value {
    json!({"id": id, "name": id, "description": "A plan."})
}

pub(crate) fn service(id: &str, plans: Value) -> Value {
    json!({"id": id, "name": id, "description": "A service.", "bindable": true, "plans": plans})
}

fn with(mut object: Value, fields: Value) -> Value {
    object
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    object
}

fn service_id(id: &str) -> ServiceId {
    id.try_into().unwrap()
}

fn plan_id(id: &str) -> PlanId {
    id.try_into().unwrap()
}

fn whole() -> Value {
    let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"});
    let plan = with(
        plan("p"),
        json!({
            "metadata": {"bullets": ["b"], "costs": [{"amount": {"eur": 9.5}, "unit": "MONTHLY"}]},
            "free": false, "bindable": false, "binding_rotatable": true, "plan_updateable": false,
            "maximum_polling_duration": 600,
            "maintenance_info": {"version": "1.2.3-rc.1+b7", "description": "Restarts."},
            "schemas": {
                "service_instance": {"create": {"parameters": schema}, "update": {"parameters": schema}},
                "service_binding": {"create": {"parameters": schema}}
            }
        }),
    );
    let service = with(
        service("s", json!([plan])),
        json!({
            "tags": ["sql"], "requires": ["syslog_drain", "route_forwarding", "volume_mount"],
            "instances_retrievable": true, "bindings_retrievable": true,
            "allow_context_updates": true, "metadata": {"displayName": "S", "shareable": true},
            "dashboard_client": {"id": "c", "secret": "hush", "redirect_uri": "https://r"},
            "plan_updateable": true
        }),
    );
    json!({"services": [service]})
}

/// Holds: B-050, B-060, B-061, B-062, B-063, B-064, B-065, B-066, B-067, B-071, B-074, B-076, B-078.
#[test]
fn a_catalog_is_served_exactly_as_it_was_written() {
    for wire in [
        whole(),
        json!({"services": [service("s", json!([plan("p")]))]}),
    ] {
        assert_eq!(serde_json::to_value(loaded(&wire)).unwrap(), wire);
    }
}

/// Holds: B-050.
#[test]
fn an_empty_catalog_is_a_catalog() {
    assert_eq!(
        serde_json::to_value(loaded(&json!({"services": []}))).unwrap(),
        json!({"services": []})
    );
    let refused = from_json::<Catalog>(b"{}").unwrap_err().to_string();
    assert!(refused.contains("services: is required"), "{refused}");
}

/// Holds: B-003.
/// Holds: P-005.
#[test]
fn unknown_fields_of_a_catalog_are_ignored() {
    let wire = with(
        service("s", json!([with(plan("p"), json!({"x": 1}))])),
        json!({"y": {}}),
    );
    let catalog = loaded(&json!({"services": [wire], "z": []}));
    assert_eq!(catalog.services().len(), 1);
}

#[test]
fn a_catalog_can_be_read_from_an_answer() {
    let read: Catalog = from_json(whole().to_string().as_bytes()).unwrap();
    assert_eq!(read, loaded(&whole()));
}

#[test]
fn a_plan_is_found_only_under_its_own_service() {
    let services = [
        service("s1", json!([plan("p1"), plan("p2")])),
        service("s2", json!([plan("p3")])),
    ];
    let catalog = loaded(&json!({"services": services}));
    let found = |service, plan| catalog.plan(&service_id(service), &plan_id(plan)).is_some();
    assert!(found("s1", "p1") && found("s1", "p2") && found("s2", "p3"));
    assert!(!found("s1", "p3") && !found("s2", "p1") && !found("s3", "p1") && !found("s1", "P1"));
    assert!(catalog.service(&service_id("s2")).is_some());
    assert!(catalog.service(&service_id("S2")).is_none());
    assert_eq!(
        catalog.plan_by_id(&plan_id("p3")).unwrap().service().id,
        service_id("s2")
    );
    assert_eq!(catalog.plans().count(), 3);
}

/// Holds: B-062, B-063, B-064, B-067, B-072, B-074.
#[test]
fn absent_fields_have_the_defaults_of_the_specification() {
    let catalog = loaded(&json!({"services": [service("s", json!([plan("p")]))]}));
    let plan = catalog.plan(&service_id("s"), &plan_id("p")).unwrap();
    assert!(plan.free() && plan.bindable());
    assert!(!plan.plan_updateable() && !plan.binding_rotatable());
    assert!(!plan.instances_retrievable() && !plan.bindings_retrievable());
    assert!(!plan.allow_context_updates());
    assert_eq!(
        (plan.requires(), plan.maintenance_version()),
        (&[][..], None)
    );
    assert_eq!(
        (plan.schemas(), plan.maximum_polling_duration()),
        (None, None)
    );
}

/// Holds: B-058, B-067, B-073, B-075.
#[test]
fn a_plan_overrides_its_offering() {
    for (of_service, of_plan, effective) in [
        (false, None, false),
        (true, None, true),
        (false, Some(true), true),
        (true, Some(false), false),
    ] {
        let overrides = match of_plan {
            Some(value) => json!({"bindable": value, "plan_updateable": value}),
            None => json!({}),
        };
        let service = with(
            service("s", json!([with(plan("p"), overrides)])),
            json!({"bindable": of_service, "plan_updateable": of_service}),
        );
        let catalog = loaded(&json!({"services": [service]}));
        let plan = catalog.plan_by_id(&plan_id("p")).unwrap();
        assert_eq!(
            (plan.bindable(), plan.plan_updateable()),
            (effective, effective)
        );
    }
}

#[test]
fn a_pinned_plan_keeps_the_effective_values_through_storage() {
    let catalog = loaded(&whole());
    let pinned = catalog.plan_by_id(&plan_id("p")).unwrap().pin();
    assert!(!pinned.bindable && !pinned.plan_updateable && pinned.binding_rotatable);
    assert!(pinned.instances_retrievable && pinned.bindings_retrievable);
    assert_eq!(pinned.requires[2], Requires::VolumeMount);
    assert_eq!(pinned.maintenance_version(), Some("1.2.3-rc.1+b7"));
    assert!(pinned.schemas.as_ref().unwrap().update().is_some());
    let stored = serde_json::to_vec(&pinned).unwrap();
    assert_eq!(
        serde_json::from_slice::<PinnedPlan>(&stored).unwrap(),
        pinned
    );
}

#[test]
fn a_dashboard_secret_is_not_printed() {
    let spec: CatalogSpec = from_json(whole().to_string().as_bytes()).unwrap();
    let printed = format!("{spec:?} {:?}", loaded(&whole()));
    assert!(!printed.contains("hush"), "{printed}");
}
