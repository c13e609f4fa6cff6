//! Versions: instances keep the one that made them, whatever happens to the folder.

use super::fake_runner::Script;
use super::fixture::{Fixture, MANIFEST};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_bundle::Action;
use sutler_bundle_service::Snapshot;
use sutler_runner::{RunSpec, Runnable};

fn folder(run_spec: &RunSpec) -> String {
    match &run_spec.runnable {
        Runnable::Folder { path, .. } => path.display().to_string(),
        Runnable::Image { reference, .. } => reference.clone(),
    }
}

/// Regression: R19, R21.
#[tokio::test]
async fn an_instance_keeps_the_version_that_made_it_and_new_ones_get_the_new_one() {
    let fixture = Fixture::new();
    let mut broker = fixture.open().await;
    fixture.fake.set_script(Action::Provision, Script::well());
    broker.send(broker.provision("old")).await.is(201);
    fixture.write("db", &MANIFEST.replace("1.2.3", "2.0.0"));
    broker.refresh().await;
    broker.send(broker.provision("new")).await.is(201);
    let [old, new] = &fixture.fake.started_specs()[..] else {
        panic!("two runs");
    };
    assert_ne!(folder(old), folder(new));
    assert_eq!(new.vars.0["_apb_bundle_version"], json!("2.0.0"));

    fs::remove_dir_all(fixture.bundles().join("db")).expect("it is withdrawn");
    let snapshot = broker.refresh().await;
    assert!(snapshot.listed.is_empty());
    broker.send(broker.provision("late")).await.is(400);
    fixture.fake.set_script(
        Action::Bind,
        Script::well().credentials(json!({ "user": "u" })),
    );
    broker.send(broker.bind("old", "b")).await.is(201);
    broker.send(broker.unbind("old", "b")).await.is(200);
    broker.send(broker.deprovision("old")).await.is(200);
    for run_spec in &fixture.fake.started_specs()[2..] {
        assert_eq!(folder(run_spec), folder(&fixture.fake.started_specs()[0]));
        assert_eq!(run_spec.vars.0["_apb_bundle_version"], json!("1.2.3"));
    }
    drop(broker);
    let broker = fixture.open().await;
    broker.send(broker.deprovision("new")).await.is(200);
    let last = fixture.fake.started_specs().pop().expect("a run");
    assert_eq!(
        last.vars.0["_apb_bundle_version"],
        json!("2.0.0"),
        "after a restart too"
    );
}

/// Regression: R19.
#[tokio::test]
async fn a_version_goes_when_neither_the_catalog_nor_an_instance_needs_it() {
    let fixture = Fixture::new();
    let mut broker = fixture.open().await;
    broker.send(broker.provision("old")).await.is(201);
    let digest = |snapshot: &Arc<Snapshot>| snapshot.digests()[0].to_owned();
    let first = digest(&broker.refresh().await);
    fixture.write("db", &MANIFEST.replace("1.2.3", "1.5.0"));
    let second = digest(&broker.refresh().await);
    fixture.write("db", &MANIFEST.replace("1.2.3", "2.0.0"));
    let third = digest(&broker.refresh().await);
    let begun = Instant::now();
    assert!(broker.sweep(begun).await.is_empty());
    let asynchronous = begun + Duration::from_secs(3600);
    assert_eq!(broker.sweep(asynchronous).await, [second], "nobody has it");
    // It moves to a plan of the newest version, and is still served by the version that made it.
    let moved = broker.update("old", json!({ "plan_id": "large-id" }));
    broker.send(moved).await.is(200);
    let asynchronous = asynchronous + Duration::from_secs(7200);
    assert!(broker.sweep(asynchronous).await.is_empty());
    assert!(
        broker
            .sweep(asynchronous + Duration::from_secs(7200))
            .await
            .is_empty()
    );
    broker.send(broker.deprovision("old")).await.is(200);
    let asynchronous = asynchronous + Duration::from_secs(14_400);
    assert!(broker.sweep(asynchronous).await.is_empty());
    let swept = broker.sweep(asynchronous + Duration::from_secs(3600)).await;
    assert_eq!(swept, [first], "its instance is gone");
    assert_eq!(fixture.stored_versions(), [third]);
}
