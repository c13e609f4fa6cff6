//! Brokers that crash while runs continue: one run per attempt in every case.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST, until};
use super::instances::text_of;
use serde_json::json;
use sutler_bundle::Action;

/// Regression: R6, R10.
#[tokio::test]
async fn a_run_that_outlives_its_broker_is_adopted_and_its_output_is_kept_once() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    let held = Script::well()
        .with_output("one\n")
        .with_output("two\n")
        .state(json!({ "db": "d1" }))
        .held();
    fixture.fake.set_script(Action::Provision, held);
    let operation = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("its output is kept", async || {
        text_of(&broker.send(broker.log(operation)).await.json) == "one\ntwo\n"
    })
    .await;
    broker.crash();
    let broker = fixture.open().await;
    until("it is adopted", async || {
        let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
        let answer = broker.get(&path).await;
        answer["description"]
            .as_str()
            .unwrap_or_default()
            .contains("goes on")
    })
    .await;
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.actions(), [Action::Provision], "one run");
    let log = broker.send(broker.log(operation)).await.is(200);
    assert_eq!(text_of(&log), "one\ntwo\n");
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(fixture.fake.last_vars()["state_db"], json!("d1"));
    until("nothing is left", async || fixture.fake.left() == 0).await;
}

/// Regression: R8.
#[tokio::test]
async fn a_run_that_ended_while_no_broker_was_there_is_read() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let held = Script::well().credentials(json!({ "user": "u1" })).held();
    fixture.fake.set_script(Action::Bind, held);
    let operation = broker
        .send(broker.bind("i", "b").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || fixture.fake.actions().len() == 2).await;
    broker.crash();
    fixture.fake.release();
    let broker = fixture.open().await;
    let ended = broker.until_done("i/service_bindings/b", operation).await;
    assert_eq!(ended["state"], "succeeded");
    let there = broker.send(broker.fetch_binding("i", "b")).await.is(200);
    assert_eq!(
        there["credentials"],
        json!({ "user": "u1" }),
        "no credentials are lost"
    );
    assert_eq!(fixture.fake.actions(), [Action::Provision, Action::Bind]);
}

#[tokio::test]
async fn a_lost_run_fails_with_a_sentence_unless_the_bundle_allows_a_rerun() {
    for (policy, state, runs) in [("fail", "failed", 1), ("rerun", "succeeded", 2)] {
        let fixture = Fixture::new();
        let manifest = MANIFEST.replace(
            "async: optional",
            &format!("async: optional\non_lost: {policy}"),
        );
        fixture.write("db", &manifest);
        let broker = fixture.open().await;
        fixture
            .fake
            .set_script(Action::Provision, Script::well().held());
        let operation = broker
            .send(broker.provision("i").asynchronous())
            .await
            .is(202)["operation"]
            .clone();
        until("it runs", async || fixture.fake.actions().len() == 1).await;
        fixture.fake.set_script(Action::Provision, Script::well());
        fixture.fake.lose();
        let operation = operation.as_str().expect("an operation");
        let ended = broker.until_done("i", operation).await;
        assert_eq!(ended["state"], state, "{policy}: {ended}");
        let started_specs = fixture.fake.started_specs();
        assert_eq!(started_specs.len(), runs, "{policy}");
        let keys: Vec<_> = started_specs.iter().map(|it| &it.idempotency_key).collect();
        assert!(
            keys.iter().all(|key| *key == keys[0]),
            "one key for all attempts"
        );
        let attempts: Vec<u32> = started_specs.iter().map(|it| it.name.attempt).collect();
        assert_eq!(attempts, (1..=runs as u32).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_runner_that_does_not_answer_is_waited_for_and_nothing_is_run_twice() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture.fake.set_unavailable(true);
    let operation = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    fixture
        .fake
        .set_script(Action::Provision, Script::well().held());
    fixture.fake.set_unavailable(false);
    until("it runs", async || fixture.fake.actions().len() == 1).await;
    fixture.fake.set_unavailable(true);
    fixture.fake.release();
    fixture.fake.set_unavailable(false);
    let operation = operation.as_str().expect("an operation");
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.started_specs().len(), 1);
}

#[tokio::test]
async fn a_lost_run_is_not_made_again_before_it_has_certainly_ended() {
    let fixture = Fixture::new();
    fixture.write(
        "db",
        &MANIFEST.replace("async: optional", "async: optional\non_lost: rerun"),
    );
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, Script::well().held());
    let operation = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || fixture.fake.actions().len() == 1).await;
    fixture.fake.set_script(Action::Provision, Script::well());
    fixture.fake.fail_stops(true);
    fixture.fake.lose();
    until("it was tried twice", async || {
        fixture.fake.failed_stops() >= 2
    })
    .await;
    assert_eq!(
        fixture.fake.started_specs().len(),
        1,
        "nothing is run beside it"
    );
    let path = format!("/v2/service_instances/i/last_operation?operation={operation}");
    until("polls are told", async || {
        let answer = broker.get(&path).await;
        assert_eq!(answer["state"], "in progress");
        let description = answer["description"].as_str().unwrap_or_default();
        description.contains("certain that it has ended")
    })
    .await;
    fixture.fake.fail_stops(false);
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.started_specs().len(), 2);
}

#[tokio::test]
async fn state_set_by_a_lost_run_is_passed_to_clean_up_and_to_the_next_attempt() {
    for (policy, next) in [("fail", Action::Deprovision), ("rerun", Action::Provision)] {
        let fixture = Fixture::new();
        let manifest = MANIFEST.replace(
            "async: optional",
            &format!("async: optional\non_lost: {policy}"),
        );
        fixture.write("db", &manifest);
        let broker = fixture.open().await;
        let held = Script::well().state(json!({ "half": "made" })).held();
        fixture.fake.set_script(Action::Provision, held);
        let operation = broker
            .send(broker.provision("i").asynchronous())
            .await
            .is(202)["operation"]
            .clone();
        until("it runs", async || fixture.fake.actions().len() == 1).await;
        fixture.fake.set_script(Action::Provision, Script::exits(1));
        fixture.fake.lose();
        let operation = operation.as_str().expect("an operation");
        assert_eq!(broker.until_done("i", operation).await["state"], "failed");
        if policy == "fail" {
            broker.send(broker.deprovision("i")).await.is(200);
        }
        assert_eq!(fixture.fake.actions().last(), Some(&next));
        let vars = fixture.fake.last_vars();
        assert_eq!(vars.get("state_half"), Some(&json!("made")), "{policy}");
    }
}

#[tokio::test]
async fn a_run_is_found_although_it_could_not_be_ordered_any_more() {
    let mut fixture = Fixture::new();
    let manifest = MANIFEST.replace("async: optional", "async: optional\nsecrets: [server]");
    fixture.write("db", &manifest);
    fixture.has_secret = true;
    let broker = fixture.open().await;
    let held = Script::well().state(json!({ "db": "d1" })).held();
    fixture.fake.set_script(Action::Provision, held);
    let operation = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || fixture.fake.actions().len() == 1).await;
    broker.crash();
    fixture.has_secret = false;
    let broker = fixture.open().await;
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    let refused = broker.send(broker.provision("other")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("operator"), "{sentence}");
    fixture.has_secret = true;
    let broker = fixture.open().await;
    broker.send(broker.deprovision("i")).await.is(200);
    assert_eq!(fixture.fake.last_vars()["state_db"], json!("d1"));
}

#[tokio::test]
async fn a_start_that_takes_for_ever_is_given_up_when_the_instance_is_deleted() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture.fake.block_starts(true);
    broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202);
    until("it starts", async || fixture.fake.slow_starts() == 1).await;
    fixture.fake.block_starts(false);
    let accepted = broker
        .send(broker.deprovision("i").asynchronous())
        .await
        .is(202);
    let operation = accepted["operation"].as_str().expect("an operation");
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.actions(), [Action::Deprovision]);
}

#[tokio::test]
async fn a_start_that_takes_longer_than_the_deadline_has_failed() {
    let fixture = Fixture::new();
    fixture.write(
        "db",
        &MANIFEST.replace("async: optional", "async: optional\ndeadline: 1s"),
    );
    let broker = fixture.open().await;
    fixture.fake.block_starts(true);
    let refused = broker.send(broker.provision("i")).await.is(500);
    let sentence = refused["description"].as_str().unwrap_or_default();
    assert!(sentence.contains("longer than it may"), "{sentence}");
    assert_eq!(fixture.fake.slow_starts(), 1);
}

#[tokio::test]
async fn a_run_that_cannot_be_removed_does_not_keep_the_others() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, Script::well().held());
    let operation = broker
        .send(broker.provision("stuck").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || fixture.fake.left() == 1).await;
    fixture.fake.block_removals();
    fixture.fake.release();
    assert_eq!(
        broker.until_done("stuck", operation).await["state"],
        "succeeded"
    );
    fixture.fake.set_script(Action::Provision, Script::well());
    for nth in 0..12 {
        broker
            .send(broker.provision(&format!("i{nth}")))
            .await
            .is(201);
    }
    until("only the stuck one is left", async || {
        fixture.fake.left() == 1
    })
    .await;
}

#[tokio::test]
async fn without_an_engine_a_started_container_is_waited_for_and_no_other_is_started() {
    let mut fixture = Fixture::new();
    let image = format!(
        "async: optional\nimage: example.com/db@sha256:{}",
        "a".repeat(64)
    );
    fixture.write("db", &MANIFEST.replace("async: optional", &image));
    fixture.has_engine = true;
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, Script::well().held());
    let operation = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202)["operation"]
        .clone();
    let operation = operation.as_str().expect("an operation");
    until("it runs", async || fixture.fake.actions().len() == 1).await;
    broker.crash();
    fixture.has_engine = false;
    let broker = fixture.open().await;
    let path = format!("/admin/v1/operations/{operation}");
    until("it was taken over", async || {
        broker.get(&path).await["claims"] == 2
    })
    .await;
    broker.send(broker.provision("other")).await.is(500);
    assert_eq!(
        broker.get(&path).await["state"],
        "running",
        "it is not given up"
    );
    broker.crash();
    fixture.has_engine = true;
    let broker = fixture.open().await;
    fixture.fake.release();
    assert_eq!(
        broker.until_done("i", operation).await["state"],
        "succeeded"
    );
    assert_eq!(fixture.fake.actions(), [Action::Provision], "one run");
}
