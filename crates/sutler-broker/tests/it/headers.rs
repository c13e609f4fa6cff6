//! Version header, identity headers, unknown fields (checklist 1.1).

use crate::fixture::test_catalog::{LARGE, MAINTENANCE};
use crate::fixture::{VERSION, on_each_store, on_each_store_with};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use sutler_broker::MissingVersion;
use sutler_osb::OperationKind;

const ORIGINATING: &str = "X-Broker-API-Originating-Identity";
const IDENTITY: &str = "X-Broker-API-Request-Identity";

/// Holds: B-001, D-01.
#[tokio::test]
async fn without_a_version_every_endpoint_answers_400_and_names_the_missing_header() {
    on_each_store(async |kit| {
        for request in kit.ten_endpoints("i", "b") {
            let reply = request.without_header(VERSION).send().await.is(400);
            assert!(reply.description().contains(VERSION), "{}", reply.text);
        }
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
    })
    .await;
}

/// Holds: B-001, D-01.
#[tokio::test]
async fn without_a_version_every_endpoint_answers_412_where_that_is_set() {
    let older = |broker: sutler_broker::Broker| {
        broker.settings(|it| it.missing_version = MissingVersion::PreconditionFailed)
    };
    on_each_store_with(older, async |kit| {
        for request in kit.ten_endpoints("i", "b") {
            let reply = request.without_header(VERSION).send().await.is(412);
            assert!(reply.description().contains(VERSION), "{}", reply.text);
        }
    })
    .await;
}

/// Holds: B-002.
#[tokio::test]
async fn a_version_that_is_not_served_is_refused_with_412_and_the_one_to_use() {
    on_each_store(async |kit| {
        let foreign = [
            "3.0", "1.17", "2", "2.", ".17", "two", "2.17.0", "02.17", "2.-1", "-2.17",
        ];
        for version in foreign
            .iter()
            .chain(&["2,17", "", "99999999999999999999.1"])
        {
            for request in kit.ten_endpoints("i", "b") {
                let reply = request.header(VERSION, version).send().await;
                assert_eq!(reply.status, 412, "{version:?}: {}", reply.text);
                assert!(reply.description().contains("2.17"), "{}", reply.text);
            }
        }
    })
    .await;
}

/// Holds: B-002, B-003.
#[tokio::test]
async fn every_minor_version_is_served_whether_older_or_newer() {
    on_each_store(async |kit| {
        // Compared as texts, 2.9 would be later than 2.17.
        for version in ["2.0", "2.9", "2.13", "2.17", "2.18", "2.100"] {
            kit.catalog().header(VERSION, version).send().await.is(200);
            kit.provision(version)
                .header(VERSION, version)
                .send()
                .await
                .is(201);
        }
    })
    .await;
}

/// Holds: B-003, B-124.
#[tokio::test]
async fn unknown_fields_are_ignored_at_any_depth() {
    let odd = || json!({ "x": [{ "y": { "z": [null, 1, "2", { "deep": {} }] } }], "": false });
    on_each_store(async |kit| {
        let put = kit.provision("i").plan(LARGE).with("future", odd()).with(
            "maintenance_info",
            json!({ "version": MAINTENANCE, "description": 7, "future": odd() }),
        );
        // `description` of a request's maintenance_info has no meaning, but it has a type.
        put.clone().send().await.is(400);
        let put = put.with(
            "maintenance_info",
            json!({ "version": MAINTENANCE, "future": odd() }),
        );
        put.with("context", json!({ "platform": "x", "future": odd() }))
            .send()
            .await
            .is(201);
        let previous = json!({ "plan_id": LARGE, "future": odd(), "maintenance_info": odd() });
        let patch = kit
            .update("i")
            .with("future", odd())
            .with("previous_values", previous);
        patch.parameters(json!({ "size": 2 })).send().await.is(200);
        let resource = json!({ "app_guid": "app", "future": odd() });
        let bind = kit.bind("i", "b").plan(LARGE).with("future", odd());
        bind.with("bind_resource", resource)
            .query("future", "1")
            .send()
            .await
            .is(201);
        kit.unbind("i", "b")
            .plan(LARGE)
            .query("future", "1")
            .send()
            .await
            .is(200);
        kit.fetch("i").query("future", "").send().await.is(200);
    })
    .await;
}

/// Holds: B-004.
#[tokio::test]
async fn answers_have_no_fields_but_those_of_the_specification() {
    on_each_store(async |kit| {
        let keys = |json: &Value| -> Vec<String> {
            json.as_object()
                .expect("an object")
                .keys()
                .cloned()
                .collect()
        };
        let check = |json: &Value, known: &[&str]| {
            for key in keys(json) {
                assert!(known.contains(&key.as_str()), "{key} in {json}");
            }
        };
        let instance = ["dashboard_url", "operation", "metadata"];
        check(&kit.provision("i").send().await.is(201).json, &instance);
        check(
            &kit.update("i")
                .parameters(json!({"a": 1}))
                .send()
                .await
                .is(200)
                .json,
            &instance,
        );
        let fetched = kit.fetch("i").send().await.is(200).json;
        let fields = [
            "service_id",
            "plan_id",
            "dashboard_url",
            "parameters",
            "maintenance_info",
        ];
        check(&fetched, &fields);
        check(
            &kit.poll("i").send().await.is(200).json,
            &["state", "description"],
        );
        check(
            &kit.bind("i", "b").send().await.is(201).json,
            &["credentials"],
        );
        check(&kit.unbind("i", "b").send().await.is(200).json, &[]);
        check(
            &kit.fetch("no").send().await.is(404).json,
            &["error", "description"],
        );
    })
    .await;
}

/// Holds: B-005.
#[tokio::test]
async fn the_originating_identity_reaches_the_hook() {
    on_each_store(async |kit| {
        let user = json!({ "user_id": "683ea748", "extra": { "scopes": ["a", "b"] } });
        let header = format!("cloudfoundry {}", STANDARD.encode(user.to_string()));
        kit.provision("i")
            .header(ORIGINATING, &header)
            .send()
            .await
            .is(201);
        let received = kit.script.only_call(OperationKind::Provision).identity;
        assert_eq!(
            received,
            Some(json!({ "platform": "cloudfoundry", "value": user.clone() }))
        );
        let header = format!("kubernetes {}", URL_SAFE_NO_PAD.encode(user.to_string()));
        kit.bind("i", "b")
            .header(ORIGINATING, &header)
            .send()
            .await
            .is(201);
        let received = kit.script.only_call(OperationKind::Bind).identity;
        assert_eq!(
            received,
            Some(json!({ "platform": "kubernetes", "value": user }))
        );
        kit.deprovision("i").send().await.is(200);
        assert_eq!(
            kit.script.only_call(OperationKind::Deprovision).identity,
            None
        );
    })
    .await;
}

/// Holds: B-005.
#[tokio::test]
async fn an_invalid_originating_identity_is_refused_before_any_change() {
    on_each_store(async |kit| {
        let list = STANDARD.encode("[1]");
        for header in [
            "cloudfoundry",
            "cloudfoundry ***",
            &format!("cf {list}"),
            " e30=",
        ] {
            for request in kit.ten_endpoints("i", "b") {
                request.header(ORIGINATING, header).send().await.is(400);
            }
        }
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-006.
#[tokio::test]
async fn the_request_identity_is_returned_with_every_status() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Update);
        let put = kit.provision("i").header(IDENTITY, "abc-1");
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        let requests = [
            put.clone(),                                 // 201
            put.clone(),                                 // 200
            put.clone().with("space_guid", "other"),     // 409
            put.clone().without("plan_id"),              // 400
            put.clone().bytes("{"),                      // 400
            put.clone().without_header("Authorization"), // 401
            put.clone().header(VERSION, "3.0"),          // 412
            put.clone().without_header(VERSION),         // 400
            put.query("accepts_incomplete", "perhaps"),  // 400
            kit.fetch("unknown"),                        // 404
            kit.request("POST", "/v2/catalog"),          // 405
            kit.deprovision("unknown"),                  // 410
            patch,                                       // 202
            kit.deprovision("i"),                        // 422
            kit.fetch("i"),                              // 422
            kit.catalog(),                               // 200
            kit.catalog().header("If-None-Match", "*"),  // 304
        ];
        let mut statuses = BTreeSet::new();
        for request in requests {
            let reply = request.header(IDENTITY, "Abc-1 /x").send().await;
            assert_eq!(reply.header(IDENTITY), "Abc-1 /x", "{}", reply.status);
            statuses.insert(reply.status);
        }
        // Other tests check the status of each request.
        assert!(statuses.len() > 9, "{statuses:?}");
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        kit.script.fails(OperationKind::Deprovision, "No.");
        let reply = kit
            .deprovision("i")
            .header(IDENTITY, "last")
            .send()
            .await
            .is(500);
        assert_eq!(reply.header(IDENTITY), "last");
        assert_eq!(kit.catalog().send().await.header(IDENTITY), "");
    })
    .await;
}

/// Holds: B-007.
#[tokio::test]
async fn the_request_identity_reaches_the_hook_for_its_log_lines() {
    on_each_store(async |kit| {
        kit.provision("i")
            .header(IDENTITY, "req-7")
            .send()
            .await
            .is(201);
        let received = kit
            .script
            .only_call(OperationKind::Provision)
            .request_identity;
        assert_eq!(received.as_deref(), Some("req-7"));
    })
    .await;
}
