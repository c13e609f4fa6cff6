//! Repeated requests after the rules for new ones have changed: the schema of the plan, the check of the service, or
//! the catalog itself.
//!
//! A platform repeats a request if it got no response. A refusal would mean that nothing exists, and the platform
//! would forget the resource. Withdrawn plans of existing instances are in `withdrawn_plans.rs`.

use crate::fixture::test_catalog::{LARGE, SMALL, catalog, catalog_without};
use crate::fixture::{Fixture, catalog_of, on_each_store};
use serde_json::{Value, json};
use sutler_broker::Refusal;
use sutler_osb::OperationKind;

/// Every new request is refused from now on, by the schemas and by the service.
async fn refuse_new(kit: &Fixture) {
    let mut strict = catalog();
    let plans = strict["services"][0]["plans"].as_array_mut();
    for plan in plans.expect("plans are a list") {
        let none = json!({ "parameters": {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "required": ["unheard-of"],
        } });
        plan["schemas"] = json!({
            "service_instance": { "create": none, "update": none },
            "service_binding": { "create": none },
        });
    }
    replace(kit, strict).await;
    kit.script
        .checks(|_| Err(Refusal::Unsupported("Not any more.".to_owned())));
}

async fn replace(kit: &Fixture, catalog: Value) {
    let replaced = kit.running.replace_catalog(catalog_of(catalog)).await;
    replaced.expect("the catalog is valid");
}

/// Holds: B-087, B-122, B-123, D-06.
#[tokio::test]
async fn an_identical_provision_is_answered_though_it_would_be_refused_today() {
    on_each_store(async |kit| {
        let put = |id: &str| {
            let put = kit.provision(id).plan(LARGE);
            put.parameters(json!({ "size": 1 }))
        };
        put("done").send().await.is(201);
        let gate = kit.script.hold(OperationKind::Provision);
        let slow = put("slow").accepts_incomplete();
        let operation = slow.clone().send().await.operation();
        refuse_new(kit).await;
        put("done").send().await.is(200);
        assert_eq!(slow.clone().send().await.operation(), operation);
        // A different one conflicts, whatever its parameters.
        let other = put("done").parameters(json!({ "size": 0 }));
        other.send().await.is(409);
        put("new").send().await.is(400);
        gate.open();
        kit.poll_until_done(kit.poll("slow").operation(&operation))
            .await;
        slow.send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Provision).len(), 2);
    })
    .await;
}

/// Holds: B-087, B-122.
#[tokio::test]
async fn a_check_that_refuses_today_does_not_refuse_a_repeated_provision() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        kit.script
            .checks(|_| Err(Refusal::Unsupported("Not any more.".to_owned())));
        kit.provision("i").send().await.is(200);
        kit.provision("j").send().await.is(422);
    })
    .await;
}

/// Holds: B-087, B-162, B-163.
#[tokio::test]
async fn an_identical_update_is_answered_though_it_would_be_refused_today() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").plan(LARGE).parameters(json!({ "size": 2 }));
        let patch = patch.accepts_incomplete();
        let operation = patch.clone().send().await.operation();
        gate.reached().await;
        refuse_new(kit).await;
        assert_eq!(patch.clone().send().await.operation(), operation);
        let other = kit.update("i").plan(LARGE).parameters(json!({ "size": 3 }));
        other.accepts_incomplete().send().await.is(400);
        gate.open();
        kit.poll_until_done(kit.poll("i").operation(&operation))
            .await;
        patch.send().await.is(200);
        assert_eq!(kit.script.calls(OperationKind::Update).len(), 1);
    })
    .await;
}

/// Holds: B-051, B-087, B-163.
#[tokio::test]
async fn a_repeated_update_to_a_plan_withdrawn_meanwhile_joins_the_running_one() {
    on_each_store(async |kit| {
        kit.has_instance("i").await;
        let gate = kit.script.hold(OperationKind::Update);
        let patch = kit.update("i").plan(LARGE).accepts_incomplete();
        let operation = patch.clone().send().await.operation();
        gate.reached().await;
        replace(kit, catalog_without(LARGE)).await;
        assert_eq!(patch.clone().send().await.operation(), operation);
        let other = kit.update("i").plan(LARGE).parameters(json!({ "size": 3 }));
        other.accepts_incomplete().send().await.is(400);
        gate.open();
        kit.poll_until_done(kit.poll("i").operation(&operation))
            .await;
        patch.send().await.is(200);
    })
    .await;
}

/// Holds: B-051, B-087, B-183.
#[tokio::test]
async fn a_repeated_bind_of_a_withdrawn_plan_that_its_instance_has_left_gets_the_same_answer() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        let bind = kit.bind("i", "b").plan(LARGE);
        bind.clone().send().await.is(201);
        kit.update("i").plan(SMALL).send().await.is(200);
        replace(kit, catalog_without(LARGE)).await;
        bind.send().await.is(200);
        kit.bind("i", "new").plan(LARGE).send().await.is(400);
    })
    .await;
}
