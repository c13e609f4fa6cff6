//! State between actions: when it is stored, which actions get it, when it is removed.

use super::fake_runner::Script;
use super::fixture::{Fixture, TestBroker, until};
use serde_json::{Map, Value, json};
use sutler_bundle::Action;
use sutler_bundle_service::{HISTORY_MAX, STATE_BYTES_MAX, STATE_KEYS_MAX};

async fn with_state(fixture: &Fixture, state: Value) -> TestBroker {
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, Script::well().state(state));
    broker.send(broker.provision("i")).await.is(201);
    broker
}

fn state_keys(vars: &Map<String, Value>) -> Vec<&str> {
    let names = vars.keys().filter_map(|it| it.strip_prefix("state_"));
    names.collect()
}

async fn update(broker: &TestBroker, status: u16) -> Value {
    let change = json!({ "parameters": { "size": 2 } });
    broker.send(broker.update("i", change)).await.is(status)
}

/// An existing but empty state caused a crash.
///
/// Regression: R29.
#[tokio::test]
async fn an_empty_state_is_a_state() {
    let fixture = Fixture::new();
    let broker = with_state(&fixture, json!({})).await;
    fixture
        .fake
        .set_script(Action::Update, Script::well().state(json!({ "a": 1 })));
    update(&broker, 200).await;
    assert_eq!(state_keys(&fixture.fake.last_vars()), [] as [&str; 0]);
    fixture
        .fake
        .set_script(Action::Update, Script::well().state(json!({ "a": null })));
    let change = json!({ "parameters": { "size": 3 } });
    broker.send(broker.update("i", change)).await.is(200);
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["a"]);
    broker.send(broker.deprovision("i")).await.is(200);
    let last = fixture.fake.started_specs().pop().expect("a run");
    assert_eq!(state_keys(&last.vars.0), [] as [&str; 0]);
    assert!(last.state.is_none(), "what is empty again is not there");
}

#[tokio::test]
async fn a_provision_gets_only_the_state_of_a_failed_provision_before_it() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let half = Script::exits(1).state(json!({ "half": 1, "gone": 1 }));
    fixture.fake.set_script(Action::Provision, half);
    broker.send(broker.provision("i")).await.is(500);
    let first = fixture.fake.started_specs().pop().expect("a run");
    assert!(first.state.is_none(), "not on the first provision");
    let whole = Script::well().state(json!({ "gone": null, "whole": 2 }));
    fixture.fake.set_script(Action::Provision, whole);
    broker.send(broker.provision("i")).await.is(201);
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["gone", "half"]);
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["half", "whole"]);
    // A new instance begins without state.
    broker.send(broker.provision("i")).await.is(201);
    assert_eq!(state_keys(&fixture.fake.last_vars()), [] as [&str; 0]);
}

#[tokio::test]
async fn state_is_removed_only_when_a_deprovision_has_succeeded() {
    let fixture = Fixture::new();
    let broker = with_state(&fixture, json!({ "db": "d1" })).await;
    for exit in [1, 8, 137] {
        fixture
            .fake
            .set_script(Action::Deprovision, Script::exits(exit));
        broker.send(broker.deprovision("i")).await.is(500);
        assert_eq!(state_keys(&fixture.fake.last_vars()), ["db"], "{exit}");
    }
    fixture
        .fake
        .set_script(Action::Deprovision, Script::well().held());
    let accepted = broker
        .send(broker.deprovision("i").asynchronous())
        .await
        .is(202);
    until("it runs", async || fixture.fake.left() > 0).await;
    fixture.fake.lose();
    let operation = accepted["operation"].as_str().expect("an operation");
    assert_eq!(broker.until_done("i", operation).await["state"], "failed");
    fixture.fake.set_script(Action::Deprovision, Script::well());
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["db"]);
    broker.send(broker.deprovision("i")).await.is(410);
}

#[tokio::test]
async fn only_an_exit_with_zero_changes_the_state() {
    let fixture = Fixture::new();
    let broker = with_state(&fixture, json!({ "db": "d1" })).await;
    let failing = Script::exits(1)
        .state(json!({ "db": null, "extra": 1 }))
        .binding_state(json!({ "login": "l1" }));
    for action in [Action::Update, Action::Bind] {
        fixture.fake.set_script(action, failing.clone());
    }
    update(&broker, 500).await;
    broker.send(broker.bind("i", "b")).await.is(500);
    fixture.fake.set_script(
        Action::Bind,
        Script::well().credentials(json!({ "user": "u1" })),
    );
    broker.send(broker.bind("i", "b")).await.is(201);
    let vars = fixture.fake.last_vars();
    assert_eq!(state_keys(&vars), ["db"]);
    assert_eq!(
        vars["binding_state_login"],
        json!("l1"),
        "the next attempt knows what to clean up"
    );
    fixture.fake.set_script(Action::Unbind, failing);
    broker.send(broker.unbind("i", "b")).await.is(500);
    fixture.fake.set_script(Action::Unbind, Script::well());
    broker.send(broker.unbind("i", "b")).await.is(200);
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["db"]);
}

#[tokio::test]
async fn more_state_than_may_be_kept_is_refused_in_a_sentence_and_changes_nothing() {
    let fixture = Fixture::new();
    let broker = with_state(&fixture, json!({ "db": "d1" })).await;
    let many: Map<String, Value> = (0..=STATE_KEYS_MAX)
        .map(|nth| (format!("k{nth}"), json!(nth)))
        .collect();
    for large in [
        json!({ "text": "x".repeat(STATE_BYTES_MAX) }),
        Value::Object(many),
    ] {
        fixture
            .fake
            .set_script(Action::Update, Script::well().state(large));
        let refused = update(&broker, 500).await;
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains("Keep less"), "{sentence}");
        assert!(!sentence.contains("xxx"), "{sentence}");
    }
    let kept = "y".repeat(STATE_BYTES_MAX - 64);
    fixture.fake.set_script(
        Action::Update,
        Script::well().state(json!({ "text": kept })),
    );
    update(&broker, 200).await;
    assert_eq!(state_keys(&fixture.fake.last_vars()), ["db"]);
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(fixture.fake.last_vars()["state_text"], json!(kept));
}

#[tokio::test]
async fn state_is_in_no_response_to_the_platform() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let word = "a-word-that-is-kept";
    let made = Script::well()
        .state(json!({ "db": word, "deep": { "in": [word] } }))
        .credentials(json!({ "root": word }));
    fixture.fake.set_script(Action::Provision, made);
    let bound = Script::well()
        .credentials(json!({ "user": "u1" }))
        .state(json!({ "more": word }))
        .binding_state(json!({ "login": word }));
    fixture.fake.set_script(Action::Bind, bound);
    let mut answers = Vec::new();
    for ask in [
        broker.provision("i"),
        broker.provision("i"),
        broker.fetch("i"),
        broker.update("i", json!({ "parameters": { "size": 2 } })),
        broker.update("i", json!({ "parameters": { "size": "two" } })),
        broker.bind("i", "b"),
        broker.bind("i", "b"),
        broker.fetch_binding("i", "b"),
    ] {
        answers.push(broker.send(ask).await.json);
    }
    for path in ["i", "i/service_bindings/b"] {
        let path = format!("/v2/service_instances/{path}/last_operation");
        answers.push(broker.get(&path).await);
    }
    answers.push(broker.get("/v2/catalog").await);
    for path in ["instances", "bindings", "operations", "instances/i"] {
        answers.push(broker.get(&format!("/admin/v1/{path}")).await);
    }
    for failing in [Action::Unbind, Action::Deprovision] {
        fixture
            .fake
            .set_script(failing, Script::exits(1).error("No room."));
    }
    answers.push(broker.send(broker.unbind("i", "b")).await.is(500));
    answers.push(broker.send(broker.deprovision("i")).await.is(500));
    for answer in answers {
        assert!(!answer.to_string().contains(word), "{answer}");
    }
}

#[tokio::test]
async fn many_changes_are_all_applied_though_the_history_of_them_has_an_end() {
    let fixture = Fixture::new();
    let broker = with_state(&fixture, json!({ "db": "d1" })).await;
    let changes = HISTORY_MAX + 5;
    for nth in 0..changes {
        let play = Script::well().state(json!({ "nth": nth, format!("k{}", nth % 3): nth }));
        fixture.fake.set_script(Action::Update, play);
        let change = json!({ "parameters": { "size": nth } });
        broker.send(broker.update("i", change)).await.is(200);
    }
    broker.send(broker.deprovision("i")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(state_keys(&vars), ["db", "k0", "k1", "k2", "nth"]);
    assert_eq!(vars["state_nth"], json!(changes - 1));
}
