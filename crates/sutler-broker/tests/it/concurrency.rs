//! Concurrent operations (checklist 1.8).

use crate::fixture::on_each_store;
use serde_json::json;
use sutler_osb::OperationKind;

/// Holds: B-090, B-091, B-126, B-168, B-188.
#[tokio::test]
async fn while_an_instance_is_created_only_the_same_request_and_a_delete_are_accepted() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let operation = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        gate.reached().await;
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        patch.send().await.refused_as("ConcurrencyError");
        let bind = kit.bind("i", "b").accepts_incomplete();
        bind.send().await.refused_as("ConcurrencyError");
        kit.provision("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(409);
        let polled = kit.poll("i").operation(&operation).send().await.is(200);
        assert_eq!(polled.json["state"], "in progress");
        gate.open();
        let polled = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(polled.json["state"], "succeeded");
        assert!(kit.script.calls(OperationKind::Bind).is_empty());
    })
    .await;
}

/// Holds: B-091, B-168, B-188, B-244, B-254.
#[tokio::test]
async fn while_an_instance_is_updated_everything_else_must_wait() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").parameters(json!({ "a": 1 }));
        patch.accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let busy = [
            kit.update("i").parameters(json!({ "a": 2 })),
            kit.update("i")
                .parameters(json!({ "a": 2 }))
                .accepts_incomplete(),
            kit.provision("i"),
            kit.deprovision("i"),
            kit.deprovision("i").accepts_incomplete(),
            kit.bind("i", "c"),
            kit.bind("i", "c").accepts_incomplete(),
            kit.unbind("i", "b"),
            kit.unbind("i", "b").accepts_incomplete(),
        ];
        for request in busy {
            let reply = request.send().await.refused_as("ConcurrencyError");
            assert!(reply.description().contains("wait"), "{}", reply.text);
        }
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        assert_eq!(
            kit.fetch("i").send().await.is(200).json["parameters"],
            json!({ "a": 1 })
        );
        kit.fetch_binding("i", "b").send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Update).len(), 1);
    })
    .await;
}

/// Holds: B-091, B-168, B-188.
#[tokio::test]
async fn while_an_instance_is_deleted_everything_but_the_delete_must_wait() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Deprovision);
        kit.deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .is(202);
        gate.reached().await;
        let busy = [
            kit.provision("i"),
            kit.update("i").parameters(json!({ "a": 1 })),
            kit.bind("i", "b"),
            kit.fetch("i"),
        ];
        for request in busy {
            request.send().await.refused_as("ConcurrencyError");
        }
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        kit.provision("i").send().await.is(201);
    })
    .await;
}

/// Holds: B-091, B-186, B-188, B-244.
#[tokio::test]
async fn while_a_binding_is_deleted_it_cannot_be_created() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        let gate = kit.script.hold(OperationKind::Unbind);
        kit.unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .is(202);
        gate.reached().await;
        kit.bind("i", "b")
            .send()
            .await
            .refused_as("ConcurrencyError");
        kit.fetch_binding("i", "b").send().await.is(404);
        gate.open();
        kit.poll_until_done(kit.poll_binding("i", "b")).await;
        kit.bind("i", "b").send().await.is(201);
    })
    .await;
}

/// Holds: B-088, B-090, B-092.
#[tokio::test]
async fn bindings_of_one_instance_are_created_concurrently() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        let mut operations = Vec::new();
        for binding in ["a", "b", "c"] {
            let bind = kit.bind("i", binding).accepts_incomplete();
            operations.push((binding, bind.send().await.operation()));
        }
        gate.reached_by(3).await;
        gate.open();
        for (binding, operation) in operations {
            let poll = kit.poll_binding("i", binding).operation(&operation);
            assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
            let fetched = kit.fetch_binding("i", binding).send().await.is(200);
            assert_eq!(fetched.json["credentials"]["user"], binding);
        }
    })
    .await;
}

/// Holds: B-090, B-091, B-188.
#[tokio::test]
async fn an_update_waits_until_no_binding_of_its_instance_has_an_operation() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "b").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        let operation = patch.send().await.operation();
        kit.bind("i", "c")
            .send()
            .await
            .refused_as("ConcurrencyError");
        assert!(kit.script.calls(OperationKind::Update).is_empty());
        gate.open();
        let polled = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(polled.json["state"], "succeeded");
        kit.fetch_binding("i", "b").send().await.is(200);
    })
    .await;
}

/// Holds: B-082, B-087, B-091.
#[tokio::test]
async fn one_of_many_equal_concurrent_requests_is_carried_out() {
    on_each_store(async |kit| {
        let puts: Vec<_> = (0..20).map(|_| kit.provision("i").start()).collect();
        let mut created = 0;
        for put in puts {
            let reply = put.await.expect("answered");
            assert!([200, 201].contains(&reply.status), "{}", reply.text);
            created += usize::from(reply.status == 201);
        }
        assert_eq!(
            (created, kit.script.calls(OperationKind::Provision).len()),
            (1, 1)
        );
        let deletes: Vec<_> = (0..20).map(|_| kit.deprovision("i").start()).collect();
        for delete in deletes {
            let reply = delete.await.expect("answered");
            assert!([200, 410].contains(&reply.status), "{}", reply.text);
        }
        assert_eq!(kit.script.calls(OperationKind::Deprovision).len(), 1);
    })
    .await;
}

/// Holds: B-126.
#[tokio::test]
async fn one_of_two_different_concurrent_requests_for_one_id_wins_and_the_other_conflicts() {
    on_each_store(async |kit| {
        for nth in 0..10 {
            let id = format!("i{nth}");
            let one = kit.provision(&id).parameters(json!({ "a": 1 })).start();
            let two = kit.provision(&id).parameters(json!({ "a": 2 })).start();
            let mut statuses = [one.await, two.await].map(|it| it.expect("answered").status);
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 409]);
        }
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 10);
    })
    .await;
}
