//! Last operation of instances and bindings (checklist 1.9 and 1.10).

use crate::fixture::request::{Reply, RequestBuilder};
use crate::fixture::test_catalog::{LARGE, SMALL};
use crate::fixture::{Fixture, on_each_store, on_each_store_with};
use serde_json::json;
use std::time::Duration;
use sutler_broker::{Broker, DeletedPoll, Error, Policy, Schedule};
use sutler_osb::OperationKind;

/// Holds: B-100, B-101, B-110.
#[tokio::test]
async fn a_poll_is_in_progress_then_succeeded_or_failed() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let operation = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        for poll in [kit.poll("i"), kit.poll("i").operation(&operation)] {
            let reply = poll.send().await.is(200);
            assert_eq!(reply.json, json!({ "state": "in progress" }));
        }
        gate.open();
        let done = kit.poll_until_done(kit.poll("i")).await.is(200);
        assert_eq!(done.json, json!({ "state": "succeeded" }));
        kit.script.fails(OperationKind::Bind, "No more users.");
        let bind = kit.bind("i", "b").accepts_incomplete();
        let done = kit.finish_binding("i", "b", bind).await.is(200);
        assert_eq!(
            done.json,
            json!({ "state": "failed", "description": "No more users." })
        );
    })
    .await;
}

/// A failure with both fields, whether allowed or not.
fn failure_with_both_flags() -> sutler_broker::Result<()> {
    Err(Error::failed("It broke.")
        .instance_usable(false)
        .update_repeatable(false))
}

/// Holds: B-102, B-110, B-169, B-257.
#[tokio::test]
async fn usable_and_repeatable_are_polled_only_for_operations_that_allow_them() {
    on_each_store(async |kit| {
        for verb in OperationKind::ALL {
            kit.script.ends(verb, failure_with_both_flags);
        }
        let plain = json!({ "state": "failed", "description": "It broke." });
        let of_instance = async |request: RequestBuilder| {
            kit.finish("i", request.accepts_incomplete()).await.json
        };
        let of_binding = async |request: RequestBuilder| {
            kit.finish_binding("i", "b", request.accepts_incomplete())
                .await
                .json
        };
        assert_eq!(of_instance(kit.provision("i")).await, plain);
        kit.script.succeeds(OperationKind::Provision);
        kit.has_instance("i").await;
        let patched = of_instance(kit.update("i").parameters(json!({ "a": 1 }))).await;
        let both = json!({ "state": "failed", "description": "It broke.",
            "instance_usable": false, "update_repeatable": false });
        assert_eq!(patched, both);
        assert_eq!(of_binding(kit.bind("i", "b")).await, plain);
        kit.script.succeeds(OperationKind::Bind);
        kit.has_binding("i", "b").await;
        assert_eq!(of_binding(kit.unbind("i", "b")).await, plain);
        kit.script.succeeds(OperationKind::Unbind);
        let deleted = of_instance(kit.deprovision("i")).await;
        let usable =
            json!({ "state": "failed", "description": "It broke.", "instance_usable": false });
        assert_eq!(deleted, usable);
    })
    .await;
}

/// Holds: B-086, B-103, B-110, B-156.
#[tokio::test]
async fn an_empty_or_overlong_query_value_is_malformed() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let requests = [
            kit.poll("i"),
            kit.poll_binding("i", "b"),
            kit.fetch("i"),
            kit.fetch_binding("i", "b"),
        ];
        for request in requests {
            for key in ["operation", "service_id", "plan_id"] {
                request.clone().query(key, "").send().await.is(400);
                request.clone().raw_query(key, "%FF").send().await.is(400);
            }
            request
                .clone()
                .operation(&"x".repeat(10_001))
                .send()
                .await
                .is(400);
            request.operation(&"x".repeat(10_000)).send().await.is(200);
        }
    })
    .await;
}

/// Holds: B-104, B-111, D-13.
#[tokio::test]
async fn an_unknown_resource_cannot_be_polled() {
    on_each_store(async |kit| {
        kit.poll("i").send().await.is(404);
        kit.poll("i").operation("provision").send().await.is(404);
        kit.poll_binding("i", "b").send().await.is(404);
        kit.has_instance("i").await;
        kit.poll_binding("i", "b").send().await.is(404);
    })
    .await;
}

/// Holds: B-105, B-106, B-112, D-02.
#[tokio::test]
async fn a_finished_delete_is_succeeded_every_time_and_never_unknown() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let gate = kit.script.hold(OperationKind::Unbind);
        let unbind = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let poll = kit.poll_binding("i", "b").operation(&unbind);
        assert_eq!(
            poll.clone().send().await.is(200).json["state"],
            "in progress"
        );
        gate.open();
        for _ in 0..3 {
            let done = kit.poll_until_done(poll.clone()).await.is(200);
            assert_eq!(done.json["state"], "succeeded");
            kit.poll_binding("i", "b").send().await.is(200);
        }
        let delete = kit
            .deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        for _ in 0..3 {
            let done = kit
                .poll_until_done(kit.poll("i").operation(&delete))
                .await
                .is(200);
            assert_eq!(done.json["state"], "succeeded");
            kit.poll("i").send().await.is(200);
        }
        kit.deprovision("i").send().await.is(410);
    })
    .await;
}

/// Holds: B-105, B-112, D-02.
#[tokio::test]
async fn a_finished_delete_is_410_where_that_is_set_and_no_other_operation_is() {
    let gone = |broker: Broker| broker.settings(|it| it.deleted_poll = DeletedPoll::Gone);
    on_each_store_with(gone, async |kit| {
        let done = kit
            .finish("i", kit.provision("i").accepts_incomplete())
            .await
            .is(200);
        assert_eq!(done.json["state"], "succeeded");
        let bind = kit.bind("i", "b").accepts_incomplete();
        kit.finish_binding("i", "b", bind).await.is(200);
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        kit.finish("i", patch).await.is(200);
        let gate = kit.script.hold(OperationKind::Unbind);
        let unbind = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let poll = kit.poll_binding("i", "b").operation(&unbind);
        assert_eq!(
            poll.clone().send().await.is(200).json["state"],
            "in progress"
        );
        gate.open();
        kit.poll_until_done(poll).await.is(410);
        kit.script.fails(OperationKind::Deprovision, "No.");
        let failed = kit
            .finish("i", kit.deprovision("i").accepts_incomplete())
            .await
            .is(200);
        assert_eq!(failed.json["state"], "failed");
        kit.script.succeeds(OperationKind::Deprovision);
        kit.finish("i", kit.deprovision("i").accepts_incomplete())
            .await
            .is(410);
        kit.poll("i").send().await.is(410);
    })
    .await;
}

/// Holds: B-105, B-112, D-02.
#[tokio::test]
async fn once_its_operation_is_cleaned_up_a_deleted_id_is_410_and_never_404() {
    let tidy = |broker: Broker| {
        broker.settings(|settings| {
            let every_second = Schedule::parse("* * * * * *").expect("a schedule");
            for kind in [&mut settings.instances, &mut settings.bindings] {
                kind.cleanup.age = Duration::ZERO;
                kind.cleanup.all = Some(every_second.clone());
            }
        })
    };
    on_each_store_with(tidy, async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let unbind = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let poll = kit.poll_binding("i", "b").operation(&unbind);
        kit.until("the unbind is cleaned up", async || {
            polled(&poll).await.status == 410
        })
        .await;
        let delete = kit
            .deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let poll = kit.poll("i").operation(&delete);
        kit.until("the delete is cleaned up", async || {
            polled(&poll).await.status == 410
        })
        .await;
        kit.poll("i").send().await.is(410);
    })
    .await;
}

async fn polled(poll: &RequestBuilder) -> Reply {
    let reply = poll.clone().send().await;
    assert_ne!(reply.status, 404, "{}", reply.text);
    reply
}

/// Holds: B-106, B-110.
#[tokio::test]
async fn an_earlier_operation_can_still_be_polled() {
    on_each_store(async |kit| {
        kit.script.fails(OperationKind::Provision, "First.");
        let first = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        kit.poll_until_done(kit.poll("i")).await;
        kit.script.succeeds(OperationKind::Provision);
        kit.finish("i", kit.provision("i").accepts_incomplete())
            .await;
        for _ in 0..2 {
            let earlier = kit.poll("i").operation(&first).send().await.is(200);
            assert_eq!(
                earlier.json,
                json!({ "state": "failed", "description": "First." })
            );
            assert_eq!(kit.poll("i").send().await.json["state"], "succeeded");
        }
    })
    .await;
}

/// Holds: B-107, B-110.
#[tokio::test]
async fn a_poll_has_retry_after_while_the_operation_runs() {
    on_each_store(async |kit| {
        let slow = Policy {
            retry_after: Some(Duration::from_secs(7)),
            ..Policy::default()
        };
        for verb in OperationKind::ALL {
            kit.script.policy(verb, slow.clone());
        }
        let gate = kit.script.hold(OperationKind::Provision);
        kit.provision("i").accepts_incomplete().send().await.is(202);
        assert_eq!(
            kit.poll("i").send().await.is(200).header("Retry-After"),
            "7"
        );
        gate.open();
        let done = kit.poll_until_done(kit.poll("i")).await;
        assert_eq!(done.header("Retry-After"), "");
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "b").accepts_incomplete().send().await.is(202);
        assert_eq!(
            kit.poll_binding("i", "b")
                .send()
                .await
                .is(200)
                .header("Retry-After"),
            "7"
        );
        gate.open();
    })
    .await;
}

/// Holds: B-108, D-08.
#[tokio::test]
async fn hints_decide_nothing_and_an_unknown_operation_means_the_latest() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_instance("other").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").plan(LARGE).accepts_incomplete();
        let operation = patch.send().await.operation();
        let foreign = kit
            .provision("j")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let words = [
            "provision",
            "update",
            "deprovision",
            "0",
            "ä/ö",
            foreign.as_str(),
        ];
        for word in words {
            let poll = kit.poll("i").operation(word).send().await.is(200);
            assert_eq!(poll.json["state"], "in progress", "{word}");
        }
        // After a plan change the platform sends the plan from before.
        for plan in [SMALL, LARGE, "unknown"] {
            let poll = kit
                .poll("i")
                .operation(&operation)
                .service("db-id")
                .only_plan(plan);
            assert_eq!(poll.send().await.is(200).json["state"], "in progress");
        }
        gate.open();
        kit.poll_until_done(kit.poll("i").operation("update")).await;
    })
    .await;
}

/// Holds: B-113, B-150, B-230.
#[tokio::test]
async fn a_created_resource_can_be_fetched_at_once() {
    on_each_store(async |kit| {
        for nth in 0..10 {
            let id = format!("i{nth}");
            kit.finish(&id, kit.provision(&id).accepts_incomplete())
                .await
                .is(200);
            kit.fetch(&id).send().await.is(200);
            bound_and_fetched(kit, &id).await;
        }
    })
    .await;
}

async fn bound_and_fetched(kit: &Fixture, id: &str) {
    let bind = kit.bind(id, "b").accepts_incomplete();
    kit.finish_binding(id, "b", bind).await.is(200);
    let fetched = kit.fetch_binding(id, "b").send().await.is(200);
    assert!(fetched.json["credentials"]["password"].is_string());
}
