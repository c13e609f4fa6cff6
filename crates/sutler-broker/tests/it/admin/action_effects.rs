//! Effects of commands: hooks that run, answers to polls, and results that are no longer accepted.

use super::{audit_of, command, get, on_each};
use serde_json::json;
use std::time::Duration;
use sutler_broker::{Error, Policy};
use sutler_osb::OperationKind::{Bind, Deprovision, Provision, Unbind, Update};

#[tokio::test]
async fn a_failed_create_is_retried_with_its_request() {
    on_each(async |kit| {
        kit.script.fails(Provision, "no room");
        let request = kit.provision("i").parameters(json!({ "size": 7 }));
        let who = "cloudfoundry eyJ1c2VyX2lkIjoiZHVrZSJ9";
        let request = request.header("X-Broker-API-Originating-Identity", who);
        kit.finish("i", request.accepts_incomplete()).await;
        kit.script.succeeds(Provision);
        let reply = command(kit, "instances/i/retry").send().await.is(200);
        let operation = reply.json["audit"]["operation"].as_str().expect("an id");
        let done = kit
            .poll_until_done(kit.poll("i").operation(operation))
            .await;
        assert_eq!(done.json["state"], "succeeded");
        kit.fetch("i").send().await.is(200);
        let calls = kit.script.calls(Provision);
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].parameters, calls[0].parameters);
        assert_eq!(calls[1].identity, calls[0].identity);
        assert!(calls[1].identity.is_some());
    })
    .await;
}

#[tokio::test]
async fn a_failed_update_and_a_failed_delete_are_retried() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        kit.script.fails(Update, "not now");
        let update = kit.update("i").parameters(json!({ "size": 3 }));
        kit.finish("i", update.accepts_incomplete()).await;
        kit.script.succeeds(Update);
        command(kit, "instances/i/retry").send().await.is(200);
        kit.poll_until_done(kit.poll("i")).await;
        let fetched = kit.fetch("i").send().await.is(200);
        assert_eq!(fetched.json["parameters"]["size"], 3);
        kit.script.fails(Deprovision, "not now");
        kit.finish("i", kit.deprovision("i").accepts_incomplete())
            .await;
        kit.script.succeeds(Deprovision);
        command(kit, "instances/i/retry").send().await.is(200);
        kit.poll_until_done(kit.poll("i")).await;
        kit.fetch("i").send().await.is(404);
    })
    .await;
}

#[tokio::test]
async fn an_operation_that_waits_for_its_next_attempt_is_retried_at_once() {
    on_each(async |kit| {
        let policy = Policy {
            attempts_max: 3,
            backoff: Duration::from_secs(3600),
            ..Policy::default()
        };
        kit.script.policy(Provision, policy);
        kit.script
            .ends(Provision, || Err(Error::transient("busy elsewhere")));
        kit.provision("i").accepts_incomplete().send().await.is(202);
        kit.until("it waits for its next attempt", async || {
            get(kit, "instances/i").send().await.json["executing"]["state"] == "ready"
        })
        .await;
        kit.script.succeeds(Provision);
        command(kit, "instances/i/retry").send().await.is(200);
        let done = kit.poll_until_done(kit.poll("i")).await;
        assert_eq!(done.json["state"], "succeeded");
        assert_eq!(kit.script.calls(Provision).len(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_abandoned_operation_names_operator_and_reason_and_its_late_result_is_ignored() {
    on_each(async |kit| {
        let gate = kit.script.hold_uncancellable(Provision);
        let accepted = kit.provision("i").accepts_incomplete().send().await;
        gate.reached().await;
        command(kit, "instances/i/abandon").send().await.is(200);
        let polled = kit.poll("i").operation(&accepted.operation());
        let polled = polled.send().await.is(200);
        assert_eq!(polled.json["state"], "failed");
        assert!(polled.description().contains("Abandoned by"));
        assert!(polled.description().contains("because"));
        gate.open();
        kit.until("the run is dropped", async || {
            kit.running.operations_running() == 0
        })
        .await;
        let there = get(kit, "instances/i").send().await.is(200);
        assert_eq!(there.json["lifecycle"], "create_failed");
    })
    .await;
}

#[tokio::test]
async fn a_waiting_caller_gets_the_abandonment() {
    on_each(async |kit| {
        let gate = kit.script.hold_uncancellable(Provision);
        let waiting = kit.provision("i").start();
        gate.reached().await;
        command(kit, "instances/i/abandon").send().await.is(200);
        let answered = waiting.await.expect("an answer").is(500);
        assert!(answered.description().contains("Abandoned by"));
    })
    .await;
}

#[tokio::test]
async fn a_purge_calls_no_hook_removes_the_bindings_and_frees_the_id() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        for binding in ["a", "b", "c"] {
            kit.has_binding("i", binding).await;
        }
        let gate = kit.script.hold_uncancellable(Unbind);
        kit.unbind("i", "c")
            .accepts_incomplete()
            .send()
            .await
            .is(202);
        gate.reached().await;
        command(kit, "instances/i/purge").send().await.is(200);
        kit.poll("i").send().await.is(410);
        kit.fetch("i").send().await.is(404);
        kit.deprovision("i").send().await.is(410);
        let left = get(kit, "bindings").query("instance", "i").send().await;
        assert_eq!(left.json["items"], json!([]));
        assert!(kit.script.calls(Deprovision).is_empty());
        assert_eq!(kit.script.calls(Unbind).len(), 1, "only what ran before");
        assert_eq!(audit_of(kit, "i").await.len(), 4);
        kit.has_instance("i").await;
    })
    .await;
}

#[tokio::test]
async fn a_purged_binding_can_be_created_again_and_its_instance_stays() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        kit.has_binding("i", "b").await;
        command(kit, "bindings/i/b/purge").send().await.is(200);
        kit.poll_binding("i", "b").send().await.is(410);
        kit.fetch("i").send().await.is(200);
        assert!(kit.script.calls(Unbind).is_empty());
        kit.has_binding("i", "b").await;
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_create_is_cleaned_up_after() {
    on_each(async |kit| {
        let gate = kit.script.hold(Provision);
        kit.provision("i").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        command(kit, "instances/i/cancel").send().await.is(200);
        kit.poll_until_done(kit.poll("i")).await;
        kit.fetch("i").send().await.is(404);
        assert_eq!(kit.script.calls(Deprovision).len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_delete_that_waits_for_a_stuck_binding_can_be_cancelled() {
    on_each(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold_uncancellable(Bind);
        kit.bind("i", "b").accepts_incomplete().send().await.is(202);
        gate.reached().await;
        let accepted = kit.deprovision("i").accepts_incomplete().send().await;
        let operation = accepted.operation();
        command(kit, "instances/i/cancel").send().await.is(200);
        let done = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(done.json["state"], "failed");
        assert!(kit.script.calls(Deprovision).is_empty());
        kit.fetch("i").send().await.is(200);
    })
    .await;
}
