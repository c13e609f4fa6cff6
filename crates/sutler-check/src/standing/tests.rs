//! Good and bad answers, and the cases they fail.

use super::judge;
use crate::exchange::Exchange;
use serde_json::{Value, json};
use std::time::Duration;
use sutler_client::wire::{Answer, Method, Request};

const INSTANCE: [&str; 3] = ["v2", "service_instances", "i"];
const BINDING: [&str; 5] = ["v2", "service_instances", "i", "service_bindings", "b"];
const INSTANCE_OPERATION: [&str; 4] = ["v2", "service_instances", "i", "last_operation"];
const BINDING_OPERATION: [&str; 6] = [
    "v2",
    "service_instances",
    "i",
    "service_bindings",
    "b",
    "last_operation",
];

fn exchange(
    request: Request,
    status: u16,
    body: &str,
    headers: &[(&'static str, &str)],
) -> Exchange {
    let mut answer = Answer {
        status,
        headers: Default::default(),
        body: body.to_owned().into(),
        took: Duration::ZERO,
    };
    for (name, value) in headers {
        answer.headers.insert(*name, value.parse().unwrap());
    }
    Exchange::new(request, Ok(answer))
}

/// The names of the cases that an answer fails.
fn failed(exchange: &Exchange) -> Vec<&'static str> {
    let all = judge(exchange).into_iter();
    all.filter(|it| it.1.is_err()).map(|it| it.0.name).collect()
}

/// The cases that a body fails, as it comes to a request that accepts 202.
fn fails(method: Method, path: &[&str], status: u16, body: &Value) -> Vec<&'static str> {
    let request = Request::new(method, path).query("accepts_incomplete", "true");
    let json = [("content-type", "application/json; charset=utf-8")];
    failed(&exchange(request, status, &body.to_string(), &json))
}

fn check(table: &[(Method, &[&str], u16, Value, &[&str])]) {
    for (method, path, status, body, expected) in table {
        let found = fails(*method, path, *status, body);
        assert_eq!(&found, expected, "{method} {path:?} {status} {body}");
    }
}

#[test]
fn answers_as_they_have_to_be_fail_nothing() {
    let binding = json!({
        "credentials": { "uri": "x" },
        "metadata": { "expires_at": "2031-02-03T04:05:06.0Z", "renew_before": "2031-02-03T04:05:05.123Z" },
        "volume_mounts": [{
            "driver": "nfs", "container_dir": "/d", "mode": "rw", "device_type": "shared",
            "device": { "volume_id": "v", "mount_config": { "a": 1 } },
        }],
        "endpoints": [{ "host": "h", "ports": ["443", "9000-9010"], "protocol": "all" }, { "host": "h", "ports": ["1"] }],
    });
    let metadata = json!({ "dashboard_url": null, "metadata": { "labels": {}, "attributes": {} } });
    check(&[
        (Method::Put, &INSTANCE, 201, json!({}), &[]),
        (
            Method::Put,
            &INSTANCE,
            202,
            json!({ "operation": null }),
            &[],
        ),
        (Method::Put, &INSTANCE, 200, metadata.clone(), &[]),
        (Method::Patch, &INSTANCE, 200, metadata, &[]),
        (
            Method::Patch,
            &INSTANCE,
            202,
            json!({ "operation": "a-1" }),
            &[],
        ),
        (Method::Delete, &INSTANCE, 410, json!({}), &[]),
        (
            Method::Delete,
            &INSTANCE,
            500,
            json!({ "instance_usable": false }),
            &[],
        ),
        (
            Method::Patch,
            &INSTANCE,
            422,
            json!({ "update_repeatable": false, "instance_usable": true }),
            &[],
        ),
        (Method::Put, &BINDING, 201, binding.clone(), &[]),
        (Method::Get, &BINDING, 200, binding, &[]),
        (Method::Put, &BINDING, 202, json!({ "operation": "o" }), &[]),
        (
            Method::Get,
            &INSTANCE_OPERATION,
            200,
            json!({ "state": "in progress" }),
            &[],
        ),
        (
            Method::Get,
            &INSTANCE_OPERATION,
            200,
            json!({ "state": "failed", "instance_usable": false }),
            &[],
        ),
        (
            Method::Get,
            &BINDING_OPERATION,
            200,
            json!({ "state": "failed", "description": "" }),
            &[],
        ),
        (
            Method::Get,
            &INSTANCE,
            200,
            json!({ "acme:extra": 1, "parameters": {} }),
            &[],
        ),
    ]);
}

#[test]
fn each_broken_answer_fails_the_case_of_its_rule() {
    check(&[
        (Method::Put, &INSTANCE, 204, json!({}), &["success-codes"]),
        (Method::Get, &INSTANCE, 302, json!({}), &["success-codes"]),
        (
            Method::Delete,
            &INSTANCE,
            201,
            json!({}),
            &["success-codes"],
        ),
        (
            Method::Put,
            &INSTANCE,
            202,
            json!({ "operation": 7 }),
            &["operation"],
        ),
        (
            Method::Patch,
            &INSTANCE,
            202,
            json!({ "operation": "" }),
            &["operation"],
        ),
        (
            Method::Delete,
            &INSTANCE,
            202,
            json!({ "operation": null }),
            &["operation"],
        ),
        (
            Method::Delete,
            &INSTANCE,
            202,
            json!({ "operation": "a/b" }),
            &["operation-unreserved"],
        ),
        (
            Method::Put,
            &INSTANCE,
            202,
            json!({ "operation": "o".repeat(10_001) }),
            &["operation"],
        ),
        (Method::Put, &INSTANCE, 400, json!([]), &["error-body"]),
        (
            Method::Put,
            &INSTANCE,
            400,
            json!({ "description": "" }),
            &["error-body"],
        ),
        (
            Method::Put,
            &INSTANCE,
            400,
            json!({ "error": "two words" }),
            &["error-word"],
        ),
        (
            Method::Put,
            &INSTANCE,
            422,
            json!({ "error": "asyncRequired" }),
            &["error-code"],
        ),
        (
            Method::Put,
            &INSTANCE,
            409,
            json!({ "error": "ConcurrencyError" }),
            &["error-code"],
        ),
        (
            Method::Put,
            &INSTANCE,
            400,
            json!({ "instance_usable": true }),
            &["error-instance-usable"],
        ),
        (
            Method::Delete,
            &INSTANCE,
            400,
            json!({ "update_repeatable": true }),
            &["error-update-repeatable"],
        ),
        (
            Method::Put,
            &INSTANCE,
            201,
            json!({ "dashboard_url": 1 }),
            &["provision-body"],
        ),
        (
            Method::Put,
            &INSTANCE,
            201,
            json!({ "metadata": { "labels": [] } }),
            &["provision-body"],
        ),
        (
            Method::Patch,
            &INSTANCE,
            200,
            json!({ "metadata": [] }),
            &["update-body"],
        ),
        (
            Method::Delete,
            &INSTANCE,
            200,
            json!(""),
            &["deprovision-body"],
        ),
        (
            Method::Get,
            &INSTANCE,
            200,
            json!({ "parameters": [] }),
            &["fetch-instance-body"],
        ),
        (
            Method::Get,
            &INSTANCE_OPERATION,
            200,
            json!({ "state": "done" }),
            &["last-operation-state"],
        ),
        (
            Method::Get,
            &INSTANCE_OPERATION,
            200,
            json!({ "state": "succeeded", "description": "" }),
            &["last-operation-description"],
        ),
        (
            Method::Get,
            &INSTANCE_OPERATION,
            200,
            json!({ "state": "succeeded", "instance_usable": true }),
            &["last-operation-usable"],
        ),
        (
            Method::Get,
            &BINDING_OPERATION,
            200,
            json!({ "state": "failed", "instance_usable": true }),
            &["binding-last-operation"],
        ),
        (
            Method::Put,
            &BINDING,
            201,
            json!({ "credentials": "secret" }),
            &["bind-body"],
        ),
        (
            Method::Put,
            &BINDING,
            202,
            json!({ "credentials": {} }),
            &["bind-accepted-body"],
        ),
        (
            Method::Get,
            &BINDING,
            200,
            json!({ "syslog_drain_url": 1 }),
            &["fetch-binding-body"],
        ),
        (Method::Delete, &BINDING, 200, json!(null), &["unbind-body"]),
        (
            Method::Get,
            &INSTANCE,
            200,
            json!({ "extra": 1 }),
            &["extra-fields"],
        ),
    ]);
}

#[test]
fn every_part_of_a_mount_an_endpoint_and_a_time_is_looked_at() {
    let mount = json!({
        "driver": "nfs", "container_dir": "/d", "mode": "rw", "device_type": "shared",
        "device": { "volume_id": "v" },
    });
    for (name, bad) in [
        ("driver", json!("")),
        ("container_dir", json!(1)),
        ("mode", json!("w")),
        ("device_type", json!("own")),
        ("device", json!({})),
        ("device", json!({ "volume_id": "v", "mount_config": [] })),
    ] {
        let mut mount = mount.clone();
        mount[name] = bad;
        let body = json!({ "volume_mounts": [mount] });
        assert_eq!(
            fails(Method::Put, &BINDING, 201, &body),
            ["volume-mounts"],
            "{body}"
        );
    }
    for endpoint in [
        json!({ "ports": ["1"] }),
        json!({ "host": "h" }),
        json!({ "host": "h", "ports": [] }),
        json!({ "host": "h", "ports": [443] }),
        json!({ "host": "h", "ports": ["+1"] }),
        json!({ "host": "h", "ports": ["9-1"] }),
        json!({ "host": "h", "ports": ["70000"] }),
        json!({ "host": "h", "ports": ["1"], "protocol": "icmp" }),
    ] {
        let body = json!({ "endpoints": [endpoint] });
        assert_eq!(
            fails(Method::Get, &BINDING, 200, &body),
            ["endpoints"],
            "{body}"
        );
    }
    for metadata in [
        json!({ "expires_at": "2031-02-03T04:05:06Z" }),
        json!({ "expires_at": "2031-02-03 04:05:06.0Z" }),
        json!({ "renew_before": "2031-02-03T04:05:06.0+01:00" }),
        json!({ "renew_before": 1 }),
        json!({ "expires_at": "2031-02-03T04:05:06.0Z", "renew_before": "2031-02-03T04:05:06.1Z" }),
    ] {
        let body = json!({ "metadata": metadata });
        assert_eq!(
            fails(Method::Put, &BINDING, 201, &body),
            ["binding-times"],
            "{body}"
        );
    }
}

#[test]
fn what_the_request_did_not_allow_or_send_is_noticed() {
    let put = Request::new(Method::Put, &INSTANCE);
    let json = ("content-type", "application/json");
    assert_eq!(
        failed(&exchange(put.clone(), 202, "{}", &[json])),
        ["async-only-if-accepted"]
    );
    let identity = put.header("X-Broker-API-Request-Identity", "one");
    let echoed = ("x-broker-api-request-identity", "one");
    let other = ("x-broker-api-request-identity", "two");
    assert!(failed(&exchange(identity.clone(), 201, "{}", &[json, echoed])).is_empty());
    assert_eq!(
        failed(&exchange(identity.clone(), 201, "{}", &[json, other])),
        ["request-identity"]
    );
    assert_eq!(
        failed(&exchange(identity, 201, "{}", &[echoed])),
        ["content-type"]
    );
    let poll = Request::new(Method::Get, &INSTANCE_OPERATION);
    let date = ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    let body = r#"{"state":"in progress"}"#;
    assert_eq!(
        failed(&exchange(poll, 200, body, &[json, date])),
        ["retry-after"]
    );
}
