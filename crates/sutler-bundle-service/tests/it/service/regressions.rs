//! Bugs that an earlier broker of bundles shipped, each by its number in `docs/regressions.md`.
//!
//! Rows that other files hold as a matter of course are tagged there.

use super::fake::Play;
use super::house::{House, Room, until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use sutler_bundle::Action;

fn operation(accepted: &Value) -> String {
    let name = accepted["operation"].as_str();
    name.expect("an operation").to_owned()
}

/// Deletes that failed left a namespace and a pod each, and were repeated for ever.
///
/// Regression: R15.
#[tokio::test]
async fn fifty_failing_deprovisions_are_fifty_runs_and_leave_nothing() {
    const DELETES: usize = 50;
    let mut house = House::new();
    house.real = true;
    let count = house.beside("count");
    fs::write(&count, "").expect("a file");
    fs::set_permissions(&count, fs::Permissions::from_mode(0o666)).expect("permissions");
    let text = format!("echo \"$SUTLER_OPERATION\" >> {}\nexit 1", count.display());
    house.script_that("db", "deprovision", &text);
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    for _ in 0..DELETES {
        room.send(room.deprovision("i")).await.is(500);
    }
    until("what they left is removed", async || house.runs() == 0).await;
    let runs = fs::read_to_string(&count).expect("it is counted");
    let runs: Vec<&str> = runs.lines().collect();
    assert_eq!(runs.len(), DELETES, "one run for each, and none by itself");
    let operations: std::collections::BTreeSet<&str> = runs.iter().copied().collect();
    assert_eq!(operations.len(), DELETES, "each operation ran once");
    house.script_that("db", "deprovision", "exit 0");
    room.send(room.fetch("i")).await.is(200);
}

/// A service was withdrawn between the look at it and the record of its instance, which then pointed at
/// nothing.
///
/// Regression: R20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provision_while_its_bundle_is_withdrawn_is_served_or_refused_and_never_left_hanging() {
    const PROVISIONS: usize = 40;
    let house = House::new();
    let mut room = house.open().await;
    room.send(room.provision("i0")).await.is(201);
    let mut asked = Vec::with_capacity(PROVISIONS);
    for nth in 0..PROVISIONS {
        if nth == PROVISIONS / 4 {
            fs::remove_dir_all(house.bundles().join("db")).expect("it is withdrawn");
        }
        let (ask, url) = (room.provision(&format!("i{nth}")), room.url());
        asked.push(tokio::spawn(async move { ask.send_to(&url).await.status }));
        if nth == PROVISIONS / 2 {
            let snapshot = room.refresh().await;
            assert!(snapshot.listed.is_empty());
        }
    }
    let mut served = 0;
    for (nth, answer) in asked.into_iter().enumerate() {
        let id = format!("i{nth}");
        match answer.await.expect("an answer") {
            200 | 201 => {
                served += 1;
                room.send(room.fetch(&id)).await.is(200);
                room.send(room.deprovision(&id)).await.is(200);
            }
            400 => {
                room.send(room.fetch(&id)).await.is(404);
                room.send(room.deprovision(&id)).await.is(410);
            }
            other => panic!("{id}: {other}"),
        }
    }
    let late = room.send(room.provision("late")).await.is(400);
    assert!(late["description"].is_string(), "{late}");
    let actions = house.fake.actions();
    let made = actions.iter().filter(|it| **it == Action::Provision);
    assert_eq!(made.count(), served, "nothing was made for a refusal");
}

/// Errors of the store were swallowed, and the catalog was called refreshed.
///
/// Regression: R24.
#[tokio::test]
async fn bundles_that_the_store_does_not_take_are_told_of_and_what_was_offered_stays() {
    let house = House::new();
    let mut room = house.open().await;
    house.write(
        "second",
        &super::house::MANIFEST
            .replace("db", "two")
            .replace("-id", "-two"),
    );
    room.look();
    let snapshot = room.look();
    assert_eq!(snapshot.listed.len(), 2);
    house.refuses.store(true, Ordering::Relaxed);
    let refused = room.offer(snapshot.clone()).await.expect_err("it is told");
    assert!(!refused.to_string().is_empty());
    assert_eq!(offered(&room).await, ["db"]);
    house.refuses.store(false, Ordering::Relaxed);
    room.send(room.provision("i")).await.is(201);
    room.offer(snapshot)
        .await
        .expect("the next time it is taken");
    assert_eq!(offered(&room).await, ["db", "two"]);
}

async fn offered(room: &Room) -> Vec<String> {
    let catalog = room.get("/v2/catalog").await;
    let services = catalog["services"].as_array().into_iter().flatten();
    let names = services.filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

/// When the state of an action could not be written, its credentials were dropped with it.
///
/// Regression: R26.
#[tokio::test]
async fn credentials_outlast_a_store_that_takes_nothing_when_the_run_ends() {
    let house = House::new();
    let room = house.open().await;
    room.send(room.provision("i")).await.is(201);
    let held = Play::well()
        .credentials(json!({ "user": "u1" }))
        .state(json!({ "seen": 1 }))
        .binding_state(json!({ "login": "l1" }))
        .held();
    house.fake.plays(Action::Bind, held);
    let accepted = room.send(room.bind("i", "b").later()).await.is(202);
    until("it runs", async || house.fake.watches() == 2).await;
    house.refuses.store(true, Ordering::Relaxed);
    house.fake.release();
    let path = format!(
        "/v2/service_instances/i/service_bindings/b/last_operation?operation={}",
        operation(&accepted)
    );
    let polled = room.get(&path).await;
    assert_ne!(polled["state"], "failed", "{polled}");
    room.crash();
    house.refuses.store(false, Ordering::Relaxed);
    let room = house.open().await;
    let ended = room
        .until_done("i/service_bindings/b", &operation(&accepted))
        .await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let there = room.send(room.fetch_binding("i", "b")).await.is(200);
    assert_eq!(there["credentials"], json!({ "user": "u1" }));
    room.send(room.unbind("i", "b")).await.is(200);
    let vars = house.fake.last_vars();
    assert_eq!(
        (&vars["state_seen"], &vars["binding_state_login"]),
        (&json!(1), &json!("l1"))
    );
    let actions = house.fake.actions();
    let binds = actions.iter().filter(|it| **it == Action::Bind).count();
    assert_eq!(binds, 1, "one run");
}

/// A watch that ended before its run was taken for success, and what it watched was removed under it.
///
/// Regression: R30.
#[tokio::test]
async fn a_run_is_tracked_however_often_the_watch_of_it_is_cut() {
    let house = House::new();
    let room = house.open().await;
    house.fake.plays(Action::Provision, Play::well().held());
    let accepted = room.send(room.provision("i").later()).await.is(202);
    let path = format!(
        "/v2/service_instances/i/last_operation?operation={}",
        operation(&accepted)
    );
    for cut in 1..=6 {
        until("it is watched", async || house.fake.watches() == cut).await;
        house.fake.drop_watch();
        let polled = room.get(&path).await;
        assert_eq!(polled["state"], "in progress", "after {cut} cuts");
        assert_eq!(house.fake.left(), 1, "nobody removed it");
    }
    until("it is watched again", async || house.fake.watches() == 7).await;
    house.fake.release();
    let ended = room.until_done("i", &operation(&accepted)).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(house.fake.actions(), [Action::Provision], "one run");
}
