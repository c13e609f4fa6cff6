//! Registries that are left out of the configuration, renamed, or put back, while there are instances.

use super::town::{Hall, Played, Town, manifest};
use crate::service::fake::Play;
use serde_json::json;
use std::sync::Arc;
use sutler_bundle::Action;

const NOTHING: [&str; 0] = [];

/// One registry with one bundle that gives credentials.
async fn with_hello() -> (Town, Arc<Played>, Hall) {
    let (town, registry, hall) = Town::with_hello().await;
    let given = Play::well().credentials(json!({ "user": "u" }));
    town.fake.plays(Action::Bind, given);
    (town, registry, hall)
}

async fn registries(hall: &Hall) -> Vec<(String, bool)> {
    let view = hall.shop.view().await.expect("the store answers");
    let all = view.registries.into_iter();
    all.map(|it| (it.name, it.configured)).collect()
}

#[tokio::test]
async fn a_registry_that_is_left_out_is_withdrawn_and_its_instances_are_served() {
    let (mut town, _registry, hall) = with_hello().await;
    assert_eq!(hall.provision("i", "").await.0, 201);
    hall.close().await;
    // It was the only one.
    town.registries.clear();
    let hall = town.open().await;
    assert_eq!(
        hall.offers().await,
        NOTHING,
        "nothing of it is offered from the start"
    );
    hall.refresh().await;
    hall.delete().await;
    let why = "org/hello:latest: its registry is not configured any more";
    assert_eq!(hall.specs("dh").await, [why]);
    let (status, refused) = hall.provision("j", "").await;
    assert_eq!(status, 400);
    let told = refused["description"].as_str().unwrap_or_default();
    assert!(
        told.contains("its registry is not configured any more"),
        "{told}"
    );
    assert_eq!(hall.bind("i", "b").await, 201);
    assert_eq!(hall.unbind("i", "b").await, 200);
    assert_eq!(hall.deprovision("i").await, 200);
    // First its spec goes, then the registry is forgotten, and nobody shows it any more.
    hall.delete().await;
    assert_eq!(registries(&hall).await, [("dh".to_owned(), false)]);
    hall.delete().await;
    assert_eq!(registries(&hall).await, []);
}

#[tokio::test]
async fn a_registry_that_is_put_back_offers_what_it_offered() {
    let (mut town, registry, hall) = with_hello().await;
    assert_eq!(hall.provision("i", "").await.0, 201);
    hall.close().await;
    town.registries.clear();
    let hall = town.open().await;
    hall.refresh().await;
    hall.delete().await;
    hall.close().await;
    let fetched = registry.fetched();
    town.registries.push(registry.clone());
    let hall = town.open().await;
    hall.refresh().await;
    assert_eq!(hall.offers().await, ["hello"]);
    assert_eq!(hall.specs("dh").await, ["org/hello:latest"]);
    assert_eq!(registry.fetched(), fetched, "it is known");
    assert_eq!(hall.deprovision("i").await, 200);
}

#[tokio::test]
async fn a_registry_that_is_renamed_is_another_one_and_the_old_instances_stay() {
    let (mut town, _registry, hall) = with_hello().await;
    assert_eq!(hall.provision("old", "").await.0, 201);
    hall.close().await;
    let renamed = Played::new("hub");
    renamed.push("org/hello:latest", &manifest("1.0.0"));
    town.registries = vec![renamed];
    let hall = town.open().await;
    hall.refresh().await;
    assert_eq!(hall.offers().await, ["hello"]);
    let expected = [("hub".to_owned(), true), ("dh".to_owned(), false)];
    assert_eq!(registries(&hall).await, expected);
    assert_eq!(hall.provision("new", "").await.0, 201);
    assert_eq!(hall.bind("old", "b").await, 201);
    // The old spec stays for as long as anybody has an instance of its plan.
    assert_eq!(hall.deprovision("new").await, 200);
    hall.delete().await;
    assert_eq!(hall.specs("dh").await.len(), 1);
    assert_eq!(hall.deprovision("old").await, 200);
    hall.delete().await;
    hall.delete().await;
    assert_eq!(registries(&hall).await, [("hub".to_owned(), true)]);
    assert_eq!(hall.offers().await, ["hello"]);
}

#[tokio::test]
async fn of_two_registries_that_change_places_the_first_is_used() {
    let (one, two) = (Played::new("one"), Played::new("two"));
    one.push("org/hello:latest", &manifest("1.0.0"));
    two.push("org/hello:latest", &manifest("2.0.0"));
    let mut town = Town::with(&[one.clone(), two.clone()]);
    let hall = town.open().await;
    hall.refresh().await;
    assert_eq!(version(&hall).await, "1.0.0");
    assert_eq!(hall.provision("i", "").await.0, 201);
    hall.close().await;
    town.registries = vec![two, one];
    let hall = town.open().await;
    assert_eq!(version(&hall).await, "2.0.0", "before anybody was asked");
    assert_eq!(hall.deprovision("i").await, 200);
}

async fn version(hall: &Hall) -> String {
    let (_, catalog) = hall
        .send("GET", "/v2/catalog", serde_json::Value::Null)
        .await;
    let version = catalog["services"][0]["metadata"]["bundleVersion"].as_str();
    version.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn who_waits_for_the_first_refresh_is_told_what_it_withdrew() {
    let (mut town, _registry, hall) = with_hello().await;
    hall.close().await;
    town.registries.clear();
    let hall = town.open().await;
    hall.shop.refresh().await.expect("the store answers");
    let (status, refused) = hall.provision("j", "").await;
    assert_eq!(status, 400, "{refused}");
    let told = refused["description"].as_str().unwrap_or_default();
    assert!(
        told.contains("its registry is not configured any more"),
        "{told}"
    );
}
