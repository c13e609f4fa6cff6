//! Response bodies, in both directions.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sutler_osb::{
    AsyncBindResponse, BindResponse, Credentials, DeleteResponse, Endpoint, FetchBindingResponse,
    FetchInstanceResponse, LastOperationResponse, OperationState, PortRange, Protocol,
    ProvisionResponse, UpdateResponse, VolumeMount, from_json,
};

/// Reads the body, writes it again, and expects the same bytes.
fn check<T: Serialize + DeserializeOwned>(wire: Value) -> T {
    let body: T = from_json(wire.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_value(&body).unwrap(), wire);
    body
}

fn refused<T: DeserializeOwned>(wire: Value) -> String {
    match from_json::<T>(wire.to_string().as_bytes()) {
        Ok(_) => panic!("{wire} was accepted"),
        Err(refused) => refused.to_string(),
    }
}

/// Holds: B-130.
#[test]
fn an_answer_without_fields_is_an_empty_object() {
    check::<ProvisionResponse>(json!({}));
    check::<UpdateResponse>(json!({}));
    check::<DeleteResponse>(json!({}));
    check::<BindResponse>(json!({}));
    check::<AsyncBindResponse>(json!({}));
    check::<FetchBindingResponse>(json!({}));
    check::<FetchInstanceResponse>(json!({}));
}

/// Holds: B-130.
#[test]
fn an_accepted_provision_or_update_carries_dashboard_operation_and_metadata() {
    let wire = json!({
        "dashboard_url": "https://d.example/1", "operation": "task 1",
        "metadata": {"labels": {"k": "v"}, "attributes": {"a": "b"}}
    });
    check::<ProvisionResponse>(wire.clone());
    check::<UpdateResponse>(wire);
}

/// Holds: B-086, B-130.
/// Holds: P-073.
#[test]
fn null_dashboard_and_operation_are_absent() {
    let wire = json!({"dashboard_url": null, "operation": null, "metadata": null});
    let body: ProvisionResponse = from_json(wire.to_string().as_bytes()).unwrap();
    assert_eq!(body, ProvisionResponse::default());
}

/// Holds: B-086.
#[test]
fn an_operation_in_an_answer_is_bounded_and_never_written_empty() {
    let wire = json!({"operation": "x".repeat(10_001)});
    let sentence = "field `operation` must not be longer than 10000 characters";
    assert_eq!(refused::<ProvisionResponse>(wire.clone()), sentence);
    assert_eq!(refused::<AsyncBindResponse>(wire.clone()), sentence);
    assert_eq!(refused::<DeleteResponse>(wire), sentence);
    let empty: UpdateResponse = from_json(br#"{"operation":""}"#).unwrap();
    assert_eq!(empty.operation, None);
}

/// Holds: B-151.
#[test]
fn a_fetched_instance_is_read_and_written_whole() {
    check::<FetchInstanceResponse>(json!({
        "service_id": "s", "plan_id": "p", "dashboard_url": "u", "parameters": {"a": 1},
        "maintenance_info": {"version": "1.0.0"}, "metadata": {"labels": {}}
    }));
}

/// Holds: B-100.
#[test]
fn a_poll_reports_one_of_three_states() {
    for (state, word) in [
        (OperationState::InProgress, "in progress"),
        (OperationState::Succeeded, "succeeded"),
        (OperationState::Failed, "failed"),
    ] {
        assert_eq!(
            check::<LastOperationResponse>(json!({"state": word})).state,
            state
        );
    }
    assert!(refused::<LastOperationResponse>(json!({"state": "done"})).contains("`state`"));
    assert_eq!(
        refused::<LastOperationResponse>(json!({})),
        "field `state` is required"
    );
}

/// Holds: B-101.
#[test]
fn a_poll_never_writes_an_empty_description() {
    let mut body = LastOperationResponse::of_state(OperationState::Succeeded);
    body.description = Some(String::new());
    assert_eq!(
        serde_json::to_value(&body).unwrap(),
        json!({"state": "succeeded"})
    );
    check::<LastOperationResponse>(json!({"state": "failed", "description": "disk full"}));
}

/// Holds: B-102.
#[test]
fn a_poll_carries_the_flags_of_a_failed_update() {
    check::<LastOperationResponse>(
        json!({"state": "failed", "instance_usable": false, "update_repeatable": true}),
    );
}

fn whole_binding() -> Value {
    json!({
        "metadata": {
            "expires_at": "2030-01-02T00:00:00.0Z", "renew_before": "2030-01-01T00:00:00.0Z"
        },
        "credentials": {"uri": "mysql://user:pass@host/db"},
        "syslog_drain_url": "syslog://h", "route_service_url": "https://r",
        "volume_mounts": [{
            "driver": "nfs", "container_dir": "/data", "mode": "rw", "device_type": "shared",
            "device": {"volume_id": "v", "mount_config": {"password": "x"}}
        }],
        "endpoints": [{"host": "h", "ports": ["443", "9000-9010"], "protocol": "tcp"}]
    })
}

/// Holds: B-189, B-231.
#[test]
fn a_binding_is_read_and_written_whole() {
    let bind = check::<BindResponse>(whole_binding());
    let fetched = serde_json::to_value(FetchBindingResponse::of_bind(bind, None)).unwrap();
    assert_eq!(fetched, whole_binding());
    let mut wire = whole_binding();
    wire["parameters"] = json!({"role": "reader"});
    check::<FetchBindingResponse>(wire);
}

/// Holds: B-184.
#[test]
fn an_accepted_bind_has_room_for_the_operation_only() {
    let wire = json!({"operation": "o", "credentials": {"password": "x"}});
    let body: AsyncBindResponse = from_json(wire.to_string().as_bytes()).unwrap();
    assert_eq!(
        serde_json::to_value(body).unwrap(),
        json!({"operation": "o"})
    );
}

#[test]
fn nothing_secret_of_a_binding_is_printed() {
    let bind = check::<BindResponse>(whole_binding());
    let credentials = bind.credentials.clone().unwrap();
    assert_eq!(format!("{credentials:?}"), "…");
    assert_eq!(format!("{:?}", Credentials::default()), "…");
    let mount = format!("{:?}", bind.volume_mounts.as_ref().unwrap());
    assert!(!mount.contains("password"), "{mount}");
    assert_eq!(format!("{bind:?}"), "BindResponse(…)");
    let fetched = FetchBindingResponse::of_bind(bind, None);
    assert_eq!(format!("{fetched:?}"), "FetchBindingResponse(…)");
}

/// Holds: B-194.
#[test]
fn a_volume_mount_needs_all_its_fields() {
    let whole = whole_binding()["volume_mounts"][0].clone();
    for field in ["driver", "container_dir", "mode", "device_type", "device"] {
        let mut wire = whole.clone();
        wire.as_object_mut().unwrap().remove(field);
        assert_eq!(
            refused::<VolumeMount>(wire),
            format!("field `{field}` is required")
        );
    }
    for (field, value) in [
        ("mode", "w"),
        ("mode", ""),
        ("device_type", "block"),
        ("driver", ""),
    ] {
        let mut wire = whole.clone();
        wire[field] = json!(value);
        assert!(refused::<VolumeMount>(wire).contains(field));
    }
    let mut wire = whole.clone();
    wire["device"] = json!({"mount_config": {}});
    assert_eq!(
        refused::<VolumeMount>(wire),
        "field `device.volume_id` is required"
    );
    let mut wire = whole;
    wire["device"] = json!(["v"]);
    let sentence = "field `device`: invalid type: sequence, expected a JSON object";
    assert_eq!(refused::<VolumeMount>(wire), sentence);
}

/// Holds: B-195.
#[test]
fn an_endpoint_uses_tcp_by_default() {
    let endpoint: Endpoint = from_json(br#"{"host":"h","ports":["443"]}"#).unwrap();
    assert_eq!(endpoint.protocol, Protocol::Tcp);
    for (word, protocol) in [
        ("tcp", Protocol::Tcp),
        ("udp", Protocol::Udp),
        ("all", Protocol::All),
    ] {
        let wire = json!({"host": "10.0.0.1", "ports": ["1"], "protocol": word});
        assert_eq!(check::<Endpoint>(wire).protocol, protocol);
    }
    refused::<Endpoint>(json!({"host": "h", "ports": ["1"], "protocol": "sctp"}));
}

/// Holds: B-195.
#[test]
fn an_endpoint_has_a_host_and_at_least_one_port() {
    let sentence = "field `ports` must have at least one port";
    assert_eq!(
        refused::<Endpoint>(json!({"host": "h", "ports": []})),
        sentence
    );
    let sentence = "field `ports` is required";
    assert_eq!(refused::<Endpoint>(json!({"host": "h"})), sentence);
    let sentence = "field `host` must not be empty";
    assert_eq!(
        refused::<Endpoint>(json!({"host": "", "ports": ["1"]})),
        sentence
    );
}

/// Holds: B-195.
#[test]
fn a_port_is_one_number_or_a_range_of_two() {
    let range: PortRange = "9000-9010".parse().unwrap();
    assert_eq!((range.first(), range.last()), (9000, 9010));
    assert_eq!("7-7".parse::<PortRange>().unwrap().to_string(), "7");
    for text in [
        "",
        "-",
        "0",
        "65536",
        "1-",
        "-1",
        "+1",
        "1-2-3",
        " 1",
        "9010-9000",
        "a",
        "1,2",
        "0-5",
    ] {
        assert!(text.parse::<PortRange>().is_err(), "{text:?}");
    }
    refused::<Endpoint>(json!({"host": "h", "ports": [443]}));
}
