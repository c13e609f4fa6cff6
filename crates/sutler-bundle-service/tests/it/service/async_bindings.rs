//! Asynchronous binds and unbinds, and bundles without some actions.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST, until};
use serde_json::{Value, json};
use std::fs;
use sutler_bundle::Action;

fn operation(accepted: &Value) -> String {
    let name = accepted["operation"].as_str();
    name.expect("an operation").to_owned()
}

#[tokio::test]
async fn an_unbind_takes_its_time_and_a_repeat_joins_it() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let bound = Script::well().credentials(json!({ "user": "u1" }));
    fixture.fake.set_script(Action::Bind, bound);
    broker.send(broker.bind("i", "b")).await.is(201);
    fixture
        .fake
        .set_script(Action::Unbind, Script::well().held());
    let ask = || broker.unbind("i", "b").asynchronous();
    let first = broker.send(ask()).await.is(202);
    until("it runs", async || fixture.fake.actions().len() == 3).await;
    let second = broker.send(ask().by("duchess")).await.is(202);
    assert_eq!(first["operation"], second["operation"]);
    let refused = broker
        .send(broker.bind("i", "b").asynchronous())
        .await
        .is(422);
    assert_eq!(refused["error"], "ConcurrencyError");
    fixture.fake.release();
    let ended = broker
        .until_done("i/service_bindings/b", &operation(&first))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    broker.send(ask()).await.is(410);
    broker.send(broker.fetch_binding("i", "b")).await.is(404);
    let expected = [Action::Provision, Action::Bind, Action::Unbind];
    assert_eq!(fixture.fake.actions(), expected);
}

#[tokio::test]
async fn a_failed_unbind_leaves_the_binding_and_the_next_one_gets_the_same_inputs() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let bound = Script::well()
        .credentials(json!({ "user": "u1" }))
        .binding_state(json!({ "login": "l1" }));
    fixture.fake.set_script(Action::Bind, bound);
    broker.send(broker.bind("i", "b")).await.is(201);
    fixture.fake.set_script(Action::Unbind, Script::exits(1));
    let failed = broker
        .send(broker.unbind("i", "b").asynchronous())
        .await
        .is(202);
    let ended = broker
        .until_done("i/service_bindings/b", &operation(&failed))
        .await;
    assert_eq!(ended["state"], "failed", "{ended}");
    let there = broker.send(broker.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"], json!({ "user": "u1" }));
    fixture.fake.set_script(Action::Unbind, Script::well());
    let again = broker
        .send(broker.unbind("i", "b").asynchronous())
        .await
        .is(202);
    assert_ne!(again["operation"], failed["operation"], "a new attempt");
    let ended = broker
        .until_done("i/service_bindings/b", &operation(&again))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["binding_state_login"], json!("l1"));
    assert_eq!(vars["_apb_bind_creds"], json!({ "user": "u1" }));
}

#[tokio::test]
async fn each_binding_has_credentials_of_its_own_and_none_has_those_of_the_provision() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let made = Script::well().credentials(json!({ "root": "toor-toor" }));
    fixture.fake.set_script(Action::Provision, made);
    broker.send(broker.provision("i")).await.is(201);
    let bindings = ["b1", "b2", "b3"];
    for binding in bindings {
        let bound = Script::well().credentials(json!({ "user": binding }));
        fixture.fake.set_script(Action::Bind, bound);
        let given = broker.send(broker.bind("i", binding)).await.is(201);
        assert_eq!(given["credentials"], json!({ "user": binding }));
    }
    fixture.fake.set_script(Action::Bind, Script::exits(1));
    for binding in bindings {
        let again = broker.send(broker.bind("i", binding)).await.is(200);
        assert_eq!(again["credentials"], json!({ "user": binding }));
        let there = broker
            .send(broker.fetch_binding("i", binding))
            .await
            .is(200);
        assert_eq!(there["credentials"], json!({ "user": binding }));
    }
}

/// Regression: R38.
#[tokio::test]
async fn a_bundle_without_credentials_at_provision_is_provisioned_and_bound() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let bound = Script::well().credentials(json!({ "user": "u1" }));
    fixture.fake.set_script(Action::Bind, bound);
    broker.send(broker.bind("i", "b")).await.is(201);
    assert!(
        !fixture
            .fake
            .last_vars()
            .contains_key("_apb_provision_creds")
    );
    broker.send(broker.unbind("i", "b")).await.is(200);
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(fixture.fake.last_vars()["_apb_provision_creds"], json!({}));
}

#[tokio::test]
async fn a_bundle_without_bind_works_and_refuses_bindings_at_once() {
    let fixture = Fixture::new();
    fixture.write("db", &MANIFEST.replace("bindable: true", "bindable: false"));
    for action in ["bind", "unbind", "update"] {
        let script = fixture.bundles().join("db/actions").join(action);
        fs::remove_file(script).expect("it is not there");
    }
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    broker.send(broker.bind("i", "b")).await.is(400);
    let change = json!({ "parameters": { "size": 2 } });
    let refused = broker.send(broker.update("i", change)).await.is(422);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("cannot be updated"), "{refused}");
    broker.send(broker.deprovision("i")).await.is(200);
    let expected = [Action::Provision, Action::Deprovision];
    assert_eq!(fixture.fake.actions(), expected);
}
