//! Bugs of an earlier broker of bundles, each by its number in `docs/regressions.md`.
//!
//! Rows that tests of other files cover anyway are tagged there.

use super::fake_runner::Script;
use super::fixture::{Fixture, TestBroker, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use sutler_bundle::Action;

fn operation(accepted: &Value) -> String {
    let name = accepted["operation"].as_str();
    name.expect("an operation").to_owned()
}

/// Failed deletes left a namespace and a pod each, and were repeated for ever.
///
/// Regression: R15.
#[tokio::test]
async fn fifty_failing_deprovisions_are_fifty_runs_and_leave_nothing() {
    const DELETES: usize = 50;
    let mut fixture = Fixture::new();
    fixture.real = true;
    let count = fixture.shared_file("count");
    fs::write(&count, "").expect("a file");
    fs::set_permissions(&count, fs::Permissions::from_mode(0o666)).expect("permissions");
    let text = format!("echo \"$SUTLER_OPERATION\" >> {}\nexit 1", count.display());
    fixture.script_that("db", "deprovision", &text);
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    for _ in 0..DELETES {
        broker.send(broker.deprovision("i")).await.is(500);
    }
    until("what they left is removed", async || fixture.runs() == 0).await;
    let runs = fs::read_to_string(&count).expect("it is counted");
    let runs: Vec<&str> = runs.lines().collect();
    assert_eq!(runs.len(), DELETES, "one run for each, and none by itself");
    let operations: std::collections::BTreeSet<&str> = runs.iter().copied().collect();
    assert_eq!(operations.len(), DELETES, "each operation ran once");
    fixture.script_that("db", "deprovision", "exit 0");
    broker.send(broker.fetch("i")).await.is(200);
}

/// A service was withdrawn between reading it and storing its instance, which then referred to nothing.
///
/// Regression: R20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provision_while_its_bundle_is_withdrawn_is_served_or_refused_and_never_left_hanging() {
    const PROVISIONS: usize = 40;
    let fixture = Fixture::new();
    let mut broker = fixture.open().await;
    broker.send(broker.provision("i0")).await.is(201);
    let mut requests = Vec::with_capacity(PROVISIONS);
    for nth in 0..PROVISIONS {
        if nth == PROVISIONS / 4 {
            fs::remove_dir_all(fixture.bundles().join("db")).expect("it is withdrawn");
        }
        let (ask, url) = (broker.provision(&format!("i{nth}")), broker.url());
        requests.push(tokio::spawn(async move { ask.send_to(&url).await.status }));
        if nth == PROVISIONS / 2 {
            let snapshot = broker.refresh().await;
            assert!(snapshot.listed.is_empty());
        }
    }
    let mut served = 0;
    for (nth, answer) in requests.into_iter().enumerate() {
        let id = format!("i{nth}");
        match answer.await.expect("an answer") {
            200 | 201 => {
                served += 1;
                broker.send(broker.fetch(&id)).await.is(200);
                broker.send(broker.deprovision(&id)).await.is(200);
            }
            400 => {
                broker.send(broker.fetch(&id)).await.is(404);
                broker.send(broker.deprovision(&id)).await.is(410);
            }
            other => panic!("{id}: {other}"),
        }
    }
    let late = broker.send(broker.provision("late")).await.is(400);
    assert!(late["description"].is_string(), "{late}");
    let actions = fixture.fake.actions();
    let made = actions.iter().filter(|it| **it == Action::Provision);
    assert_eq!(made.count(), served, "nothing was made for a refusal");
}

/// Errors of the store were ignored, and the catalog was reported as refreshed.
///
/// Regression: R24.
#[tokio::test]
async fn bundles_that_the_store_does_not_take_are_told_of_and_what_was_offered_stays() {
    let fixture = Fixture::new();
    let mut broker = fixture.open().await;
    fixture.write(
        "second",
        &super::fixture::MANIFEST
            .replace("db", "two")
            .replace("-id", "-two"),
    );
    broker.scan();
    let snapshot = broker.scan();
    assert_eq!(snapshot.listed.len(), 2);
    fixture.refuses.store(true, Ordering::Relaxed);
    let refused = broker
        .offer(snapshot.clone())
        .await
        .expect_err("it is told");
    assert!(!refused.to_string().is_empty());
    assert_eq!(offered(&broker).await, ["db"]);
    fixture.refuses.store(false, Ordering::Relaxed);
    broker.send(broker.provision("i")).await.is(201);
    broker
        .offer(snapshot)
        .await
        .expect("the next time it is taken");
    assert_eq!(offered(&broker).await, ["db", "two"]);
}

async fn offered(broker: &TestBroker) -> Vec<String> {
    let catalog = broker.get("/v2/catalog").await;
    let services = catalog["services"].as_array().into_iter().flatten();
    let names = services.filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

/// When the state of an action could not be written, its credentials were dropped with it.
///
/// Regression: R26.
#[tokio::test]
async fn credentials_outlast_a_store_that_takes_nothing_when_the_run_ends() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    broker.send(broker.provision("i")).await.is(201);
    let held = Script::well()
        .credentials(json!({ "user": "u1" }))
        .state(json!({ "seen": 1 }))
        .binding_state(json!({ "login": "l1" }))
        .held();
    fixture.fake.set_script(Action::Bind, held);
    let accepted = broker
        .send(broker.bind("i", "b").asynchronous())
        .await
        .is(202);
    until("it runs", async || fixture.fake.watches() == 2).await;
    fixture.refuses.store(true, Ordering::Relaxed);
    fixture.fake.release();
    let path = format!(
        "/v2/service_instances/i/service_bindings/b/last_operation?operation={}",
        operation(&accepted)
    );
    let polled = broker.get(&path).await;
    assert_ne!(polled["state"], "failed", "{polled}");
    broker.crash();
    fixture.refuses.store(false, Ordering::Relaxed);
    let broker = fixture.open().await;
    let ended = broker
        .until_done("i/service_bindings/b", &operation(&accepted))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let there = broker.send(broker.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"], json!({ "user": "u1" }));
    broker.send(broker.unbind("i", "b")).await.is(200);
    let vars = fixture.fake.last_vars();
    assert_eq!(
        (&vars["state_seen"], &vars["binding_state_login"]),
        (&json!(1), &json!("l1"))
    );
    let actions = fixture.fake.actions();
    let binds = actions.iter().filter(|it| **it == Action::Bind).count();
    assert_eq!(binds, 1, "one run");
}

/// A watch that ended before its run was taken for success, and the watched resources were removed.
///
/// Regression: R30.
#[tokio::test]
async fn a_run_is_tracked_however_often_the_watch_of_it_is_cut() {
    let fixture = Fixture::new();
    let broker = fixture.open().await;
    fixture
        .fake
        .set_script(Action::Provision, Script::well().held());
    let accepted = broker
        .send(broker.provision("i").asynchronous())
        .await
        .is(202);
    let path = format!(
        "/v2/service_instances/i/last_operation?operation={}",
        operation(&accepted)
    );
    for cut in 1..=6 {
        until("it is watched", async || fixture.fake.watches() == cut).await;
        fixture.fake.drop_watch();
        let polled = broker.get(&path).await;
        assert_eq!(polled["state"], "in progress", "after {cut} cuts");
        assert_eq!(fixture.fake.left(), 1, "nobody removed it");
    }
    until("it is watched again", async || fixture.fake.watches() == 7).await;
    fixture.fake.release();
    let ended = broker.until_done("i", &operation(&accepted)).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(fixture.fake.actions(), [Action::Provision], "one run");
}
