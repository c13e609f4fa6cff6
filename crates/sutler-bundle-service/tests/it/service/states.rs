//! What is remembered between actions, sentence by sentence: when it is kept, who is told, when it goes.

use super::fake::Play;
use super::house::{House, Room, until};
use serde_json::{Map, Value, json};
use sutler_bundle::Action;
use sutler_bundle_service::{HISTORY_MAX, STATE_BYTES_MAX, STATE_KEYS_MAX};

async fn with_state(house: &House, state: Value) -> Room {
    let room = house.open().await;
    house
        .fake
        .plays(Action::Provision, Play::well().state(state));
    room.send(room.provision("i")).await.is(201);
    room
}

fn told_state(vars: &Map<String, Value>) -> Vec<&str> {
    let names = vars.keys().filter_map(|it| it.strip_prefix("state_"));
    names.collect()
}

async fn update(room: &Room, status: u16) -> Value {
    let change = json!({ "parameters": { "size": 2 } });
    room.send(room.update("i", change)).await.is(status)
}

/// There was a crash where a state was there and empty.
///
/// Regression: R29.
#[tokio::test]
async fn an_empty_state_is_a_state() {
    let house = House::new();
    let room = with_state(&house, json!({})).await;
    house
        .fake
        .plays(Action::Update, Play::well().state(json!({ "a": 1 })));
    update(&room, 200).await;
    assert_eq!(told_state(&house.fake.last_vars()), [] as [&str; 0]);
    house
        .fake
        .plays(Action::Update, Play::well().state(json!({ "a": null })));
    let change = json!({ "parameters": { "size": 3 } });
    room.send(room.update("i", change)).await.is(200);
    assert_eq!(told_state(&house.fake.last_vars()), ["a"]);
    room.send(room.deprovision("i")).await.is(200);
    let last = house.fake.ordered().pop().expect("a run");
    assert_eq!(told_state(&last.vars.0), [] as [&str; 0]);
    assert!(last.state.is_none(), "what is empty again is not there");
}

#[tokio::test]
async fn a_provision_is_told_no_state_but_what_a_failed_one_before_it_set() {
    let house = House::new();
    let room = house.open().await;
    let half = Play::exits(1).state(json!({ "half": 1, "gone": 1 }));
    house.fake.plays(Action::Provision, half);
    room.send(room.provision("i")).await.is(500);
    let first = house.fake.ordered().pop().expect("a run");
    assert!(first.state.is_none(), "not on the first provision");
    let whole = Play::well().state(json!({ "gone": null, "whole": 2 }));
    house.fake.plays(Action::Provision, whole);
    room.send(room.provision("i")).await.is(201);
    assert_eq!(told_state(&house.fake.last_vars()), ["gone", "half"]);
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(told_state(&house.fake.last_vars()), ["half", "whole"]);
    // A new life begins with nothing.
    room.send(room.provision("i")).await.is(201);
    assert_eq!(told_state(&house.fake.last_vars()), [] as [&str; 0]);
}

#[tokio::test]
async fn state_goes_only_when_a_deprovision_has_succeeded() {
    let house = House::new();
    let room = with_state(&house, json!({ "db": "d1" })).await;
    for exit in [1, 8, 137] {
        house.fake.plays(Action::Deprovision, Play::exits(exit));
        room.send(room.deprovision("i")).await.is(500);
        assert_eq!(told_state(&house.fake.last_vars()), ["db"], "{exit}");
    }
    house.fake.plays(Action::Deprovision, Play::well().held());
    let accepted = room.send(room.deprovision("i").later()).await.is(202);
    until("it runs", async || house.fake.left() > 0).await;
    house.fake.lose();
    let operation = accepted["operation"].as_str().expect("an operation");
    assert_eq!(room.until_done("i", operation).await["state"], "failed");
    house.fake.plays(Action::Deprovision, Play::well());
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(told_state(&house.fake.last_vars()), ["db"]);
    room.send(room.deprovision("i")).await.is(410);
}

#[tokio::test]
async fn only_what_exits_with_zero_changes_the_state() {
    let house = House::new();
    let room = with_state(&house, json!({ "db": "d1" })).await;
    let failing = Play::exits(1)
        .state(json!({ "db": null, "extra": 1 }))
        .binding_state(json!({ "login": "l1" }));
    for action in [Action::Update, Action::Bind] {
        house.fake.plays(action, failing.clone());
    }
    update(&room, 500).await;
    room.send(room.bind("i", "b")).await.is(500);
    house.fake.plays(
        Action::Bind,
        Play::well().credentials(json!({ "user": "u1" })),
    );
    room.send(room.bind("i", "b")).await.is(201);
    let vars = house.fake.last_vars();
    assert_eq!(told_state(&vars), ["db"]);
    assert_eq!(
        vars["binding_state_login"],
        json!("l1"),
        "the next attempt knows what to clean up"
    );
    house.fake.plays(Action::Unbind, failing);
    room.send(room.unbind("i", "b")).await.is(500);
    house.fake.plays(Action::Unbind, Play::well());
    room.send(room.unbind("i", "b")).await.is(200);
    assert_eq!(told_state(&house.fake.last_vars()), ["db"]);
}

#[tokio::test]
async fn more_state_than_may_be_kept_is_refused_in_a_sentence_and_changes_nothing() {
    let house = House::new();
    let room = with_state(&house, json!({ "db": "d1" })).await;
    let many: Map<String, Value> = (0..=STATE_KEYS_MAX)
        .map(|nth| (format!("k{nth}"), json!(nth)))
        .collect();
    for large in [
        json!({ "text": "x".repeat(STATE_BYTES_MAX) }),
        Value::Object(many),
    ] {
        house.fake.plays(Action::Update, Play::well().state(large));
        let refused = update(&room, 500).await;
        let sentence = refused["description"].as_str().unwrap_or_default();
        assert!(sentence.contains("Keep less"), "{sentence}");
        assert!(!sentence.contains("xxx"), "{sentence}");
    }
    let kept = "y".repeat(STATE_BYTES_MAX - 64);
    house
        .fake
        .plays(Action::Update, Play::well().state(json!({ "text": kept })));
    update(&room, 200).await;
    assert_eq!(told_state(&house.fake.last_vars()), ["db"]);
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(house.fake.last_vars()["state_text"], json!(kept));
}

#[tokio::test]
async fn what_is_remembered_is_in_no_answer_to_the_platform() {
    let house = House::new();
    let room = house.open().await;
    let word = "a-word-that-is-kept";
    let made = Play::well()
        .state(json!({ "db": word, "deep": { "in": [word] } }))
        .credentials(json!({ "root": word }));
    house.fake.plays(Action::Provision, made);
    let bound = Play::well()
        .credentials(json!({ "user": "u1" }))
        .state(json!({ "more": word }))
        .binding_state(json!({ "login": word }));
    house.fake.plays(Action::Bind, bound);
    let mut answers = Vec::new();
    for ask in [
        room.provision("i"),
        room.provision("i"),
        room.fetch("i"),
        room.update("i", json!({ "parameters": { "size": 2 } })),
        room.update("i", json!({ "parameters": { "size": "two" } })),
        room.bind("i", "b"),
        room.bind("i", "b"),
        room.fetch_binding("i", "b"),
    ] {
        answers.push(room.send(ask).await.json);
    }
    for path in ["i", "i/service_bindings/b"] {
        let path = format!("/v2/service_instances/{path}/last_operation");
        answers.push(room.get(&path).await);
    }
    answers.push(room.get("/v2/catalog").await);
    for path in ["instances", "bindings", "operations", "instances/i"] {
        answers.push(room.get(&format!("/admin/v1/{path}")).await);
    }
    for failing in [Action::Unbind, Action::Deprovision] {
        house.fake.plays(failing, Play::exits(1).error("No room."));
    }
    answers.push(room.send(room.unbind("i", "b")).await.is(500));
    answers.push(room.send(room.deprovision("i")).await.is(500));
    for answer in answers {
        assert!(!answer.to_string().contains(word), "{answer}");
    }
}

#[tokio::test]
async fn many_changes_are_all_applied_though_the_history_of_them_has_an_end() {
    let house = House::new();
    let room = with_state(&house, json!({ "db": "d1" })).await;
    let changes = HISTORY_MAX + 5;
    for nth in 0..changes {
        let play = Play::well().state(json!({ "nth": nth, format!("k{}", nth % 3): nth }));
        house.fake.plays(Action::Update, play);
        let change = json!({ "parameters": { "size": nth } });
        room.send(room.update("i", change)).await.is(200);
    }
    room.send(room.deprovision("i")).await.is(200);
    let vars = house.fake.last_vars();
    assert_eq!(told_state(&vars), ["db", "k0", "k1", "k2", "nth"]);
    assert_eq!(vars["state_nth"], json!(changes - 1));
}
