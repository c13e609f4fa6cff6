//! Binds and unbinds that take their time, and bundles that do not have everything.

use super::fake::Play;
use super::house::{House, MANIFEST, until};
use serde_json::{Value, json};
use std::fs;
use sutler_bundle::Action;

fn operation(accepted: &Value) -> String {
    let name = accepted["operation"].as_str();
    name.expect("an operation").to_owned()
}

#[tokio::test]
async fn an_unbind_takes_its_time_and_a_repeat_joins_it() {
    let house = House::new();
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    let bound = Play::well().credentials(json!({ "user": "u1" }));
    house.fake.plays(Action::Bind, bound);
    room.send(room.bind("i", "b")).await.is(201);
    house.fake.plays(Action::Unbind, Play::well().held());
    let ask = || room.unbind("i", "b").later();
    let first = room.send(ask()).await.is(202);
    until("it runs", async || house.fake.actions().len() == 3).await;
    let second = room.send(ask().by("duchess")).await.is(202);
    assert_eq!(first["operation"], second["operation"]);
    let refused = room.send(room.bind("i", "b").later()).await.is(422);
    assert_eq!(refused["error"], "ConcurrencyError");
    house.fake.release();
    let ended = room
        .until_done("i/service_bindings/b", &operation(&first))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    room.send(ask()).await.is(410);
    room.send(room.fetch_binding("i", "b")).await.is(404);
    let expected = [Action::Provision, Action::Bind, Action::Unbind];
    assert_eq!(house.fake.actions(), expected);
}

#[tokio::test]
async fn an_unbind_that_failed_leaves_the_binding_and_the_next_one_is_told_the_same() {
    let house = House::new();
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    let bound = Play::well()
        .credentials(json!({ "user": "u1" }))
        .binding_state(json!({ "login": "l1" }));
    house.fake.plays(Action::Bind, bound);
    room.send(room.bind("i", "b")).await.is(201);
    house.fake.plays(Action::Unbind, Play::exits(1));
    let failed = room.send(room.unbind("i", "b").later()).await.is(202);
    let ended = room
        .until_done("i/service_bindings/b", &operation(&failed))
        .await;
    assert_eq!(ended["state"], "failed", "{ended}");
    let there = room.send(room.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"], json!({ "user": "u1" }));
    house.fake.plays(Action::Unbind, Play::well());
    let again = room.send(room.unbind("i", "b").later()).await.is(202);
    assert_ne!(again["operation"], failed["operation"], "a new attempt");
    let ended = room
        .until_done("i/service_bindings/b", &operation(&again))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let vars = house.fake.last_vars();
    assert_eq!(vars["binding_state_login"], json!("l1"));
    assert_eq!(vars["_apb_bind_creds"], json!({ "user": "u1" }));
}

#[tokio::test]
async fn each_binding_has_credentials_of_its_own_and_none_has_those_of_the_provision() {
    let house = House::new();
    let room = house.open().await;
    let made = Play::well().credentials(json!({ "root": "toor-toor" }));
    house.fake.plays(Action::Provision, made);
    room.send(room.provision("i")).await.is(201);
    let bindings = ["b1", "b2", "b3"];
    for binding in bindings {
        let bound = Play::well().credentials(json!({ "user": binding }));
        house.fake.plays(Action::Bind, bound);
        let given = room.send(room.bind("i", binding)).await.is(201);
        assert_eq!(given["credentials"], json!({ "user": binding }));
    }
    house.fake.plays(Action::Bind, Play::exits(1));
    for binding in bindings {
        let again = room.send(room.bind("i", binding)).await.is(200);
        assert_eq!(again["credentials"], json!({ "user": binding }));
        let there = room.send(room.fetch_binding("i", binding)).await.is(200);
        assert_eq!(there["credentials"], json!({ "user": binding }));
    }
}

/// Regression: R38.
#[tokio::test]
async fn a_bundle_without_credentials_at_provision_is_provisioned_and_bound() {
    let house = House::new();
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    let bound = Play::well().credentials(json!({ "user": "u1" }));
    house.fake.plays(Action::Bind, bound);
    room.send(room.bind("i", "b")).await.is(201);
    assert!(!house.fake.last_vars().contains_key("_apb_provision_creds"));
    room.send(room.unbind("i", "b")).await.is(200);
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(house.fake.last_vars()["_apb_provision_creds"], json!({}));
}

#[tokio::test]
async fn a_bundle_without_bind_lives_and_refuses_bindings_at_once() {
    let house = House::new();
    house.write("db", &MANIFEST.replace("bindable: true", "bindable: false"));
    for action in ["bind", "unbind", "update"] {
        let script = house.bundles().join("db/actions").join(action);
        fs::remove_file(script).expect("it is not there");
    }
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    room.send(room.bind("i", "b")).await.is(400);
    let change = json!({ "parameters": { "size": 2 } });
    let refused = room.send(room.update("i", change)).await.is(422);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("cannot be updated"), "{refused}");
    room.send(room.deprovision("i")).await.is(200);
    let expected = [Action::Provision, Action::Deprovision];
    assert_eq!(house.fake.actions(), expected);
}
