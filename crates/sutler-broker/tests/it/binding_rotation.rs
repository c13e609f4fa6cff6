//! Rotation: a bind that succeeds another (checklist 1.15).

use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::{LARGE, SMALL};
use crate::fixture::{Fixture, on_each_store};
use serde_json::json;
use sutler_broker::Bound;
use sutler_osb::{BindingMetadata, OperationKind, UtcTime};

/// A rotation as specified: only the predecessor.
fn rotate(kit: &Fixture, binding: &str, predecessor: &str) -> RequestBuilder {
    kit.bind("i", binding)
        .fields(json!({ "predecessor_binding_id": predecessor }))
}

async fn has_binding(kit: &Fixture) {
    kit.has_instance_of("i", LARGE).await;
    let bind = kit
        .bind("i", "old")
        .plan(LARGE)
        .parameters(json!({ "size": 4 }));
    bind.with("bind_resource", json!({ "app_guid": "app" }))
        .send()
        .await
        .is(201);
}

/// Holds: B-200, B-201, B-202, B-203.
#[tokio::test]
async fn a_rotation_makes_a_new_binding_with_the_parameters_of_the_old_one_which_stays() {
    on_each_store(async |kit| {
        has_binding(kit).await;
        let old = kit.fetch_binding("i", "old").send().await.is(200).json;
        let new = rotate(kit, "new", "old").send().await.is(201);
        assert_ne!(new.json["credentials"], old["credentials"]);
        let call = kit
            .script
            .calls(OperationKind::Bind)
            .pop()
            .expect("a rotation");
        assert_eq!(
            call.predecessor,
            Some(("old".to_owned(), Some(json!({ "bound": "old" }))))
        );
        assert_eq!(
            (call.parameters, call.app.as_deref()),
            (json!({ "size": 4 }), Some("app"))
        );
        assert_eq!(kit.fetch_binding("i", "old").send().await.is(200).json, old);
        let fetched = kit.fetch_binding("i", "new").send().await.is(200).json;
        assert_eq!(fetched["parameters"], json!({ "size": 4 }));
        kit.unbind("i", "old").plan(LARGE).send().await.is(200);
        kit.fetch_binding("i", "new").send().await.is(200);
    })
    .await;
}

/// Holds: B-201.
#[tokio::test]
async fn service_and_plan_may_be_named_or_left_out() {
    on_each_store(async |kit| {
        has_binding(kit).await;
        let named = kit
            .bind("i", "named")
            .plan(LARGE)
            .with("predecessor_binding_id", "old");
        named.send().await.is(201);
        rotate(kit, "bare", "old").send().await.is(201);
        let other = kit
            .bind("i", "other")
            .only_plan(SMALL)
            .with("predecessor_binding_id", "old");
        other.send().await.is(400);
    })
    .await;
}

/// Holds: B-200.
#[tokio::test]
async fn a_plan_that_does_not_rotate_refuses() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "old").await;
        rotate(kit, "new", "old").send().await.is(400);
        let named = kit.bind("i", "new").with("predecessor_binding_id", "old");
        named.send().await.is(400);
        kit.fetch_binding("i", "new").send().await.is(404);
        assert_eq!(kit.script.calls(OperationKind::Bind).len(), 1);
    })
    .await;
}

/// Holds: B-201.
#[tokio::test]
async fn a_predecessor_must_be_an_existing_binding_of_the_same_instance() {
    on_each_store(async |kit| {
        has_binding(kit).await;
        rotate(kit, "new", "missing").send().await.is(400);
        rotate(kit, "new", "new").send().await.is(400);
        kit.has_instance_of("j", LARGE).await;
        kit.bind("j", "foreign").plan(LARGE).send().await.is(201);
        rotate(kit, "new", "foreign").send().await.is(400);
        kit.bind("i", "gone").plan(LARGE).send().await.is(201);
        kit.unbind("i", "gone").plan(LARGE).send().await.is(200);
        rotate(kit, "new", "gone").send().await.is(400);
        kit.script.fails(OperationKind::Bind, "No.");
        kit.bind("i", "failed").plan(LARGE).send().await.is(500);
        rotate(kit, "new", "failed").send().await.is(400);
        kit.script.succeeds(OperationKind::Bind);
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "slow")
            .plan(LARGE)
            .accepts_incomplete()
            .send()
            .await
            .is(202);
        rotate(kit, "new", "slow").send().await.is(400);
        gate.open();
        kit.poll_until_done(kit.poll_binding("i", "slow")).await;
        kit.fetch_binding("i", "new").send().await.is(404);
    })
    .await;
}

/// Holds: B-201.
#[tokio::test]
async fn a_predecessor_that_has_expired_cannot_be_succeeded() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        for (binding, expires, status) in
            [("past", 1_000_000_000, 400), ("future", 4_000_000_000, 201)]
        {
            kit.script.gives(move |_| {
                let at = UtcTime::from_epoch(expires, 0).expect("a time");
                let metadata = BindingMetadata::new(Some(at), None).expect("metadata");
                Bound::credentials(json!({})).metadata(metadata)
            });
            kit.bind("i", binding).plan(LARGE).send().await.is(201);
            rotate(kit, &format!("after-{binding}"), binding)
                .send()
                .await
                .is(status);
        }
    })
    .await;
}

/// Holds: B-183, B-186, B-202, B-203.
#[tokio::test]
async fn a_repeated_rotation_is_200_even_after_its_predecessor_is_deleted_and_another_is_409() {
    on_each_store(async |kit| {
        has_binding(kit).await;
        kit.bind("i", "older")
            .plan(LARGE)
            .parameters(json!({ "size": 4 }))
            .send()
            .await
            .is(201);
        let new = rotate(kit, "new", "old").send().await.is(201);
        assert_eq!(
            rotate(kit, "new", "old").send().await.is(200).json,
            new.json
        );
        rotate(kit, "new", "older").send().await.is(409);
        kit.bind("i", "new")
            .plan(LARGE)
            .parameters(json!({ "size": 4 }))
            .send()
            .await
            .is(409);
        kit.unbind("i", "old").plan(LARGE).send().await.is(200);
        assert_eq!(
            rotate(kit, "new", "old").send().await.is(200).json,
            new.json
        );
        rotate(kit, "newer", "new").send().await.is(201);
    })
    .await;
}

/// Holds: B-087, B-184, B-202, B-203, B-232.
#[tokio::test]
async fn a_rotation_can_be_asynchronous() {
    on_each_store(async |kit| {
        has_binding(kit).await;
        let gate = kit.script.hold(OperationKind::Bind);
        let request = rotate(kit, "new", "old").accepts_incomplete();
        let operation = request.clone().send().await.operation();
        gate.reached().await;
        assert_eq!(request.send().await.operation(), operation);
        kit.fetch_binding("i", "new").send().await.is(404);
        kit.fetch_binding("i", "old").send().await.is(200);
        gate.open();
        let done = kit
            .poll_until_done(kit.poll_binding("i", "new").operation(&operation))
            .await;
        assert_eq!(done.json["state"], "succeeded");
        kit.fetch_binding("i", "new").send().await.is(200);
    })
    .await;
}

/// Holds: D-12.
#[tokio::test]
async fn a_rotation_on_an_unknown_instance_is_404() {
    on_each_store(async |kit| {
        rotate(kit, "new", "old").send().await.is(404);
    })
    .await;
}
