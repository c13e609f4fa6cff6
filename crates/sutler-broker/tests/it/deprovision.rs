//! Deprovision (checklist 1.18).

use crate::fixture::test_catalog::{ASYNC, DB, PLAIN, SMALL};
use crate::fixture::{Fixture, on_each_store, on_each_store_with};
use base64::Engine as _;
use serde_json::json;
use sutler_broker::{Broker, Error};
use sutler_osb::OperationKind;

/// Holds: B-250.
#[tokio::test]
async fn service_and_plan_must_be_named() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        for field in ["service_id", "plan_id"] {
            for id in ["i", "unknown"] {
                let reply = kit.deprovision(id).without(field).send().await.is(400);
                assert!(reply.description().contains(field), "{}", reply.text);
                kit.deprovision(id)
                    .without(field)
                    .query(field, "")
                    .send()
                    .await
                    .is(400);
            }
        }
        kit.deprovision("i").service(PLAIN).send().await.is(400);
        kit.fetch("i").send().await.is(200);
    })
    .await;
}

/// Holds: B-108, D-07.
#[tokio::test]
async fn a_query_parameter_may_be_repeated() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let twice = |request: crate::fixture::request::RequestBuilder| {
            request
                .query("service_id", DB)
                .query("plan_id", SMALL)
                .query("service_id", DB)
        };
        twice(kit.fetch("i")).send().await.is(200);
        twice(kit.poll("i"))
            .operation("x")
            .operation("x")
            .send()
            .await
            .is(200);
        let unbind = twice(kit.unbind("i", "b"))
            .accepts_incomplete()
            .accepts_incomplete();
        unbind.send().await.is(202);
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        twice(kit.deprovision("i")).send().await.is(200);
    })
    .await;
}

/// Holds: B-251, B-252.
#[tokio::test]
async fn a_deprovision_gets_the_stored_data_of_the_instance() {
    on_each_store(async |kit| {
        kit.provision("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(201);
        kit.update("i")
            .parameters(json!({ "b": 2 }))
            .send()
            .await
            .is(200);
        assert_eq!(kit.deprovision("i").send().await.is(200).text, "{}");
        let call = kit.script.only_call(OperationKind::Deprovision);
        assert_eq!(call.state, Some(json!({ "made": "i", "by": "update" })));
        assert_eq!(call.parameters, json!({ "a": 1, "b": 2 }));
        kit.fetch("i").send().await.is(404);
        kit.bind("i", "b").send().await.is(404);
    })
    .await;
}

/// Holds: B-253, D-13.
#[tokio::test]
async fn deleting_an_unknown_instance_is_410() {
    on_each_store(async |kit| {
        kit.deprovision("i").send().await.is(410);
        kit.deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .is(410);
        kit.deprovision("i")
            .service("unknown")
            .only_plan("unknown")
            .send()
            .await
            .is(410);
        kit.has_instance("i").await;
        kit.deprovision("i").send().await.is(200);
        let reply = kit.deprovision("i").send().await.is(410);
        assert!(reply.json.is_object());
        assert_eq!(kit.script.calls(OperationKind::Deprovision).len(), 1);
    })
    .await;
}

/// Holds: B-243, B-253.
#[tokio::test]
async fn an_unknown_instance_is_deleted_where_that_is_set() {
    let force = |broker: Broker| broker.settings(|it| it.instances.force_delete_unknown = true);
    on_each_store_with(force, async |kit| {
        assert_eq!(kit.deprovision("i").send().await.is(200).text, "{}");
        kit.deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .is(200);
        kit.has_instance("i").await;
        kit.deprovision("i").send().await.is(200);
        kit.deprovision("i").send().await.is(200);
        kit.unbind("i", "b").send().await.is(410);
        assert_eq!(kit.script.calls(OperationKind::Deprovision).len(), 1);
    })
    .await;
}

/// Holds: B-257, B-036.
#[tokio::test]
async fn a_deprovision_that_fails_leaves_the_instance_and_can_be_repeated() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let before = kit.fetch("i").send().await.is(200).json;
        let stuck = || Err(Error::failed("Disk busy.").instance_usable(true));
        kit.script.ends(OperationKind::Deprovision, stuck);
        let reply = kit.deprovision("i").send().await.is(500);
        assert_eq!(
            reply.json,
            json!({ "description": "Disk busy.", "instance_usable": true })
        );
        assert_eq!(kit.fetch("i").send().await.is(200).json, before);
        kit.bind("i", "b").send().await.is(201);
        kit.script.succeeds(OperationKind::Deprovision);
        kit.deprovision("i").send().await.is(200);
    })
    .await;
}

/// Holds: B-087, B-252, B-255.
#[tokio::test]
async fn a_delete_during_an_asynchronous_provision_halts_it_and_polls_show_the_delete() {
    on_each_store(async |kit| {
        let create_gate = kit.script.hold(OperationKind::Provision);
        let create = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        create_gate.reached().await;
        let delete_gate = kit.script.hold(OperationKind::Deprovision);
        let delete = kit
            .deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        assert_ne!(create, delete);
        assert_eq!(
            kit.deprovision("i")
                .accepts_incomplete()
                .send()
                .await
                .operation(),
            delete
        );
        delete_gate.reached().await;
        assert_eq!(
            kit.poll("i").send().await.is(200).json["state"],
            "in progress"
        );
        let halted = kit.poll("i").operation(&create).send().await.is(200);
        assert_eq!(halted.json["state"], "failed");
        assert_eq!(halted.json.get("instance_usable"), None);
        delete_gate.open();
        let done = kit.poll_until_done(kit.poll("i").operation(&delete)).await;
        assert_eq!(done.json["state"], "succeeded");
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

/// Holds: B-255.
#[tokio::test]
async fn a_delete_that_waits_for_its_result_halts_a_provision_too() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let waiting = kit.provision("i").start();
        gate.reached().await;
        kit.deprovision("i").send().await.is(200);
        let reply = waiting.await.expect("answered").is(500);
        assert_eq!(reply.json.get("dashboard_url"), None);
        kit.fetch("i").send().await.is(404);
        kit.deprovision("i").send().await.is(410);
        gate.open();
        kit.provision("i").send().await.is(201);
    })
    .await;
}

/// Holds: B-251, B-255.
#[tokio::test]
async fn a_provision_that_cannot_be_stopped_is_undone_with_its_state() {
    on_each_store(async |kit| {
        let gate = kit.script.hold_uncancellable(OperationKind::Provision);
        let create = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        gate.reached().await;
        let delete = kit.deprovision("i").start();
        kit.until("the delete is accepted", async || {
            kit.provision("i").accepts_incomplete().send().await.status == 422
        })
        .await;
        assert!(kit.script.calls(OperationKind::Deprovision).is_empty());
        gate.open();
        delete.await.expect("answered").is(200);
        let polled = kit.poll("i").operation(&create).send().await.is(200);
        assert_eq!(polled.json["state"], "failed");
        let undone = kit.script.only_call(OperationKind::Deprovision);
        assert_eq!(
            undone.state,
            Some(json!({ "made": "i", "by": "provision" }))
        );
    })
    .await;
}

/// Holds: B-005, B-256.
#[tokio::test]
async fn a_deprovision_removes_the_bindings_with_the_identity_of_its_user() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_instance("j").await;
        for binding in ["a", "b", "c"] {
            kit.has_binding("i", binding).await;
        }
        kit.has_binding("j", "a").await;
        let user = base64::engine::general_purpose::STANDARD.encode(r#"{"user_id":"u"}"#);
        let delete = kit.deprovision("i");
        let header = format!("cloudfoundry {user}");
        delete
            .header("X-Broker-API-Originating-Identity", &header)
            .send()
            .await
            .is(200);
        let unbound = kit.script.calls(OperationKind::Unbind);
        let mut ids: Vec<_> = unbound.iter().filter_map(|it| it.binding.clone()).collect();
        ids.sort();
        assert_eq!(ids, ["a", "b", "c"]);
        let user = json!({ "platform": "cloudfoundry", "value": { "user_id": "u" } });
        assert!(unbound.iter().all(|it| it.identity.as_ref() == Some(&user)));
        kit.fetch_binding("i", "a").send().await.is(404);
        kit.unbind("i", "a").send().await.is(410);
        kit.fetch_binding("j", "a").send().await.is(200);
        kit.has_instance("i").await;
        kit.bind("i", "a")
            .parameters(json!({ "new": 1 }))
            .send()
            .await
            .is(201);
    })
    .await;
}

/// Holds: B-256.
#[tokio::test]
async fn more_bindings_than_one_page_are_all_removed() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        for nth in 0..60 {
            kit.has_binding("i", &format!("b{nth}")).await;
        }
        kit.deprovision("i").send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 60);
    })
    .await;
}

/// Holds: B-256.
#[tokio::test]
async fn an_unbind_that_fails_fails_the_deprovision_names_the_binding_and_keeps_the_instance() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "stuck/one").await;
        kit.script.fails(OperationKind::Unbind, "In use.");
        let reply = kit.deprovision("i").send().await.is(500);
        assert!(reply.description().contains("stuck/one"), "{}", reply.text);
        assert_eq!(reply.json["instance_usable"], true);
        let polled = kit
            .finish("i", kit.deprovision("i").accepts_incomplete())
            .await
            .is(200);
        assert_eq!(polled.json["state"], "failed");
        assert!(
            polled.description().contains("stuck/one"),
            "{}",
            polled.text
        );
        assert!(kit.script.calls(OperationKind::Deprovision).is_empty());
        kit.fetch("i").send().await.is(200);
        kit.fetch_binding("i", "stuck/one").send().await.is(200);
        kit.bind("i", "another").send().await.is(201);
        kit.script.succeeds(OperationKind::Unbind);
        kit.deprovision("i").send().await.is(200);
    })
    .await;
}

/// Holds: B-091, B-188, B-245, B-255, B-256.
#[tokio::test]
async fn a_deprovision_halts_the_binds_of_its_instance() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        let waiting = kit.bind("i", "b").start();
        gate.reached().await;
        let delete = kit
            .deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        kit.bind("i", "c")
            .send()
            .await
            .refused_as("ConcurrencyError");
        let done = kit.poll_until_done(kit.poll("i").operation(&delete)).await;
        assert_eq!(done.json["state"], "succeeded");
        waiting.await.expect("answered").is(500);
        kit.fetch_binding("i", "b").send().await.is(404);
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
    })
    .await;
}

/// Holds: B-083, B-084, B-254, B-256.
#[tokio::test]
async fn a_plan_without_accepts_incomplete_removes_its_bindings_inline() {
    on_each_store(async |kit| {
        slow_instance(kit).await;
        kit.deprovision("i")
            .plan(ASYNC)
            .send()
            .await
            .refused_as("AsyncRequired");
        let delete = kit.deprovision("i").plan(ASYNC).accepts_incomplete();
        assert_eq!(kit.finish("i", delete).await.json["state"], "succeeded");
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
    })
    .await;
}

async fn slow_instance(kit: &Fixture) {
    kit.finish("i", kit.provision("i").plan(ASYNC).accepts_incomplete())
        .await;
    let bind = kit.bind("i", "b").plan(ASYNC).accepts_incomplete();
    kit.finish_binding("i", "b", bind).await;
}
