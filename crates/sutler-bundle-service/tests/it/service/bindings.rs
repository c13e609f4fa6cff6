//! Bindings: credentials and state of their own, and regressions of the old broker.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST, until};
use serde_json::json;
use sutler_bundle::Action;

async fn fixture_with_instance() -> (Fixture, super::fixture::TestBroker) {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let made = Script::well()
        .state(json!({ "db": "d1" }))
        .credentials(json!({ "root": "toor-toor" }));
    fixture.fake.set_script(Action::Provision, made);
    broker.send(broker.provision("i")).await.is(201);
    (fixture, broker)
}

#[tokio::test]
async fn a_binding_has_its_own_credentials_and_its_own_state() {
    let (fixture, broker) = fixture_with_instance().await;
    let bound = Script::well()
        .credentials(json!({ "user": "u1", "password": "p-u1-p" }))
        .binding_state(json!({ "login": "l1" }));
    fixture.fake.set_script(Action::Bind, bound);
    let given = broker.send(broker.bind("i", "b")).await.is(201);
    assert_eq!(
        given["credentials"],
        json!({ "user": "u1", "password": "p-u1-p" })
    );
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["role"], json!("reader"), "defaults are filled in");
    assert_eq!(vars["_apb_provision_creds"], json!({ "root": "toor-toor" }));
    assert_eq!(vars["_apb_service_binding_id"], json!("b"));
    assert_eq!(
        vars["namespace"],
        json!("blue"),
        "the instance's, if the bind names none"
    );
    let there = broker.send(broker.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"]["user"], "u1");
    broker.send(broker.unbind("i", "b")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(vars["binding_state_login"], json!("l1"));
    assert_eq!(vars["state_db"], json!("d1"));
    assert_eq!(vars["_apb_bind_creds"]["user"], json!("u1"));
    assert_eq!(
        (&vars["_apb_plan_id"], &vars["_apb_plan_uuid"]),
        (&json!("small"), &json!("small-id"))
    );
    broker.send(broker.deprovision("i")).await.is(200);
}

/// Regression: R1, R2.
#[tokio::test]
async fn repeats_join_a_running_bind_and_a_failed_one_is_tried_anew() {
    let (fixture, broker) = fixture_with_instance().await;
    fixture
        .fake
        .set_script(Action::Bind, Script::exits(1).held());
    let ask = || broker.bind("i", "b").asynchronous();
    let first = broker.send(ask()).await.is(202);
    let second = broker.send(ask().by("duchess")).await.is(202);
    assert_eq!(first["operation"], second["operation"]);
    broker.send(broker.fetch_binding("i", "b")).await.is(404);
    until("it runs", async || fixture.fake.actions().len() == 2).await;
    fixture.fake.release();
    let operation = first["operation"].as_str().expect("an operation");
    let ended = broker.until_done("i/service_bindings/b", operation).await;
    assert_eq!(ended["state"], "failed");
    broker.send(broker.fetch_binding("i", "b")).await.is(404);
    fixture.fake.set_script(
        Action::Bind,
        Script::well().credentials(json!({ "user": "u2" })),
    );
    let third = broker.send(ask()).await.is(202);
    assert_ne!(third["operation"], first["operation"]);
    let operation = third["operation"].as_str().expect("an operation");
    let ended = broker.until_done("i/service_bindings/b", operation).await;
    assert_eq!(ended["state"], "succeeded");
    let there = broker.send(broker.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"], json!({ "user": "u2" }));
}

#[tokio::test]
async fn a_bind_without_credentials_fails_with_a_sentence() {
    let (fixture, broker) = fixture_with_instance().await;
    for (play, word) in [
        (Script::well(), "credentials.json"),
        (Script::exits(8), "no bind action"),
    ] {
        fixture.fake.set_script(Action::Bind, play);
        let refused = broker.send(broker.bind("i", "b")).await.is(500);
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains(word), "{sentence}");
    }
}

#[tokio::test]
async fn an_unbind_that_is_not_there_is_nothing_to_do_and_any_other_fault_is_one() {
    let (fixture, broker) = fixture_with_instance().await;
    fixture.fake.set_script(
        Action::Bind,
        Script::well().credentials(json!({ "user": "u1" })),
    );
    broker.send(broker.bind("i", "b")).await.is(201);
    fixture.fake.set_script(Action::Unbind, Script::exits(1));
    broker.send(broker.unbind("i", "b")).await.is(500);
    fixture.fake.set_script(Action::Unbind, Script::exits(8));
    broker.send(broker.unbind("i", "b")).await.is(200);
}

/// Regression: R27.
#[tokio::test]
async fn bindings_side_by_side_and_an_update_all_keep_what_they_set() {
    let (fixture, broker) = fixture_with_instance().await;
    for nth in 0..5 {
        let key = format!("of_b{nth}");
        let bound = Script::well()
            .credentials(json!({ "user": "u" }))
            .state(json!({ key.as_str(): nth }));
        fixture.fake.set_script(Action::Bind, bound);
        broker
            .send(broker.bind("i", &format!("b{nth}")))
            .await
            .is(201);
    }
    fixture.fake.set_script(
        Action::Update,
        Script::well().state(json!({ "of_update": true })),
    );
    broker
        .send(broker.update("i", json!({ "parameters": { "size": 2 } })))
        .await
        .is(200);
    broker.send(broker.unbind("i", "b0")).await.is(200);
    let vars = fixture.fake.last_vars();
    for key in [
        "db",
        "of_b0",
        "of_b1",
        "of_b2",
        "of_b3",
        "of_b4",
        "of_update",
    ] {
        assert!(vars.contains_key(&format!("state_{key}")), "{key}");
    }
}

#[tokio::test]
async fn credentials_of_the_provision_are_shared_only_if_the_manifest_allows_it() {
    let shared = MANIFEST.replace(
        "async: optional",
        "async: optional\nshare_provision_credentials: true\nactions: {bind: false, unbind: false}",
    );
    let fixture = Fixture::new();
    fixture.write("db", &shared);
    let broker = fixture.open().await;
    fixture.fake.set_script(
        Action::Provision,
        Script::well().credentials(json!({ "root": "toor" })),
    );
    broker.send(broker.provision("i")).await.is(201);
    let given = broker.send(broker.bind("i", "b")).await.is(201);
    assert_eq!(given["credentials"], json!({ "root": "toor" }));
    broker.send(broker.unbind("i", "b")).await.is(200);
    assert_eq!(
        fixture.fake.actions(),
        [Action::Provision],
        "nothing was run for the binding"
    );
}

#[tokio::test]
async fn the_operator_may_have_all_bundles_share_as_the_old_broker_did() {
    let mut fixture = Fixture::new();
    fixture.shares = true;
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let refused = broker.send(broker.bind("i", "b")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("without credentials"), "{sentence}");
    fixture.fake.set_script(
        Action::Update,
        Script::well().credentials(json!({ "root": "toor" })),
    );
    broker
        .send(broker.update("i", json!({ "parameters": { "size": 2 } })))
        .await
        .is(200);
    let given = broker.send(broker.bind("i", "b")).await.is(201);
    assert_eq!(given["credentials"], json!({ "root": "toor" }));
}

#[tokio::test]
async fn a_bind_whose_state_is_too_large_fails_and_its_unbind_gets_a_part_of_it() {
    for of_instance in [false, true] {
        let (fixture, broker) = fixture_with_instance().await;
        let large =
            json!({ "login": "l1", "blob": "x".repeat(200_000), "more": "y".repeat(100_000) });
        let bound = Script::well().credentials(json!({ "user": "u1" }));
        let bound = match of_instance {
            false => bound.binding_state(large),
            true => bound.binding_state(json!({ "login": "l1" })).state(large),
        };
        fixture.fake.set_script(Action::Bind, bound);
        let refused = broker.send(broker.bind("i", "b")).await.is(500);
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains("state would have"), "{sentence}");
        broker.send(broker.fetch_binding("i", "b")).await.is(404);
        broker.send(broker.unbind("i", "b")).await.is(200);
        assert_eq!(fixture.fake.actions().last(), Some(&Action::Unbind));
        let vars = fixture.fake.last_vars();
        assert_eq!(vars["_apb_bind_creds"], json!({ "user": "u1" }));
        assert_eq!(vars["binding_state_login"], json!("l1"));
    }
}
