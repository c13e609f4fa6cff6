//! Synchronous and asynchronous answers (checklist 1.7).

use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::{ASYNC, BINDABLE, SMALL, SYNC};
use crate::fixture::{Fixture, on_each_store};
use serde_json::json;
use sutler_broker::{Error, Policy};
use sutler_osb::OperationKind;

/// Holds: B-080, B-081, B-121, B-162, B-182, B-242, B-252.
#[tokio::test]
async fn a_synchronous_answer_is_201_for_creates_and_200_for_the_rest() {
    on_each_store(async |kit| {
        for plan in [SMALL, SYNC] {
            let put = kit.provision(plan).plan(plan).send().await.is(201);
            assert_eq!(put.json.get("operation"), None);
            let patch = kit
                .update(plan)
                .parameters(json!({ "a": 1 }))
                .send()
                .await
                .is(200);
            assert_eq!(patch.json.get("operation"), None);
            let bind = kit.bind(plan, "b").plan(plan).send().await.is(201);
            assert!(bind.json["credentials"].is_object());
            assert_eq!(
                kit.unbind(plan, "b").plan(plan).send().await.is(200).text,
                "{}"
            );
            assert_eq!(
                kit.deprovision(plan).plan(plan).send().await.is(200).text,
                "{}"
            );
        }
    })
    .await;
}

/// Holds: B-082, B-085.
#[tokio::test]
async fn a_synchronous_plan_ignores_accepts_incomplete() {
    on_each_store(async |kit| {
        kit.provision("i")
            .plan(SYNC)
            .accepts_incomplete()
            .send()
            .await
            .is(201);
        let patch = kit
            .update("i")
            .parameters(json!({ "a": 1 }))
            .accepts_incomplete();
        patch.send().await.is(200);
        kit.bind("i", "b")
            .plan(SYNC)
            .accepts_incomplete()
            .send()
            .await
            .is(201);
        kit.unbind("i", "b")
            .plan(SYNC)
            .accepts_incomplete()
            .send()
            .await
            .is(200);
        kit.deprovision("i")
            .plan(SYNC)
            .accepts_incomplete()
            .send()
            .await
            .is(200);
    })
    .await;
}

/// Holds: B-082.
#[tokio::test]
async fn without_accepts_incomplete_there_is_never_a_202() {
    on_each_store(async |kit| {
        for word in ["false", ""] {
            let id = format!("i{word}");
            let request = |request: RequestBuilder| match word {
                "" => request,
                word => request.query("accepts_incomplete", word),
            };
            request(kit.provision(&id)).send().await.is(201);
            request(kit.update(&id).parameters(json!({ "a": 1 })))
                .send()
                .await
                .is(200);
            request(kit.bind(&id, "b")).send().await.is(201);
            request(kit.unbind(&id, "b")).send().await.is(200);
            request(kit.deprovision(&id)).send().await.is(200);
        }
    })
    .await;
}

/// Creates an instance and a binding of the plan that is always asynchronous.
async fn create_asynchronously(kit: &Fixture) {
    let put = kit.provision("i").plan(ASYNC).accepts_incomplete();
    assert_eq!(kit.finish("i", put).await.json["state"], "succeeded");
    let bind = kit.bind("i", "b").plan(ASYNC).accepts_incomplete();
    assert_eq!(
        kit.finish_binding("i", "b", bind).await.json["state"],
        "succeeded"
    );
}

/// Holds: B-083, B-084, B-127, B-166, B-188, B-244, B-254.
#[tokio::test]
async fn an_asynchronous_operation_is_refused_without_accepts_incomplete() {
    on_each_store(async |kit| {
        create_asynchronously(kit).await;
        let refused = [
            kit.provision("j").plan(ASYNC),
            kit.update("i").parameters(json!({ "a": 1 })),
            kit.bind("i", "c").plan(ASYNC),
            kit.unbind("i", "b").plan(ASYNC),
            kit.deprovision("i").plan(ASYNC),
        ];
        for request in refused {
            let reply = request.clone().send().await.refused_as("AsyncRequired");
            // Clients recognise the refusal by this sentence of the specification.
            assert_eq!(
                reply.description(),
                "This service plan requires client support for asynchronous service operations."
            );
            request
                .query("accepts_incomplete", "false")
                .send()
                .await
                .refused_as("AsyncRequired");
        }
        kit.fetch("j").send().await.is(404);
        kit.fetch_binding("i", "b").send().await.is(200);
    })
    .await;
}

/// Holds: B-084, B-086, B-122, B-163, B-184, B-242, B-252.
#[tokio::test]
async fn an_asynchronous_answer_is_202_with_its_operation() {
    on_each_store(async |kit| {
        for plan in [SMALL, ASYNC] {
            let put = kit
                .provision(plan)
                .plan(plan)
                .accepts_incomplete()
                .send()
                .await;
            assert!(!put.operation().is_empty());
            kit.poll_until_done(kit.poll(plan)).await;
            let patch = kit
                .update(plan)
                .parameters(json!({ "a": 1 }))
                .accepts_incomplete();
            assert!(!patch.send().await.operation().is_empty());
            kit.poll_until_done(kit.poll(plan)).await;
            let bind = kit
                .bind(plan, "b")
                .plan(plan)
                .accepts_incomplete()
                .send()
                .await;
            let keys: Vec<&String> = bind.json.as_object().expect("an object").keys().collect();
            assert_eq!(keys, ["operation"], "no credentials yet");
            kit.poll_until_done(kit.poll_binding(plan, "b")).await;
            let unbind = kit
                .unbind(plan, "b")
                .plan(plan)
                .accepts_incomplete()
                .send()
                .await;
            assert!(!unbind.operation().is_empty());
            kit.poll_until_done(kit.poll_binding(plan, "b")).await;
            let delete = kit
                .deprovision(plan)
                .plan(plan)
                .accepts_incomplete()
                .send()
                .await;
            assert!(!delete.operation().is_empty());
            kit.poll_until_done(kit.poll(plan)).await;
        }
    })
    .await;
}

/// Holds: B-087, B-088, B-122, B-163, B-184, B-242, B-252.
#[tokio::test]
async fn a_repeated_request_gets_202_with_the_same_operation_while_it_runs() {
    on_each_store(async |kit| {
        let requests = [
            (OperationKind::Provision, kit.provision("i")),
            (
                OperationKind::Update,
                kit.update("i").parameters(json!({ "a": 1 })),
            ),
            (OperationKind::Bind, kit.bind("i", "b")),
            (OperationKind::Unbind, kit.unbind("i", "b")),
            (OperationKind::Deprovision, kit.deprovision("i")),
        ];
        for (verb, request) in requests {
            let gate = kit.script.hold(verb);
            let request = request.accepts_incomplete();
            let first = request.clone().send().await.operation();
            gate.reached().await;
            for _ in 0..3 {
                assert_eq!(request.clone().send().await.operation(), first, "{verb:?}");
            }
            gate.open();
            let poll = match verb {
                OperationKind::Bind | OperationKind::Unbind => kit.poll_binding("i", "b"),
                _ => kit.poll("i"),
            };
            let done = kit.poll_until_done(poll.operation(&first)).await;
            assert_eq!(done.json["state"], "succeeded", "{verb:?}");
            assert_eq!(kit.script.calls(verb).len(), 1, "{verb:?} ran once");
        }
    })
    .await;
}

/// Holds: B-082, B-087.
#[tokio::test]
async fn a_repeated_synchronous_request_waits_and_gets_the_same_result() {
    on_each_store(async |kit| {
        let requests = [
            (OperationKind::Provision, kit.provision("i"), 201),
            (
                OperationKind::Update,
                kit.update("i").parameters(json!({ "a": 1 })),
                200,
            ),
            (OperationKind::Bind, kit.bind("i", "b"), 201),
            (OperationKind::Unbind, kit.unbind("i", "b"), 200),
            (OperationKind::Deprovision, kit.deprovision("i"), 200),
        ];
        for (verb, request, status) in requests {
            let gate = kit.script.hold(verb);
            let first = request.clone().start();
            gate.reached().await;
            let (second, third) = (request.clone().start(), request.start());
            assert!(!first.is_finished());
            gate.open();
            let first = first.await.expect("answered").is(status);
            for joined in [second, third] {
                let joined = joined.await.expect("answered").is(200);
                assert_eq!(joined.json, first.json, "{verb:?}");
            }
            assert_eq!(kit.script.calls(verb).len(), 1, "{verb:?} ran once");
        }
    })
    .await;
}

/// Holds: B-082, B-087.
#[tokio::test]
async fn a_request_that_joins_a_failing_one_gets_its_failure() {
    on_each_store(async |kit| {
        kit.script.ends(OperationKind::Provision, || {
            Err(Error::unsupported("Full."))
        });
        let gate = kit.script.hold(OperationKind::Provision);
        let first = kit.provision("i").start();
        gate.reached().await;
        let second = kit.provision("i").start();
        tokio::task::yield_now().await;
        gate.open();
        let first = first.await.expect("answered").is(422);
        // Requests after the end started a new operation and got the same result.
        let second = second.await.expect("answered").is(422);
        assert_eq!(
            (first.description(), second.description()),
            ("Full.", "Full.")
        );
    })
    .await;
}

/// Holds: B-082, B-087, B-122.
#[tokio::test]
async fn a_request_with_accepts_incomplete_joins_a_waiting_one_with_202() {
    on_each_store(async |kit| {
        let gate = kit.script.hold(OperationKind::Provision);
        let waiting = kit.provision("i").start();
        gate.reached().await;
        let operation = kit
            .provision("i")
            .accepts_incomplete()
            .send()
            .await
            .operation();
        let polled = kit.poll("i").operation(&operation).send().await.is(200);
        assert_eq!(polled.json["state"], "in progress");
        gate.open();
        waiting.await.expect("answered").is(201);
        let polled = kit
            .poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(polled.json["state"], "succeeded");
    })
    .await;
}

/// Holds: B-082, B-087, B-113.
#[tokio::test]
async fn a_binding_that_cannot_be_fetched_is_never_answered_with_202() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", BINDABLE).await;
        kit.bind("i", "a")
            .plan(BINDABLE)
            .accepts_incomplete()
            .send()
            .await
            .is(201);
        let gate = kit.script.hold(OperationKind::Bind);
        let bind = kit.bind("i", "b").plan(BINDABLE).accepts_incomplete();
        let first = bind.clone().start();
        gate.reached().await;
        let second = bind.start();
        tokio::task::yield_now().await;
        gate.open();
        let first = first.await.expect("answered").is(201);
        // A joining caller could not fetch it either, so it waits for the credentials.
        let second = second.await.expect("answered").is(200);
        assert_eq!(first.json["credentials"], second.json["credentials"]);
        kit.fetch_binding("i", "b").send().await.is(404);
    })
    .await;
}

/// Holds: B-082.
#[tokio::test]
async fn a_disconnect_cancels_nothing() {
    on_each_store(async |kit| {
        let requests = [
            (OperationKind::Provision, kit.provision("i")),
            (
                OperationKind::Update,
                kit.update("i").parameters(json!({ "a": 1 })),
            ),
            (OperationKind::Bind, kit.bind("i", "b")),
            (OperationKind::Unbind, kit.unbind("i", "b")),
            (OperationKind::Deprovision, kit.deprovision("i")),
        ];
        for (verb, request) in requests {
            let gate = kit.script.hold(verb);
            let started = request.clone().start();
            gate.reached().await;
            started.abort();
            assert!(started.await.expect_err("it was dropped").is_cancelled());
            gate.open();
            let poll = match verb {
                OperationKind::Bind | OperationKind::Unbind => kit.poll_binding("i", "b"),
                _ => kit.poll("i"),
            };
            let polled = kit.poll_until_done(poll).await;
            assert_eq!(polled.json["state"], "succeeded", "{verb:?}");
        }
    })
    .await;
}

/// Holds: B-080, B-083, B-084, B-254.
#[tokio::test]
async fn each_verb_has_its_own_mode() {
    on_each_store(async |kit| {
        kit.script.policy(
            OperationKind::Deprovision,
            Policy::default().required_async(),
        );
        kit.script
            .policy(OperationKind::Provision, Policy::default().sync());
        kit.provision("i").accepts_incomplete().send().await.is(201);
        kit.deprovision("i")
            .send()
            .await
            .refused_as("AsyncRequired");
        kit.bind("i", "b").send().await.is(201);
        kit.deprovision("i")
            .accepts_incomplete()
            .send()
            .await
            .is(202);
    })
    .await;
}
