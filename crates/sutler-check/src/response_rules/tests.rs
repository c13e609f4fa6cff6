//! Valid and invalid answers, and the cases they fail.

use super::check as check_exchange;
use crate::exchange::Exchange;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};
use std::time::Duration;
use sutler_client::wire::{Answer, Method, Request};

/// Method, path, status, the case that the answer fails or `-`, and its body.
const GOOD: &str = r#"
PUT instance 201 - {}
PUT instance 202 - {"operation":null}
PUT instance 200 - {"dashboard_url":null,"metadata":{"labels":{},"attributes":{}}}
PATCH instance 200 - {"dashboard_url":null,"metadata":{"labels":{},"attributes":{}}}
PATCH instance 202 - {"operation":"a-1"}
DELETE instance 410 - {}
DELETE instance 500 - {"instance_usable":false}
PATCH instance 422 - {"update_repeatable":false,"instance_usable":true}
PUT binding 201 - {"credentials":{"uri":"x"},"metadata":{"expires_at":"2031-02-03T04:05:06.0Z","renew_before":"2031-02-03T04:05:05.123Z"}}
GET binding 200 - {"volume_mounts":[{"driver":"nfs","container_dir":"/d","mode":"rw","device_type":"shared","device":{"volume_id":"v","mount_config":{"a":1}}}]}
GET binding 200 - {"endpoints":[{"host":"h","ports":["443","9000-9010"],"protocol":"all"},{"host":"h","ports":["1"]}]}
PUT binding 202 - {"operation":"o"}
GET instance/last_operation 200 - {"state":"in progress"}
GET instance/last_operation 200 - {"state":"failed","instance_usable":false}
GET binding/last_operation 200 - {"state":"failed","description":""}
GET instance 200 - {"acme:extra":1,"parameters":{}}
"#;
const BAD: &str = r#"
PUT instance 204 success-codes {}
GET instance 302 success-codes {}
DELETE instance 201 success-codes {}
PUT instance 202 operation {"operation":7}
PATCH instance 202 operation {"operation":""}
DELETE instance 202 operation {"operation":null}
DELETE instance 202 operation-unreserved {"operation":"a/b"}
PUT instance 400 error-body []
PUT instance 401 unauthorized-body ""
PUT instance 400 error-body {"description":""}
PUT instance 400 error-word {"error":"two words"}
PUT instance 422 error-code {"error":"asyncRequired"}
PUT instance 409 error-code {"error":"ConcurrencyError"}
PUT instance 400 error-instance-usable {"instance_usable":true}
PATCH instance 400 error-instance-usable {"instance_usable":"no"}
DELETE instance 400 error-update-repeatable {"update_repeatable":true}
PUT instance 201 provision-body {"dashboard_url":1}
PUT instance 201 provision-body {"metadata":{"labels":[]}}
PATCH instance 200 update-body {"metadata":[]}
DELETE instance 200 deprovision-body ""
GET instance 200 fetch-instance-body {"parameters":[]}
GET instance 200 fetch-instance-body {"maintenance_info":{"version":""}}
GET instance/last_operation 200 last-operation-state {"state":"done"}
GET instance/last_operation 200 last-operation-description {"state":"succeeded","description":""}
GET instance/last_operation 200 last-operation-usable {"state":"succeeded","instance_usable":true}
GET binding/last_operation 200 binding-last-operation {"state":"failed","instance_usable":true}
PUT binding 201 bind-body {"credentials":"secret"}
PUT binding 202 bind-accepted-body {"credentials":{}}
GET binding 200 fetch-binding-body {"syslog_drain_url":1}
DELETE binding 200 unbind-body null
GET instance 200 extra-fields {"extra":1}
"#;

const INSTANCE: &str = "v2/service_instances/i";
const BINDING: &str = "v2/service_instances/i/service_bindings/b";

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

/// Names of the cases that an answer fails.
fn failed(exchange: &Exchange) -> Vec<&'static str> {
    let all = check_exchange(exchange).into_iter();
    all.filter(|it| it.1.is_err()).map(|it| it.0.name).collect()
}

/// The cases that a body fails, in the answer to a request that accepts 202.
fn fails(method: Method, path: &str, status: u16, body: &Value) -> Vec<&'static str> {
    let path: Vec<&str> = path.split('/').collect();
    let request = Request::new(method, &path).query("accepts_incomplete", "true");
    let json = [("content-type", "application/json; charset=utf-8")];
    failed(&exchange(request, status, &body.to_string(), &json))
}

fn check_table(table: &str) {
    for row in table.trim().lines() {
        let words: Vec<&str> = row.splitn(5, ' ').collect();
        let method = match words[0] {
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            "DELETE" => Method::Delete,
            _ => Method::Get,
        };
        let place = match words[1] {
            "instance" => INSTANCE.to_owned(),
            "binding" => BINDING.to_owned(),
            "binding/last_operation" => format!("{BINDING}/last_operation"),
            _ => format!("{INSTANCE}/last_operation"),
        };
        let status = words[2].parse().unwrap();
        let expected = Vec::from_iter(Some(words[3]).filter(|it| *it != "-"));
        let body = serde_json::from_str(words[4]).unwrap();
        assert_eq!(fails(method, &place, status, &body), expected, "{row}");
    }
}

#[test]
fn answers_as_they_have_to_be_fail_nothing() {
    check_table(GOOD);
}

#[test]
fn each_broken_answer_fails_the_case_of_its_rule() {
    check_table(BAD);
    let long = json!({ "operation": "o".repeat(10_001) });
    assert_eq!(fails(Method::Put, INSTANCE, 202, &long), ["operation"]);
}

#[test]
fn every_part_of_a_mount_an_endpoint_and_a_time_is_checked() {
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
            fails(Method::Put, BINDING, 201, &body),
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
            fails(Method::Get, BINDING, 200, &body),
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
            fails(Method::Put, BINDING, 201, &body),
            ["binding-times"],
            "{body}"
        );
    }
}

#[test]
fn a_response_must_match_its_request() {
    let put = Request::new(Method::Put, &["v2", "service_instances", "i"]);
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
    let poll = Request::new(
        Method::Get,
        &["v2", "service_instances", "i", "last_operation"],
    );
    let date = ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    let body = r#"{"state":"in progress"}"#;
    assert_eq!(
        failed(&exchange(poll, 200, body, &[json, date])),
        ["retry-after"]
    );
}

/// Any JSON, with known field names in some places.
fn anything() -> impl Strategy<Value = Value> {
    let names = [
        "operation",
        "state",
        "description",
        "error",
        "credentials",
        "metadata",
        "labels",
        "expires_at",
        "renew_before",
        "volume_mounts",
        "device",
        "mode",
        "endpoints",
        "ports",
        "host",
        "protocol",
        "dashboard_url",
        "parameters",
        "maintenance_info",
        "instance_usable",
    ];
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,30}".prop_map(Value::from),
        Just(json!("2031-02-03T04:05:06.0Z")),
        "[0-9-]{0,12}".prop_map(Value::from),
    ];
    plain.prop_recursive(4, 40, 6, move |inner| {
        let named = (prop::sample::select(names.to_vec()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(named, 0..6).prop_map(|all| {
                let all = all.into_iter().map(|(name, it)| (name.to_owned(), it));
                Value::Object(all.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_answer_can_be_checked(
        body in anything(),
        status in 100_u16..600,
        place in prop::sample::select(vec![INSTANCE, BINDING]),
        is_poll in any::<bool>(),
    ) {
        let path = if is_poll { format!("{place}/last_operation") } else { place.to_owned() };
        for method in [Method::Get, Method::Put, Method::Patch, Method::Delete] {
            fails(method, &path, status, &body);
        }
    }
}
