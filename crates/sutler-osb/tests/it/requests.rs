//! Request bodies that are read.

use serde_json::{Value, json};
use sutler_osb::{BindBody, BodyError, ProvisionBody, UpdateBody, from_json};

fn provision(wire: &Value) -> ProvisionBody {
    from_json(wire.to_string().as_bytes()).unwrap()
}

fn update(wire: &Value) -> UpdateBody {
    from_json(wire.to_string().as_bytes()).unwrap()
}

fn bind(wire: &Value) -> BindBody {
    from_json(wire.to_string().as_bytes()).unwrap()
}

fn smallest_provision() -> Value {
    json!({"service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "sp"})
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// Holds: B-120.
#[test]
fn a_provision_is_read_and_written_whole() {
    let wire = json!({
        "service_id": "s", "plan_id": "p", "organization_guid": "o", "space_guid": "sp",
        "context": {"platform": "cloudfoundry", "some": [1, 2]},
        "parameters": {"size": 3, "password": "x"},
        "maintenance_info": {"version": "2.1.1+abcdef", "description": "d"}
    });
    let body = provision(&wire);
    assert_eq!(
        body.context.as_ref().unwrap().platform(),
        Some("cloudfoundry")
    );
    assert_eq!(body.maintenance_version(), Some("2.1.1+abcdef"));
    assert_eq!(serde_json::to_value(&body).unwrap(), wire);
}

/// Holds: B-120.
#[test]
fn only_four_fields_of_a_provision_are_mandatory() {
    let body = provision(&smallest_provision());
    assert_eq!(
        (body.context, body.parameters, body.maintenance_info),
        (None, None, None)
    );
    for field in ["service_id", "plan_id", "organization_guid", "space_guid"] {
        let mut wire = smallest_provision();
        wire.as_object_mut().unwrap().remove(field);
        let refused = from_json::<ProvisionBody>(wire.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            refused,
            BodyError::Missing {
                path: field.to_owned()
            }
        );
        let wire = with(smallest_provision(), field, json!(""));
        let refused = from_json::<ProvisionBody>(wire.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("field `{field}` must not be empty")
        );
    }
}

#[test]
fn null_in_an_optional_field_is_the_same_as_no_field() {
    for field in ["context", "parameters", "maintenance_info"] {
        let wire = with(smallest_provision(), field, Value::Null);
        assert_eq!(provision(&wire), provision(&smallest_provision()));
    }
}

/// Holds: B-003.
#[test]
fn unknown_fields_are_ignored_at_any_depth() {
    let wire = with(
        smallest_provision(),
        "x_future",
        json!({"deep": [{"er": null}]}),
    );
    let wire = with(
        wire,
        "maintenance_info",
        json!({"version": "1.0.0", "severity": 3}),
    );
    assert_eq!(provision(&wire).maintenance_version(), Some("1.0.0"));
    let wire = json!({"service_id": "s", "previous_values": {"plan_id": "p", "colour": 1}});
    assert!(update(&wire).previous_values.unwrap().plan_id.is_some());
    let wire = json!({"service_id": "s", "bind_resource": {"backup": true}, "also": 1});
    assert!(bind(&wire).bind_resource.is_some());
}

/// Holds: D-05.
#[test]
fn maintenance_info_without_a_version_counts_as_absent() {
    for info in [
        json!({}),
        json!({"version": null}),
        json!({"description": "d"}),
        Value::Null,
    ] {
        let wire = with(smallest_provision(), "maintenance_info", info.clone());
        assert_eq!(provision(&wire).maintenance_version(), None);
        let wire = json!({"service_id": "s", "maintenance_info": info, "previous_values": {}});
        assert_eq!(update(&wire).maintenance_version(), None);
    }
}

/// Holds: B-160.
#[test]
fn an_update_is_read_and_written_whole() {
    let wire = json!({
        "service_id": "s", "plan_id": "p2",
        "context": {"platform": "kubernetes"},
        "parameters": {"size": 4},
        "previous_values": {
            "service_id": "s", "plan_id": "p1", "organization_id": "o", "space_id": "sp",
            "maintenance_info": {"version": "1.0.0"}
        },
        "maintenance_info": {"version": "2.0.0"}
    });
    assert_eq!(serde_json::to_value(update(&wire)).unwrap(), wire);
}

/// Holds: B-160.
#[test]
fn only_the_service_of_an_update_is_mandatory() {
    let body = update(&json!({"service_id": "s"}));
    assert_eq!(
        (body.plan_id, body.parameters, body.context),
        (None, None, None)
    );
    let refused = from_json::<UpdateBody>(b"{}").unwrap_err();
    assert_eq!(refused.to_string(), "field `service_id` is required");
}

#[test]
fn empty_previous_values_are_absent_ones() {
    let wire = json!({"service_id": "s", "previous_values": {"service_id": "", "plan_id": ""}});
    let previous = update(&wire).previous_values.unwrap();
    assert_eq!((previous.service_id, previous.plan_id), (None, None));
}

#[test]
fn an_update_of_nothing_but_the_context_is_recognised() {
    let context = json!({"service_id": "s", "context": {"platform": "x"}, "maintenance_info": {}});
    assert!(update(&context).is_context_only());
    assert!(!update(&json!({"service_id": "s"})).is_context_only());
    for (field, value) in [
        ("plan_id", json!("p")),
        ("parameters", json!({})),
        ("maintenance_info", json!({"version": "1.0.0"})),
    ] {
        assert!(!update(&with(context.clone(), field, value)).is_context_only());
    }
}

/// Holds: B-181.
#[test]
fn a_bind_is_read_and_written_whole() {
    let wire = json!({
        "service_id": "s", "plan_id": "p", "context": {"platform": "cloudfoundry"},
        "app_guid": "old",
        "bind_resource": {
            "app_guid": "app", "route": "r.example", "space_guid": "sp",
            "app_annotations": {"prefix/key": "v"}, "credential_client_id": "client"
        },
        "parameters": {"role": "reader"},
        "predecessor_binding_id": "b0"
    });
    assert_eq!(serde_json::to_value(bind(&wire)).unwrap(), wire);
}

/// Holds: B-181.
#[test]
fn a_bind_refuses_empty_strings_where_the_specification_does() {
    for (wire, path) in [
        (json!({"app_guid": ""}), "app_guid"),
        (
            json!({"bind_resource": {"space_guid": ""}}),
            "bind_resource.space_guid",
        ),
        (
            json!({"bind_resource": {"credential_client_id": ""}}),
            "bind_resource.credential_client_id",
        ),
        (
            json!({"predecessor_binding_id": ""}),
            "predecessor_binding_id",
        ),
    ] {
        let refused = from_json::<BindBody>(wire.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("field `{path}` must not be empty")
        );
    }
}

/// Holds: B-181, B-201.
#[test]
fn a_rotation_may_leave_out_the_ids_that_a_bind_needs() {
    let rotation = bind(&json!({"predecessor_binding_id": "b0"}));
    assert_eq!(
        rotation.predecessor_binding_id.as_ref().unwrap().as_str(),
        "b0"
    );
    let refused = rotation.required_ids().unwrap_err();
    assert_eq!(refused.to_string(), "field `service_id` is required");
    let refused = bind(&json!({"service_id": "s"}))
        .required_ids()
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "field `plan_id` is required");
    assert!(
        bind(&json!({"service_id": "s", "plan_id": "p"}))
            .required_ids()
            .is_ok()
    );
}

#[test]
fn the_app_is_read_from_the_bind_resource_first() {
    let check = |wire: Value, app| assert_eq!(bind(&wire).requested_app(), app);
    check(json!({}), None);
    check(json!({"app_guid": "old"}), Some("old"));
    check(json!({"bind_resource": {}, "app_guid": "old"}), Some("old"));
    check(json!({"bind_resource": {"app_guid": ""}}), None);
    check(
        json!({"bind_resource": {"app_guid": "new"}, "app_guid": "old"}),
        Some("new"),
    );
}

#[test]
fn parameters_are_never_printed() {
    let wire = with(
        smallest_provision(),
        "parameters",
        json!({"password": "hunter2"}),
    );
    let printed = format!("{:?}", provision(&wire));
    assert!(
        printed.contains("Parameters(…)") && !printed.contains("hunter2"),
        "{printed}"
    );
}
