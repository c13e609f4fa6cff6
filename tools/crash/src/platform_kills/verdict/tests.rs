//! Requests that are wrong are found. That whole runs are judged rightly is shown with flaws
//! (`tests/it/platform_kills.rs`).

use super::Evidence;
use crate::platform_kills::known_state::{KnownState, StoredIntent};
use crate::platform_kills::people::Acknowledged;
use crate::recording_broker::{BrokerAnswer, BrokerState, ReceivedRequest, RequestEffect};
use serde_json::json;
use sutler_journal::Outcome;
use sutler_platform::lifecycle::intent::IntentEnd;
use sutler_servers::http::base64;

const OPERATION: &str = "operation-1";

/// A create of carla.
fn request(body: &str) -> ReceivedRequest {
    ReceivedRequest {
        at_us: 0,
        sender: None,
        method: "PUT".to_owned(),
        target: "/v2/service_instances/i?accepts_incomplete=true".to_owned(),
        identity: Some(format!("sutler {}", base64(r#"{"username":"carla"}"#))),
        operation: Some(OPERATION.to_owned()),
        headers: Vec::new(),
        body: base64(body),
        effect: RequestEffect::Nothing,
        answer: BrokerAnswer::Sent {
            status: 200,
            body: json!({}),
        },
    }
}

fn known() -> KnownState {
    let intent = StoredIntent {
        instance: None,
        verb: "provision".to_owned(),
        author: Some("carla".to_owned()),
        outcome: Some(Outcome::Succeeded),
        end: Some(IntentEnd::Succeeded),
    };
    KnownState {
        intents: [(OPERATION.to_owned(), intent)].into(),
        ..KnownState::default()
    }
}

fn judged_with(requests: &[ReceivedRequest], known: &KnownState) -> String {
    let acknowledged = [Acknowledged {
        user: "carla",
        operation: OPERATION.to_owned(),
        verb: "provision".to_owned(),
        ends: &["succeeded"],
    }];
    let evidence = Evidence {
        requests,
        broker: &BrokerState::default(),
        plans: Vec::new(),
        known,
        acknowledged: &acknowledged,
        sends_max: 2,
        silences: 0,
        unacknowledged_max: 0,
        mitigates: false,
    };
    evidence
        .judge()
        .err()
        .map_or_else(String::new, |it| it.to_string())
}

fn judged(requests: &[ReceivedRequest]) -> String {
    judged_with(requests, &known())
}

#[test]
fn a_request_may_be_repeated_byte_for_byte() {
    assert_eq!(judged(&[request("{}"), request("{}")]), "");
}

#[test]
fn other_bytes_are_found() {
    let found = judged(&[request("{}"), request("{ }")]);
    assert!(found.contains("other bytes"), "{found}");
    let other_query = ReceivedRequest {
        target: "/v2/service_instances/i".to_owned(),
        ..request("{}")
    };
    let found = judged(&[request("{}"), other_query]);
    assert!(found.contains("other bytes"), "{found}");
}

#[test]
fn a_request_that_is_sent_without_a_reason_is_found() {
    let found = judged(&[request("{}"), request("{}"), request("{}")]);
    assert!(found.contains("sent 3 times"), "{found}");
}

#[test]
fn the_identity_of_somebody_else_is_found() {
    let none = ReceivedRequest {
        identity: None,
        ..request("{}")
    };
    let found = judged(&[none]);
    assert!(found.contains("was sent as None"), "{found}");
}

#[test]
fn what_is_created_twice_is_found() {
    let created = ReceivedRequest {
        effect: RequestEffect::Created,
        ..request("{}")
    };
    let found = judged(&[created.clone(), created.clone()]);
    assert!(found.contains("created 2 times"), "{found}");
    let elsewhere = ReceivedRequest {
        target: "/v2/service_instances/j".to_owned(),
        ..created.clone()
    };
    let found = judged(&[created, elsewhere]);
    assert!(found.contains(" and /v2/service_instances/j"), "{found}");
}

#[test]
fn a_lost_order_is_found() {
    let found = judged_with(&[], &KnownState::default());
    assert!(found.contains("is lost"), "{found}");
}

#[test]
fn an_intent_that_was_not_ordered_is_found() {
    let mut known = known();
    let other = known.intents[OPERATION].clone();
    known.intents.insert("operation-2".to_owned(), other);
    let found = judged_with(&[], &known);
    assert!(found.contains("never ordered"), "{found}");
}
