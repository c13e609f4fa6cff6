//! Versions: instances keep the one that made them, whatever becomes of the folder.

use super::fake::Play;
use super::house::{House, MANIFEST};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_bundle::Action;
use sutler_bundle_service::Snapshot;
use sutler_runner::{Order, Runnable};

fn folder(order: &Order) -> String {
    match &order.runnable {
        Runnable::Folder { path, .. } => path.display().to_string(),
        Runnable::Image { reference, .. } => reference.clone(),
    }
}

/// Regression: R19, R21.
#[tokio::test]
async fn an_instance_keeps_the_version_that_made_it_and_new_ones_get_the_new_one() {
    let house = House::new();
    let mut room = house.open().await;
    house.fake.plays(Action::Provision, Play::well());
    room.send(room.provision("old")).await.is(201);
    house.write("db", &MANIFEST.replace("1.2.3", "2.0.0"));
    room.refresh().await;
    room.send(room.provision("new")).await.is(201);
    let [old, new] = &house.fake.ordered()[..] else {
        panic!("two runs");
    };
    assert_ne!(folder(old), folder(new));
    assert_eq!(new.vars.0["_apb_bundle_version"], json!("2.0.0"));

    fs::remove_dir_all(house.bundles().join("db")).expect("it is withdrawn");
    let snapshot = room.refresh().await;
    assert!(snapshot.listed.is_empty());
    room.send(room.provision("late")).await.is(400);
    house.fake.plays(
        Action::Bind,
        Play::well().credentials(json!({ "user": "u" })),
    );
    room.send(room.bind("old", "b")).await.is(201);
    room.send(room.unbind("old", "b")).await.is(200);
    room.send(room.deprovision("old")).await.is(200);
    for order in &house.fake.ordered()[2..] {
        assert_eq!(folder(order), folder(&house.fake.ordered()[0]));
        assert_eq!(order.vars.0["_apb_bundle_version"], json!("1.2.3"));
    }
    drop(room);
    let room = house.open().await;
    room.send(room.deprovision("new")).await.is(200);
    let last = house.fake.ordered().pop().expect("a run");
    assert_eq!(
        last.vars.0["_apb_bundle_version"],
        json!("2.0.0"),
        "after a restart too"
    );
}

/// Regression: R19.
#[tokio::test]
async fn a_version_goes_when_neither_the_catalog_nor_an_instance_needs_it() {
    let house = House::new();
    let mut room = house.open().await;
    room.send(room.provision("old")).await.is(201);
    let digest = |snapshot: &Arc<Snapshot>| snapshot.digests()[0].to_owned();
    let first = digest(&room.refresh().await);
    house.write("db", &MANIFEST.replace("1.2.3", "1.5.0"));
    let second = digest(&room.refresh().await);
    house.write("db", &MANIFEST.replace("1.2.3", "2.0.0"));
    let third = digest(&room.refresh().await);
    let begun = Instant::now();
    assert!(room.sweep(begun).await.is_empty());
    let later = begun + Duration::from_secs(3600);
    assert_eq!(room.sweep(later).await, [second], "nobody has it");
    // It moves to a plan of the newest version, and is still served by the one that made it.
    let moved = room.update("old", json!({ "plan_id": "large-id" }));
    room.send(moved).await.is(200);
    let later = later + Duration::from_secs(7200);
    assert!(room.sweep(later).await.is_empty());
    assert!(
        room.sweep(later + Duration::from_secs(7200))
            .await
            .is_empty()
    );
    room.send(room.deprovision("old")).await.is(200);
    let later = later + Duration::from_secs(14_400);
    assert!(room.sweep(later).await.is_empty());
    let swept = room.sweep(later + Duration::from_secs(3600)).await;
    assert_eq!(swept, [first], "its instance is gone");
    assert_eq!(house.shelf(), [third]);
}
