//! A plan that is removed from the catalog while instances of it exist (B-051).

use crate::fixture::test_catalog::{LARGE, MAINTENANCE, SMALL, catalog_without};
use crate::fixture::{Fixture, catalog_of, on_each_store};
use serde_json::json;
use sutler_osb::OperationKind;

async fn withdraw(kit: &Fixture, plan: &str) {
    let less = catalog_of(catalog_without(plan));
    kit.running
        .replace_catalog(less)
        .await
        .expect("the rest is valid");
}

/// Holds: B-051, B-125.
#[tokio::test]
async fn a_withdrawn_plan_is_not_listed_and_makes_no_new_instances() {
    on_each_store(async |kit| {
        withdraw(kit, LARGE).await;
        assert_eq!(
            kit.catalog().send().await.is(200).json,
            catalog_without(LARGE)
        );
        kit.provision("i").plan(LARGE).send().await.is(400);
        kit.provision("i")
            .plan(LARGE)
            .accepts_incomplete()
            .send()
            .await
            .is(400);
        kit.has_instance("i").await;
        kit.update("i").plan(LARGE).send().await.is(400);
    })
    .await;
}

/// Holds: B-051, B-108, B-167, B-170.
#[tokio::test]
async fn an_instance_of_a_withdrawn_plan_can_do_everything_else() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        kit.bind("i", "old").plan(LARGE).send().await.is(201);
        withdraw(kit, LARGE).await;
        kit.fetch("i").plan(LARGE).send().await.is(200);
        kit.poll("i").plan(LARGE).send().await.is(200);
        kit.update("i")
            .parameters(json!({ "size": 2 }))
            .send()
            .await
            .is(200);
        kit.update("i")
            .plan(LARGE)
            .parameters(json!({ "size": 3 }))
            .send()
            .await
            .is(200);
        // Its schema and its maintenance version still apply.
        kit.update("i")
            .parameters(json!({ "size": 0 }))
            .send()
            .await
            .is(400);
        let info = |version: &str| json!({ "version": version });
        let patch = kit.update("i").with("maintenance_info", info("9.0.0"));
        patch.send().await.refused_as("MaintenanceInfoConflict");
        kit.update("i")
            .with("maintenance_info", info(MAINTENANCE))
            .send()
            .await
            .is(200);
        kit.update("i")
            .with("context", json!({ "platform": "y" }))
            .send()
            .await
            .is(200);
        kit.bind("i", "new").plan(LARGE).send().await.is(201);
        let rotate = kit
            .bind("i", "newer")
            .plan(LARGE)
            .with("predecessor_binding_id", "new");
        rotate.send().await.is(201);
        kit.fetch_binding("i", "new").send().await.is(200);
        kit.poll_binding("i", "new").send().await.is(200);
        kit.unbind("i", "old").plan(LARGE).send().await.is(200);
        kit.deprovision("i").plan(LARGE).send().await.is(200);
        kit.deprovision("i").plan(LARGE).send().await.is(410);
    })
    .await;
}

/// Holds: B-051, B-087, B-122, B-123, B-126.
#[tokio::test]
async fn a_repeated_create_of_a_withdrawn_plan_gets_the_same_answer() {
    on_each_store(async |kit| {
        kit.has_instance_of("done", LARGE).await;
        let gate = kit.script.hold(OperationKind::Provision);
        let put = kit.provision("slow").plan(LARGE).accepts_incomplete();
        let operation = put.clone().send().await.operation();
        withdraw(kit, LARGE).await;
        assert_eq!(put.clone().send().await.operation(), operation);
        kit.provision("done").plan(LARGE).send().await.is(200);
        kit.provision("done")
            .plan(LARGE)
            .parameters(json!({ "size": 7 }))
            .send()
            .await
            .is(409);
        gate.open();
        kit.poll_until_done(kit.poll("slow").operation(&operation))
            .await;
        put.send().await.is(200);
        // A deleted instance is not created again.
        kit.deprovision("done").plan(LARGE).send().await.is(200);
        kit.provision("done").plan(LARGE).send().await.is(400);
        kit.script
            .calls(OperationKind::Provision)
            .iter()
            .for_each(|it| assert_eq!(it.plan, LARGE));
    })
    .await;
}

/// Holds: B-051.
#[tokio::test]
async fn an_instance_can_leave_a_withdrawn_plan() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        withdraw(kit, LARGE).await;
        kit.update("i").plan(SMALL).send().await.is(200);
        let update = kit
            .script
            .only_call(OperationKind::Update)
            .update
            .expect("an update");
        assert_eq!(update["previous_plan"], LARGE);
        kit.bind("i", "b").plan(SMALL).send().await.is(201);
        kit.update("i").plan(LARGE).send().await.is(400);
    })
    .await;
}
