//! Unbind (checklist 1.17).

use crate::fixture::test_catalog::{ASYNC, DB, LARGE, SMALL};
use crate::fixture::{on_each_store, on_each_store_with};
use serde_json::json;
use sutler_broker::Broker;
use sutler_osb::OperationKind;

/// Holds: B-240, B-243, D-06.
#[tokio::test]
async fn service_and_plan_must_be_named_but_an_unknown_binding_is_410_first() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        for field in ["service_id", "plan_id"] {
            let reply = kit.unbind("i", "b").without(field).send().await.is(400);
            assert!(reply.description().contains(field), "{}", reply.text);
            kit.unbind("i", "unknown")
                .without(field)
                .send()
                .await
                .is(410);
            // An empty one counts as absent.
            let empty = |id: &str| kit.unbind("i", id).without(field).query(field, "");
            empty("b").send().await.is(400);
            empty("unknown").send().await.is(410);
        }
        let bare = kit
            .unbind("i", "unknown")
            .without("service_id")
            .without("plan_id");
        bare.send().await.is(410);
        kit.fetch_binding("i", "b").send().await.is(200);
    })
    .await;
}

/// Holds: B-241, B-242.
#[tokio::test]
async fn an_unbind_gets_the_stored_data_of_the_binding() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.bind("i", "b")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(201);
        assert_eq!(kit.unbind("i", "b").send().await.is(200).text, "{}");
        let call = kit.script.only_call(OperationKind::Unbind);
        assert_eq!(
            (call.instance.as_str(), call.binding.as_deref()),
            ("i", Some("b"))
        );
        assert_eq!(call.binding_state, Some(json!({ "bound": "b" })));
        assert_eq!(call.state, Some(json!({ "made": "i", "by": "provision" })));
        assert_eq!(call.parameters, json!({ "a": 1 }));
        kit.fetch_binding("i", "b").send().await.is(404);
        kit.bind("i", "b")
            .parameters(json!({ "b": 2 }))
            .send()
            .await
            .is(201);
    })
    .await;
}

/// Holds: B-243, D-13.
#[tokio::test]
async fn deleting_an_unknown_binding_is_410() {
    on_each_store(async |kit| {
        kit.unbind("i", "b").send().await.is(410);
        kit.unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .is(410);
        kit.has_instance("i").await;
        kit.unbind("i", "b").send().await.is(410);
        kit.has_binding("i", "b").await;
        kit.unbind("j", "b").send().await.is(410);
        kit.unbind("i", "b").send().await.is(200);
        let reply = kit.unbind("i", "b").send().await.is(410);
        assert!(reply.json.is_object());
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
    })
    .await;
}

/// Holds: B-243, B-253.
#[tokio::test]
async fn an_unknown_binding_is_deleted_where_that_is_set() {
    let force = |broker: Broker| broker.settings(|it| it.bindings.force_delete_unknown = true);
    on_each_store_with(force, async |kit| {
        assert_eq!(kit.unbind("i", "b").send().await.is(200).text, "{}");
        kit.unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .is(200);
        kit.deprovision("i").send().await.is(410);
        assert!(kit.script.calls(OperationKind::Unbind).is_empty());
    })
    .await;
}

/// Holds: B-110, B-242.
#[tokio::test]
async fn an_unbind_that_fails_leaves_the_binding_and_can_be_repeated() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bound = kit.bind("i", "b").send().await.is(201);
        kit.script.fails(OperationKind::Unbind, "Still in use.");
        let reply = kit.unbind("i", "b").send().await.is(500);
        assert_eq!(reply.json, json!({ "description": "Still in use." }));
        let fetched = kit.fetch_binding("i", "b").send().await.is(200);
        assert_eq!(fetched.json["credentials"], bound.json["credentials"]);
        let polled = kit
            .finish_binding("i", "b", kit.unbind("i", "b").accepts_incomplete())
            .await;
        assert_eq!(
            polled.json,
            json!({ "state": "failed", "description": "Still in use." })
        );
        kit.script.succeeds(OperationKind::Unbind);
        kit.unbind("i", "b").send().await.is(200);
    })
    .await;
}

/// Holds: B-083, B-243, B-244.
#[tokio::test]
async fn deleting_an_unknown_binding_of_an_asynchronous_plan_requires_accepts_incomplete() {
    on_each_store(async |kit| {
        kit.unbind("i", "b")
            .plan(ASYNC)
            .send()
            .await
            .refused_as("AsyncRequired");
        kit.unbind("i", "b")
            .plan(ASYNC)
            .accepts_incomplete()
            .send()
            .await
            .is(410);
        kit.unbind("i", "b").plan(SMALL).send().await.is(410);
        let unknown = kit.unbind("i", "b").service(DB).only_plan("unknown");
        unknown.send().await.is(410);
    })
    .await;
}

/// Holds: B-245.
#[tokio::test]
async fn a_delete_during_an_asynchronous_bind_halts_it_and_polls_show_the_delete() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let bind_gate = kit.script.hold(OperationKind::Bind);
        let bind = kit
            .bind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        bind_gate.reached().await;
        let unbind_gate = kit.script.hold(OperationKind::Unbind);
        let unbind = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        assert_ne!(bind, unbind);
        unbind_gate.reached().await;
        let poll = kit.poll_binding("i", "b");
        assert_eq!(
            poll.clone().send().await.is(200).json["state"],
            "in progress"
        );
        let halted = poll.clone().operation(&bind).send().await.is(200);
        assert_eq!(halted.json["state"], "failed");
        unbind_gate.open();
        let done = kit.poll_until_done(poll.operation(&unbind)).await;
        assert_eq!(done.json["state"], "succeeded");
        kit.fetch_binding("i", "b").send().await.is(404);
        kit.unbind("i", "b").send().await.is(410);
    })
    .await;
}

/// Holds: B-082, B-245.
#[tokio::test]
async fn a_delete_that_waits_for_its_result_halts_a_bind_too() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        let bind = kit
            .bind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let waiting = kit.bind("i", "b").start();
        gate.reached().await;
        kit.unbind("i", "b").send().await.is(200);
        let polled = kit
            .poll_binding("i", "b")
            .operation(&bind)
            .send()
            .await
            .is(200);
        assert_eq!(polled.json["state"], "failed");
        let reply = waiting.await.expect("answered");
        assert!(![200, 201, 202].contains(&reply.status), "{}", reply.text);
        kit.fetch_binding("i", "b").send().await.is(404);
    })
    .await;
}

/// Holds: B-241, B-245.
#[tokio::test]
async fn a_bind_that_cannot_be_stopped_is_undone_with_its_state() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold_uncancellable(OperationKind::Bind);
        let waiting = kit.bind("i", "b").start();
        gate.reached().await;
        let unbind = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        assert!(
            kit.script.calls(OperationKind::Unbind).is_empty(),
            "not before the bind ended"
        );
        gate.open();
        let done = kit
            .poll_until_done(kit.poll_binding("i", "b").operation(&unbind))
            .await;
        assert_eq!(done.json["state"], "succeeded");
        let reply = waiting.await.expect("answered").is(500);
        assert_eq!(reply.json.get("credentials"), None);
        let undone = kit.script.only_call(OperationKind::Unbind);
        assert_eq!(undone.binding_state, Some(json!({ "bound": "b" })));
    })
    .await;
}

/// Holds: B-241.
#[tokio::test]
async fn the_leftovers_of_a_failed_bind_can_be_deleted() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        kit.script.fails(OperationKind::Bind, "Half way.");
        kit.bind("i", "b").plan(LARGE).send().await.is(500);
        kit.unbind("i", "b").plan(LARGE).send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
        kit.unbind("i", "b").plan(LARGE).send().await.is(410);
    })
    .await;
}
