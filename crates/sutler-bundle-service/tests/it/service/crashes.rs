//! Brokers that vanish while runs go on: one run for one attempt, whatever happens.

use super::fake::Play;
use super::house::{House, MANIFEST, until};
use super::instances::text_of;
use serde_json::json;
use sutler_bundle::Action;

/// Regression: R6, R10.
#[tokio::test]
async fn a_run_that_outlives_its_broker_is_adopted_and_its_output_is_kept_once() {
    let house = House::new();
    let room = house.open().await;
    let held = Play::well()
        .says("one\n")
        .says("two\n")
        .state(json!({ "db": "d1" }))
        .held();
    house.fake.plays(Action::Provision, held);
    let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("its output is kept", async || {
        text_of(&room.send(room.log(operation)).await.json) == "one\ntwo\n"
    })
    .await;
    room.crash();
    let room = house.open().await;
    until("it is adopted", async || {
        let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
        let answer = room.get(&path).await;
        answer["description"]
            .as_str()
            .unwrap_or_default()
            .contains("goes on")
    })
    .await;
    house.fake.release();
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(house.fake.actions(), [Action::Provision], "one run");
    let log = room.send(room.log(operation)).await.is(200);
    assert_eq!(text_of(&log), "one\ntwo\n");
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(house.fake.last_vars()["state_db"], json!("d1"));
    until("nothing is left", async || house.fake.left() == 0).await;
}

/// Regression: R8.
#[tokio::test]
async fn a_run_that_ended_while_no_broker_was_there_is_read() {
    let house = House::new();
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    let held = Play::well().credentials(json!({ "user": "u1" })).held();
    house.fake.plays(Action::Bind, held);
    let operation = room.send(room.bind("i", "b").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || house.fake.actions().len() == 2).await;
    room.crash();
    house.fake.release();
    let room = house.open().await;
    let ended = room.until_done("i/service_bindings/b", operation).await;
    assert_eq!(ended["state"], "succeeded");
    let there = room.send(room.fetch_binding("i", "b")).await.is(200);
    assert_eq!(
        there["credentials"],
        json!({ "user": "u1" }),
        "no credentials are lost"
    );
    assert_eq!(house.fake.actions(), [Action::Provision, Action::Bind]);
}

#[tokio::test]
async fn a_lost_run_fails_and_says_so_unless_the_bundle_wants_it_again() {
    for (policy, state, runs) in [("fail", "failed", 1), ("rerun", "succeeded", 2)] {
        let house = House::new();
        let manifest = MANIFEST.replace(
            "async: optional",
            &format!("async: optional\non_lost: {policy}"),
        );
        house.write("db", &manifest);
        let room = house.open().await;
        house.fake.plays(Action::Provision, Play::well().held());
        let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
        until("it runs", async || house.fake.actions().len() == 1).await;
        house.fake.plays(Action::Provision, Play::well());
        house.fake.lose();
        let operation = operation.as_str().expect("an operation");
        let ended = room.until_done("i", operation).await;
        assert_eq!(ended["state"], state, "{policy}: {ended}");
        let ordered = house.fake.ordered();
        assert_eq!(ordered.len(), runs, "{policy}");
        let keys: Vec<_> = ordered.iter().map(|it| &it.idempotency_key).collect();
        assert!(
            keys.iter().all(|key| *key == keys[0]),
            "one key for all attempts"
        );
        let attempts: Vec<u32> = ordered.iter().map(|it| it.name.attempt).collect();
        assert_eq!(attempts, (1..=runs as u32).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_runner_that_does_not_answer_is_waited_for_and_nothing_is_run_twice() {
    let house = House::new();
    let room = house.open().await;
    house.fake.is_silent(true);
    let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
    house.fake.plays(Action::Provision, Play::well().held());
    house.fake.is_silent(false);
    until("it runs", async || house.fake.actions().len() == 1).await;
    house.fake.is_silent(true);
    house.fake.release();
    house.fake.is_silent(false);
    let operation = operation.as_str().expect("an operation");
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(house.fake.ordered().len(), 1);
}

#[tokio::test]
async fn a_lost_run_is_not_made_again_before_it_has_certainly_ended() {
    let house = House::new();
    house.write(
        "db",
        &MANIFEST.replace("async: optional", "async: optional\non_lost: rerun"),
    );
    let room = house.open().await;
    house.fake.plays(Action::Provision, Play::well().held());
    let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || house.fake.actions().len() == 1).await;
    house.fake.plays(Action::Provision, Play::well());
    house.fake.is_stubborn(true);
    house.fake.lose();
    until("it was tried twice", async || {
        house.fake.stops_in_vain() >= 2
    })
    .await;
    assert_eq!(house.fake.ordered().len(), 1, "nothing is run beside it");
    let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
    until("polls are told", async || {
        let answer = room.get(&path).await;
        assert_eq!(answer["state"], "in progress");
        let told = answer["description"].as_str().unwrap_or_default();
        told.contains("certain that it has ended")
    })
    .await;
    house.fake.is_stubborn(false);
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(house.fake.ordered().len(), 2);
}

#[tokio::test]
async fn what_a_lost_run_had_set_is_told_to_the_clean_up_and_to_the_next_attempt() {
    for (policy, next) in [("fail", Action::Deprovision), ("rerun", Action::Provision)] {
        let house = House::new();
        let manifest = MANIFEST.replace(
            "async: optional",
            &format!("async: optional\non_lost: {policy}"),
        );
        house.write("db", &manifest);
        let room = house.open().await;
        let held = Play::well().state(json!({ "half": "made" })).held();
        house.fake.plays(Action::Provision, held);
        let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
        until("it runs", async || house.fake.actions().len() == 1).await;
        house.fake.plays(Action::Provision, Play::exits(1));
        house.fake.lose();
        let operation = operation.as_str().expect("an operation");
        assert_eq!(room.until_done("i", operation).await["state"], "failed");
        if policy == "fail" {
            room.send(room.deprovision("i")).await.is(200);
        }
        assert_eq!(house.fake.actions().last(), Some(&next));
        let vars = house.fake.last_vars();
        assert_eq!(vars.get("state_half"), Some(&json!("made")), "{policy}");
    }
}

#[tokio::test]
async fn a_run_is_found_although_it_could_not_be_ordered_any_more() {
    let mut house = House::new();
    let manifest = MANIFEST.replace("async: optional", "async: optional\nsecrets: [server]");
    house.write("db", &manifest);
    house.has_secret = true;
    let room = house.open().await;
    let held = Play::well().state(json!({ "db": "d1" })).held();
    house.fake.plays(Action::Provision, held);
    let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || house.fake.actions().len() == 1).await;
    room.crash();
    house.has_secret = false;
    let room = house.open().await;
    house.fake.release();
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    let refused = room.send(room.provision("other")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("operator"), "{sentence}");
    house.has_secret = true;
    let room = house.open().await;
    room.send(room.deprovision("i")).await.is(200);
    assert_eq!(house.fake.last_vars()["state_db"], json!("d1"));
}

#[tokio::test]
async fn a_start_that_takes_for_ever_is_given_up_when_the_instance_is_deleted() {
    let house = House::new();
    let room = house.open().await;
    house.fake.is_slow(true);
    room.send(room.provision("i").later()).await.is(202);
    until("it starts", async || house.fake.slow_starts() == 1).await;
    house.fake.is_slow(false);
    let accepted = room.send(room.deprovision("i").later()).await.is(202);
    let operation = accepted["operation"].as_str().expect("an operation");
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(house.fake.actions(), [Action::Deprovision]);
}

#[tokio::test]
async fn a_start_that_takes_longer_than_the_deadline_has_failed() {
    let house = House::new();
    house.write(
        "db",
        &MANIFEST.replace("async: optional", "async: optional\ndeadline: 1s"),
    );
    let room = house.open().await;
    house.fake.is_slow(true);
    let refused = room.send(room.provision("i")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("longer than it may"), "{sentence}");
    assert_eq!(house.fake.slow_starts(), 1);
}

#[tokio::test]
async fn a_run_that_cannot_be_removed_does_not_keep_the_others() {
    let house = House::new();
    let room = house.open().await;
    house.fake.plays(Action::Provision, Play::well().held());
    let operation = room.send(room.provision("stuck").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || house.fake.left() == 1).await;
    house.fake.sticks();
    house.fake.release();
    assert_eq!(
        room.until_done("stuck", operation).await["state"],
        "succeeded"
    );
    house.fake.plays(Action::Provision, Play::well());
    for nth in 0..12 {
        room.send(room.provision(&format!("i{nth}"))).await.is(201);
    }
    until("only the stuck one is left", async || {
        house.fake.left() == 1
    })
    .await;
}

#[tokio::test]
async fn a_container_is_waited_for_while_there_is_no_engine_to_ask_and_none_is_begun_without_one() {
    let mut house = House::new();
    let image = format!(
        "async: optional\nimage: example.com/db@sha256:{}",
        "a".repeat(64)
    );
    house.write("db", &MANIFEST.replace("async: optional", &image));
    house.has_engine = true;
    let room = house.open().await;
    house.fake.plays(Action::Provision, Play::well().held());
    let operation = room.send(room.provision("i").later()).await.is(202)["operation"].clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || house.fake.actions().len() == 1).await;
    room.crash();
    house.has_engine = false;
    let room = house.open().await;
    let path = format!("/admin/v1/operations/{operation}");
    until("it was taken over", async || {
        room.get(&path).await["claims"] == 2
    })
    .await;
    room.send(room.provision("other")).await.is(500);
    assert_eq!(
        room.get(&path).await["state"],
        "running",
        "it is not given up"
    );
    room.crash();
    house.has_engine = true;
    let room = house.open().await;
    house.fake.release();
    assert_eq!(room.until_done("i", operation).await["state"], "succeeded");
    assert_eq!(house.fake.actions(), [Action::Provision], "one run");
}
