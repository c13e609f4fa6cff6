//! Tests of registrations of brokers as they are written.

use super::{BrokerAuthBody, BrokerBody};
use crate::broker_request::Profile;
use crate::records::BrokerLimits;
use serde_json::{Map, Value, json};
use std::time::Duration;

fn body(value: Value) -> Option<BrokerBody> {
    serde_json::from_value(value).ok()
}

fn patched(body: &BrokerBody, patch: Value) -> Result<BrokerBody, Value> {
    let patch: Map<String, Value> = serde_json::from_value(patch).expect("an object");
    body.patched(&patch).map_err(|problem| problem.document())
}

fn registered() -> BrokerBody {
    let value = json!({
        "url": "https://broker.example", "profile": "kubernetes",
        "auth": {"basic": {"username": "platform", "password": "s3cret"}},
        "limits": {"maxInFlight": 4}, "options": {"serialize": true},
    });
    body(value).expect("a body")
}

#[test]
fn what_is_left_out_has_its_default() {
    let body = body(json!({"url": "https://broker.example"})).expect("a body");
    assert!(body.auth == BrokerAuthBody::None);
    assert_eq!(body.profile, Profile::Sutler);
    assert_eq!(BrokerLimits::from(body.limits), BrokerLimits::default());
}

#[test]
fn what_is_misspelt_is_refused() {
    for value in [
        json!({}),
        json!({"url": "x", "user": "y"}),
        json!({"url": "x", "auth": {"basic": {"username": "y"}}}),
        json!({"url": "x", "auth": {"kerberos": {}}}),
        json!({"url": "x", "auth": {"bearer": {"token": "t", "username": "y"}}}),
        json!({"url": "x", "auth": {}}),
        json!({"url": "x", "limits": {"maxInFlight": 0}}),
        json!({"url": "x", "limits": {"answerWithin": 60}}),
        json!({"url": "x", "profile": "openshift"}),
        json!({"url": "x", "restrictions": {"servicePlan": ["nonsense"]}}),
    ] {
        assert!(body(value.clone()).is_none(), "{value}");
    }
}

#[test]
fn a_change_keeps_what_it_does_not_name() {
    let changed = patched(&registered(), json!({"limits": {"answerWithin": "5s"}}));
    let changed = changed.expect("a change");
    assert_eq!(changed.limits.answer_within.0, Duration::from_secs(5));
    assert_eq!(changed.limits.max_in_flight.get(), 4);
    assert!(changed.auth == registered().auth);
    let password = patched(
        &registered(),
        json!({"auth": {"basic": {"password": "new"}}}),
    );
    let password = password.expect("a change");
    let expected = BrokerAuthBody::Basic {
        username: "platform".to_owned(),
        password: "new".to_owned(),
    };
    assert!(password.auth == expected);
}

#[test]
fn null_goes_back_to_the_default() {
    let changed = patched(&registered(), json!({"options": null, "auth": null}));
    let changed = changed.expect("a change");
    assert!(!changed.options.serialize);
    assert!(changed.auth == BrokerAuthBody::None);
    assert!(patched(&registered(), json!({"url": null})).is_err());
}

#[test]
fn another_way_to_authenticate_takes_nothing_over() {
    let changed = patched(&registered(), json!({"auth": {"bearer": {"token": "t"}}}));
    let changed = changed.expect("a change");
    assert!(
        changed.auth
            == BrokerAuthBody::Bearer {
                token: "t".to_owned()
            }
    );
}

#[test]
fn a_refused_change_does_not_quote_the_credentials() {
    let problem = patched(&registered(), json!({"auth": {"basic": {"username": 7}}})).err();
    let problem = problem.expect("a wrong type").to_string();
    assert!(!problem.contains("s3cret"), "{problem}");
}

#[test]
fn texts_are_bounded() {
    let check = |value: Value| body(value).expect("a body").definition().is_ok();
    assert!(check(json!({"url": "https://x"})));
    assert!(!check(json!({"url": ""})));
    assert!(!check(
        json!({"url": "x", "tls": {"ca": "x".repeat(65 * 1024)}})
    ));
    assert!(!check(
        json!({"url": "x", "auth": {"bearer": {"token": ""}}})
    ));
}
