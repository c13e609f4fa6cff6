//! Upgrades to another maintenance version: an instance keeps its copy of the plan until one is requested.

use crate::fixture::request::RequestBuilder;
use crate::fixture::test_catalog::{self, LARGE, MAINTENANCE, SMALL};
use crate::fixture::{Fixture, catalog_of, on_each_store};
use serde_json::{Value, json};
use sutler_broker::Error;
use sutler_osb::OperationKind::{Deprovision, Update};

const NEWER: &str = "2.0.0";

/// Replaces the catalog: the plan LARGE gets another version and another parameter.
async fn move_on(kit: &Fixture, version: &str) {
    let mut newer = test_catalog::catalog();
    let large = &mut newer["services"][0]["plans"][1];
    large["maintenance_info"]["version"] = json!(version);
    for occasion in ["create", "update"] {
        let schema = &mut large["schemas"]["service_instance"][occasion]["parameters"];
        schema["properties"]["colour"] = json!({ "type": "string" });
    }
    let replaced = kit.running.replace_catalog(catalog_of(newer)).await;
    replaced.expect("it is valid");
}

fn to(kit: &Fixture, version: &str) -> RequestBuilder {
    kit.update("i")
        .with("maintenance_info", json!({ "version": version }))
}

async fn fetched(kit: &Fixture) -> Value {
    let reply = kit.fetch("i").plan(LARGE).send().await.is(200);
    reply.json["maintenance_info"]["version"].clone()
}

fn last_update(kit: &Fixture) -> Value {
    let call = kit.script.calls(Update).pop().expect("an update");
    call.update.expect("an update")
}

/// Holds: B-155, B-161, B-167.
#[tokio::test]
async fn an_instance_moves_to_the_catalogs_copy_of_its_plan_only_on_request() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        move_on(kit, NEWER).await;
        let painted = || kit.update("i").parameters(json!({ "colour": "red" }));
        painted().send().await.is(400);
        let grown = kit.update("i").parameters(json!({ "size": 2 }));
        grown.send().await.is(200);
        assert_eq!(last_update(kit)["runs_with"], MAINTENANCE);
        assert_eq!(last_update(kit)["upgrades"], false);
        assert_eq!(fetched(kit).await, MAINTENANCE);
        // The previous values sent by the platform are not checked.
        let believed = json!({ "maintenance_info": { "version": "9.9.9" } });
        let upgrade = to(kit, NEWER).with("previous_values", believed);
        upgrade
            .parameters(json!({ "colour": "red" }))
            .send()
            .await
            .is(200);
        let update = last_update(kit);
        assert_eq!(update["runs_with"], NEWER);
        assert_eq!(update["upgrades"], true);
        assert_eq!(update["previous_maintenance_version"], MAINTENANCE);
        assert_eq!(fetched(kit).await, NEWER);
        painted().send().await.is(200);
        kit.update("i")
            .parameters(json!({ "colour": "blue" }))
            .send()
            .await
            .is(200);
        assert_eq!(last_update(kit)["upgrades"], false);
        kit.deprovision("i").plan(LARGE).send().await.is(200);
        assert_eq!(kit.script.calls(Deprovision).len(), 1);
    })
    .await;
}

/// Holds: B-162, B-167.
#[tokio::test]
async fn an_instance_with_the_catalogs_version_is_not_moved_even_if_the_plan_differs() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        move_on(kit, MAINTENANCE).await;
        to(kit, MAINTENANCE).send().await.is(200);
        assert!(kit.script.calls(Update).is_empty());
        let painted = to(kit, MAINTENANCE).parameters(json!({ "colour": "red" }));
        painted.send().await.is(400);
        to(kit, MAINTENANCE)
            .parameters(json!({ "size": 2 }))
            .send()
            .await
            .is(200);
        assert_eq!(last_update(kit)["upgrades"], false);
    })
    .await;
}

/// Holds: B-037, B-169.
#[tokio::test]
async fn an_upgrade_that_fails_leaves_the_instance_as_it_was() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        move_on(kit, NEWER).await;
        kit.script.ends(Update, || Err(Error::failed("No.")));
        to(kit, NEWER).send().await.is(500);
        assert_eq!(fetched(kit).await, MAINTENANCE);
        kit.script.succeeds(Update);
        let painted = kit.update("i").parameters(json!({ "colour": "red" }));
        painted.send().await.is(400);
        to(kit, NEWER).send().await.is(200);
        assert_eq!(fetched(kit).await, NEWER);
    })
    .await;
}

/// Holds: B-087, B-163, B-167.
#[tokio::test]
async fn a_repeated_upgrade_joins_the_running_one_though_the_catalog_has_moved_on_again() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", LARGE).await;
        move_on(kit, NEWER).await;
        let gate = kit.script.hold(Update);
        let upgrade = to(kit, NEWER).accepts_incomplete();
        let operation = upgrade.clone().send().await.operation();
        gate.reached().await;
        let without = kit.update("i").parameters(json!({ "size": 1 }));
        without.send().await.refused_as("ConcurrencyError");
        move_on(kit, "3.0.0").await;
        assert_eq!(upgrade.clone().send().await.operation(), operation);
        to(kit, "3.0.0")
            .accepts_incomplete()
            .send()
            .await
            .refused_as("ConcurrencyError");
        gate.open();
        kit.poll_until_done(kit.poll("i").operation(&operation))
            .await;
        assert_eq!(last_update(kit)["runs_with"], NEWER);
        assert_eq!(fetched(kit).await, NEWER);
        upgrade.send().await.refused_as("MaintenanceInfoConflict");
    })
    .await;
}

/// Holds: B-165, B-167.
#[tokio::test]
async fn an_instance_can_change_its_plan_and_its_version_at_once() {
    on_each_store(async |kit| {
        kit.has_instance_of("i", SMALL).await;
        move_on(kit, NEWER).await;
        to(kit, NEWER).plan(LARGE).send().await.is(200);
        let update = last_update(kit);
        assert_eq!(
            (&update["previous_plan"], &update["upgrades"]),
            (&json!(SMALL), &json!(true))
        );
        assert_eq!(fetched(kit).await, NEWER);
    })
    .await;
}
