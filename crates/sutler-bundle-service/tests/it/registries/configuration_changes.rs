//! Registries that are removed from the configuration, renamed, or restored, while there are instances.

use super::fixture::{FakeRegistry, Fixture, TestBroker, manifest};
use crate::service::fake_runner::Script;
use serde_json::json;
use std::sync::Arc;
use sutler_bundle::Action;

const NOTHING: [&str; 0] = [];

/// One registry with one bundle whose actions return credentials.
async fn with_hello() -> (Fixture, Arc<FakeRegistry>, TestBroker) {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    let given = Script::well().credentials(json!({ "user": "u" }));
    fixture.fake.set_script(Action::Bind, given);
    (fixture, registry, broker)
}

async fn registries(broker: &TestBroker) -> Vec<(String, bool)> {
    let view = broker.publisher.view().await.expect("the store answers");
    let all = view.registries.into_iter();
    all.map(|it| (it.name, it.configured)).collect()
}

#[tokio::test]
async fn a_registry_that_is_left_out_is_withdrawn_and_its_instances_are_served() {
    let (mut fixture, _registry, broker) = with_hello().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    broker.close().await;
    // It was the only one.
    fixture.registries.clear();
    let broker = fixture.open().await;
    assert_eq!(
        broker.offers().await,
        NOTHING,
        "nothing of it is offered from the start"
    );
    broker.refresh().await;
    broker.delete().await;
    let why = "org/hello:latest: its registry is not configured any more";
    assert_eq!(broker.specs("dh").await, [why]);
    let (status, refused) = broker.provision("j", "").await;
    assert_eq!(status, 400);
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.contains("its registry is not configured any more"),
        "{description}"
    );
    assert_eq!(broker.bind("i", "b").await, 201);
    assert_eq!(broker.unbind("i", "b").await, 200);
    assert_eq!(broker.deprovision("i").await, 200);
    // First its spec is deleted, then the registry; then it is not shown any more.
    broker.delete().await;
    assert_eq!(registries(&broker).await, [("dh".to_owned(), false)]);
    broker.delete().await;
    assert_eq!(registries(&broker).await, []);
}

#[tokio::test]
async fn a_restored_registry_offers_its_bundles_again() {
    let (mut fixture, registry, broker) = with_hello().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    broker.close().await;
    fixture.registries.clear();
    let broker = fixture.open().await;
    broker.refresh().await;
    broker.delete().await;
    broker.close().await;
    let fetched = registry.fetched();
    fixture.registries.push(registry.clone());
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.specs("dh").await, ["org/hello:latest"]);
    assert_eq!(registry.fetched(), fetched, "it is known");
    assert_eq!(broker.deprovision("i").await, 200);
}

#[tokio::test]
async fn a_registry_that_is_renamed_is_another_one_and_the_old_instances_stay() {
    let (mut fixture, _registry, broker) = with_hello().await;
    assert_eq!(broker.provision("old", "").await.0, 201);
    broker.close().await;
    let renamed = FakeRegistry::new("hub");
    renamed.push("org/hello:latest", &manifest("1.0.0"));
    fixture.registries = vec![renamed];
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello"]);
    let expected = [("hub".to_owned(), true), ("dh".to_owned(), false)];
    assert_eq!(registries(&broker).await, expected);
    assert_eq!(broker.provision("new", "").await.0, 201);
    assert_eq!(broker.bind("old", "b").await, 201);
    // The old spec stays while any instance uses its plan.
    assert_eq!(broker.deprovision("new").await, 200);
    broker.delete().await;
    assert_eq!(broker.specs("dh").await.len(), 1);
    assert_eq!(broker.deprovision("old").await, 200);
    broker.delete().await;
    broker.delete().await;
    assert_eq!(registries(&broker).await, [("hub".to_owned(), true)]);
    assert_eq!(broker.offers().await, ["hello"]);
}

#[tokio::test]
async fn of_two_registries_that_change_places_the_first_is_used() {
    let (one, two) = (FakeRegistry::new("one"), FakeRegistry::new("two"));
    one.push("org/hello:latest", &manifest("1.0.0"));
    two.push("org/hello:latest", &manifest("2.0.0"));
    let mut fixture = Fixture::with(&[one.clone(), two.clone()]);
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(version(&broker).await, "1.0.0");
    assert_eq!(broker.provision("i", "").await.0, 201);
    broker.close().await;
    fixture.registries = vec![two, one];
    let broker = fixture.open().await;
    assert_eq!(version(&broker).await, "2.0.0", "before anybody was asked");
    assert_eq!(broker.deprovision("i").await, 200);
}

async fn version(broker: &TestBroker) -> String {
    let (_, catalog) = broker
        .send("GET", "/v2/catalog", serde_json::Value::Null)
        .await;
    let version = catalog["services"][0]["metadata"]["bundleVersion"].as_str();
    version.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_provision_that_waits_for_the_first_refresh_gets_the_reason_of_a_withdrawal() {
    let (mut fixture, _registry, broker) = with_hello().await;
    broker.close().await;
    fixture.registries.clear();
    let broker = fixture.open().await;
    broker.publisher.refresh().await.expect("the store answers");
    let (status, refused) = broker.provision("j", "").await;
    assert_eq!(status, 400, "{refused}");
    let description = refused["description"].as_str().unwrap_or_default();
    assert!(
        description.contains("its registry is not configured any more"),
        "{description}"
    );
}
