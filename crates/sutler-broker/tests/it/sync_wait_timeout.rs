//! Requests that exceed their time limit for synchronous results.

use crate::fixture::{Fixture, on_each_store_with};
use serde_json::json;
use std::time::Duration;
use sutler_broker::Broker;
use sutler_osb::OperationKind;

/// Time limit of waiting requests.
const WAIT: Duration = Duration::from_millis(30);

fn impatient(broker: Broker) -> Broker {
    broker.settings(|settings| settings.sync_wait = WAIT)
}

fn patient_then_impatient(broker: Broker) -> Broker {
    broker.settings(|settings| settings.sync_wait = Duration::from_millis(400))
}

async fn has_instance(kit: &Fixture, id: &str) {
    let done = kit.finish(id, kit.provision(id).accepts_incomplete()).await;
    assert_eq!(done.json["state"], "succeeded");
}

/// Holds: B-036, B-258.
#[tokio::test]
async fn a_create_that_takes_too_long_is_500_cancelled_and_cleaned_up() {
    on_each_store_with(impatient, async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let reply = kit.provision("i").send().await.is(500);
        assert!(reply.description().contains("accepts_incomplete=true"));
        assert_eq!(
            kit.poll_until_done(kit.poll("i")).await.json["state"],
            "succeeded"
        );
        kit.fetch("i").send().await.is(404);
        assert_eq!(kit.script.calls(OperationKind::Deprovision).len(), 1);
        gate.open();
        kit.deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .is(410);
        has_instance(kit, "i").await;
    })
    .await;
}

/// Holds: B-036, B-091, B-251, B-255.
#[tokio::test]
async fn a_create_that_will_not_stop_still_never_becomes_an_instance() {
    on_each_store_with(impatient, async |kit| {
        let gate = kit.script.hold_uncancellable(OperationKind::Provision);
        kit.provision("i").send().await.is(500);
        kit.provision("i")
            .accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        assert!(
            kit.script.calls(OperationKind::Deprovision).is_empty(),
            "it waits for the create"
        );
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        kit.fetch("i").send().await.is(404);
        // The late result of the create is passed to the deprovision.
        let removed = kit.script.only_call(OperationKind::Deprovision);
        assert_eq!(
            removed.state,
            Some(json!({ "made": "i", "by": "provision" }))
        );
    })
    .await;
}

/// Holds: B-036.
#[tokio::test]
async fn a_bind_that_takes_too_long_is_500_cancelled_and_cleaned_up() {
    on_each_store_with(impatient, async |kit| {
        has_instance(kit, "i").await;
        let gate = kit.script.hold(OperationKind::Bind);
        kit.bind("i", "b").send().await.is(500);
        assert_eq!(
            kit.poll_until_done(kit.poll_binding("i", "b")).await.json["state"],
            "succeeded"
        );
        kit.fetch_binding("i", "b").send().await.is(404);
        assert_eq!(kit.script.calls(OperationKind::Unbind).len(), 1);
        gate.open();
        let again = kit.bind("i", "b").accepts_incomplete();
        assert_eq!(
            kit.finish_binding("i", "b", again).await.json["state"],
            "succeeded"
        );
    })
    .await;
}

/// Holds: B-037, B-091, B-168, B-169.
#[tokio::test]
async fn an_update_that_takes_too_long_is_500_and_never_applied() {
    on_each_store_with(impatient, async |kit| {
        has_instance(kit, "i").await;
        let before = kit.fetch("i").send().await.is(200).json;
        let gate = kit.script.hold_uncancellable(OperationKind::Update);
        let patch = kit.update("i").parameters(json!({ "a": 1 }));
        let reply = patch.clone().send().await.is(500);
        assert!(reply.description().contains("nothing of it is applied"));
        patch
            .accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
        kit.poll_until_done(kit.poll("i")).await;
        assert_eq!(kit.fetch("i").send().await.is(200).json, before);
    })
    .await;
}

/// Holds: B-100, B-169.
#[tokio::test]
async fn an_abandoned_update_is_reported_as_failed() {
    on_each_store_with(impatient, async |kit| {
        has_instance(kit, "i").await;
        let gate = kit.script.hold_uncancellable(OperationKind::Update);
        kit.update("i")
            .parameters(json!({ "a": 1 }))
            .send()
            .await
            .is(500);
        gate.open();
        let polled = kit.poll_until_done(kit.poll("i")).await;
        assert_eq!(polled.json["state"], "failed", "{}", polled.text);
    })
    .await;
}

/// Holds: B-082, B-087, B-091, B-242, B-252.
#[tokio::test]
async fn a_delete_that_takes_too_long_is_500_and_continues_and_a_repeat_joins_it() {
    on_each_store_with(impatient, async |kit| {
        has_instance(kit, "i").await;
        let bind = kit.bind("i", "b").accepts_incomplete();
        kit.finish_binding("i", "b", bind).await;
        let gate = kit.script.hold(OperationKind::Unbind);
        kit.unbind("i", "b").send().await.is(500);
        let operation = kit
            .unbind("i", "b")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        gate.open();
        let done = kit
            .poll_until_done(kit.poll_binding("i", "b").operation(&operation))
            .await;
        assert_eq!(done.json["state"], "succeeded");
        let gate = kit.script.hold(OperationKind::Deprovision);
        kit.deprovision("i").send().await.is(500);
        let operation = kit
            .deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        kit.deprovision("i")
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
        let done = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(done.json["state"], "succeeded");
        assert_eq!(kit.script.calls(OperationKind::Deprovision).len(), 1);
    })
    .await;
}

/// Holds: B-082, B-087, B-091.
#[tokio::test]
async fn a_joining_request_that_waits_too_long_cancels_nothing() {
    on_each_store_with(patient_then_impatient, async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let operation = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        kit.provision("i")
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
        let done = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(done.json["state"], "succeeded");
    })
    .await;
}

/// Holds: B-037.
#[tokio::test]
async fn an_update_that_ends_near_the_time_limit_matches_its_answer() {
    on_each_store_with(impatient, async |kit| {
        has_instance(kit, "i").await;
        for nth in 0..25 {
            let gate = kit.script.hold_uncancellable(OperationKind::Update);
            let request = kit.update("i").parameters(json!({ "nth": nth })).start();
            gate.reached().await;
            // Open the gate at about the time limit of the request.
            let _ = tokio::time::timeout(WAIT, std::future::pending::<()>()).await;
            gate.open();
            let reply = request.await.expect("answered");
            kit.poll_until_done(kit.poll("i")).await;
            let there = kit.fetch("i").send().await.is(200).json["parameters"]["nth"] == nth;
            assert_eq!(there, reply.status == 200, "{nth}: {}", reply.text);
        }
    })
    .await;
}
