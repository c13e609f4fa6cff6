//! Fetching instances and bindings (checklist 1.12 and 1.16), overriding that, replacing endpoints.

use crate::fixture::test_catalog::{BARE, BINDABLE, DB, LARGE, MAINTENANCE, SMALL};
use crate::fixture::{VERSION, on_each_store, on_each_store_with};
use async_trait::async_trait;
use bytes::Bytes;
use hyper::{Request, Response};
use serde_json::json;
use sutler_broker::{Broker, Endpoint, Error, Replacement};
use sutler_osb::{InstanceMetadata, OperationKind};

/// Holds: B-150, B-151, B-155, B-156.
#[tokio::test]
async fn a_fetched_instance_has_its_request_and_its_result() {
    on_each_store(async |kit| {
        let labels = json!({ "tier": "gold" }).as_object().cloned();
        kit.script.labels(InstanceMetadata {
            labels,
            attributes: None,
        });
        kit.provision("i")
            .plan(LARGE)
            .parameters(json!({ "size": 2 }))
            .send()
            .await
            .is(201);
        let expected = json!({
            "service_id": DB, "plan_id": LARGE, "parameters": { "size": 2 },
            "dashboard_url": format!("https://dashboard/i/{LARGE}"),
            "maintenance_info": { "version": MAINTENANCE },
            "metadata": { "labels": { "tier": "gold" } },
        });
        assert_eq!(kit.fetch("i").send().await.is(200).json, expected);
        // The ids are only hints: the platform's view may be outdated.
        for request in [kit.fetch("i").plan(LARGE), kit.fetch("i").plan(SMALL)] {
            assert_eq!(request.send().await.is(200).json, expected);
        }
    })
    .await;
}

/// Holds: B-150.
#[tokio::test]
async fn every_plan_of_a_retrievable_offering_can_be_fetched_and_no_other() {
    on_each_store(async |kit| {
        for plan in [
            "small-id",
            "large-id",
            "sync-id",
            "unbindable-id",
            "fixed-id",
        ] {
            kit.has_instance_of(plan, plan).await;
            kit.fetch(plan).send().await.is(200);
        }
        kit.has_instance_of("bare", BARE).await;
        kit.fetch("bare").send().await.is(404);
        kit.has_instance_of("bound", BINDABLE).await;
        kit.bind("bound", "b").plan(BINDABLE).send().await.is(201);
        kit.fetch_binding("bound", "b").send().await.is(404);
    })
    .await;
}

/// Holds: B-152.
#[tokio::test]
async fn an_instance_that_is_not_there_or_not_yet_is_404() {
    on_each_store(async |kit| {
        kit.fetch("i").send().await.is(404);
        let gate = kit.script.hold(OperationKind::Provision);
        let operation = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        gate.reached().await;
        kit.fetch("i").send().await.is(404);
        gate.open();
        kit.poll_until_done(kit.poll("i").operation(&operation))
            .await;
        kit.fetch("i").send().await.is(200);
        kit.deprovision("i").send().await.is(200);
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-091, B-153.
#[tokio::test]
async fn an_instance_that_is_being_updated_is_422() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        patch.send().await.is(202);
        kit.fetch("i").send().await.refused_as("ConcurrencyError");
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        kit.fetch("i").send().await.is(200);
    })
    .await;
}

/// Holds: B-155.
#[tokio::test]
async fn the_maintenance_version_of_an_instance_follows_its_plan() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        assert_eq!(
            kit.fetch("i").send().await.json.get("maintenance_info"),
            None
        );
        kit.update("i").plan(LARGE).send().await.is(200);
        let there = kit.fetch("i").send().await.json;
        assert_eq!(there["maintenance_info"]["version"], MAINTENANCE);
        kit.update("i").plan(SMALL).send().await.is(200);
        assert_eq!(
            kit.fetch("i").send().await.json.get("maintenance_info"),
            None
        );
    })
    .await;
}

/// Holds: B-154, B-233.
#[tokio::test]
async fn an_author_may_remove_fields_from_a_fetch_or_fail_it() {
    on_each_store(async |kit| {
        kit.provision("i")
            .parameters(json!({ "password": "hunter2" }))
            .send()
            .await
            .is(201);
        let bind = kit.bind("i", "b").parameters(json!({ "token": "hunter3" }));
        bind.send().await.is(201);
        kit.script.fetches(|mut stored| {
            stored.parameters = None;
            Ok(stored)
        });
        kit.script.fetches_bindings(|mut stored| {
            stored.parameters = None;
            Ok(stored)
        });
        let fetched = kit.fetch("i").send().await.is(200);
        assert!(!fetched.text.contains("hunter") && fetched.json["plan_id"] == SMALL);
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        assert!(!fetched.text.contains("hunter3") && fetched.json["credentials"].is_object());
        kit.script
            .fetches(|_| Err(Error::failed("Cannot look.").because("hunter2")));
        let failed = kit.fetch("i").send().await.is(500);
        assert_eq!(failed.json, json!({ "description": "Cannot look." }));
    })
    .await;
}

/// Holds: B-190, B-230, B-231.
#[tokio::test]
async fn a_fetched_binding_has_the_bind_response_and_its_parameters() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bind = kit.bind("i", "b").parameters(json!({ "role": "reader" }));
        let bound = bind.send().await.is(201);
        let fetched = kit.fetch_binding("i", "b").plan(SMALL).send().await.is(200);
        assert_eq!(fetched.json["credentials"], bound.json["credentials"]);
        assert_eq!(fetched.json["parameters"], json!({ "role": "reader" }));
        let slow = kit.bind("i", "c").accepts_incomplete();
        kit.finish_binding("i", "c", slow).await;
        let fetched = kit.fetch_binding("i", "c").send().await.is(200);
        assert_eq!(fetched.json["credentials"]["user"], "c");
        // Every fetch returns the same.
        assert_eq!(
            kit.fetch_binding("i", "c").send().await.is(200).json,
            fetched.json
        );
    })
    .await;
}

/// Holds: B-232.
#[tokio::test]
async fn a_binding_that_is_not_there_or_not_yet_is_404() {
    on_each_store(async |kit| {
        kit.fetch_binding("i", "b").send().await.is(404);
        kit.has_instance("i").await;
        kit.fetch_binding("i", "b").send().await.is(404);
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "b").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        kit.fetch_binding("i", "b").send().await.is(404);
        gate.open();
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        kit.fetch_binding("i", "b").send().await.is(200);
        kit.fetch_binding("other", "b").send().await.is(404);
        kit.unbind("i", "b").send().await.is(200);
        kit.fetch_binding("i", "b").send().await.is(404);
    })
    .await;
}

struct Teapot;

#[async_trait]
impl Replacement for Teapot {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let text = format!(
            "{} {}",
            request.uri().path(),
            String::from_utf8_lossy(request.body())
        );
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = hyper::StatusCode::IM_A_TEAPOT;
        response
    }
}

/// Holds: B-006, B-010.
#[tokio::test]
async fn a_replaced_endpoint_is_still_authenticated() {
    let odd = |broker: Broker| {
        broker
            .replace(Endpoint::FetchInstance, Teapot)
            .replace(Endpoint::Bind, Teapot)
    };
    on_each_store_with(odd, async |kit| {
        let fetch = kit
            .fetch("a b")
            .header("X-Broker-API-Request-Identity", "x");
        let reply = fetch.clone().send().await.is(418);
        assert_eq!(reply.text, "/v2/service_instances/a%20b ");
        assert_eq!(reply.header("X-Broker-API-Request-Identity"), "x");
        fetch
            .clone()
            .without_header("Authorization")
            .send()
            .await
            .is(401);
        fetch.header(VERSION, "3.0").send().await.is(412);
        let bind = kit.bind("i", "b").bytes("any bytes").send().await.is(418);
        assert!(bind.text.ends_with(" any bytes"));
        kit.provision("i").send().await.is(201);
        kit.fetch_binding("i", "b").send().await.is(404);
    })
    .await;
}
