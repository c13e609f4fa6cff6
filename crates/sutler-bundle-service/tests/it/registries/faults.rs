//! Registries and items that fail: no offering is withdrawn because of it (R16, R17, R18, R24).

use super::fixture::{FakeRegistry, Fixture, manifest};
use sutler_registry::{Digest, ItemError};

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn r16_services_of_a_registry_that_is_down_stay() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    assert_eq!(broker.offers().await, ["hello"]);
    registry.is_down(true);
    for _ in 0..3 {
        broker.refresh().await;
    }
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.provision("i", "").await.0, 201);
    let view = broker.publisher.view().await.expect("the store answers");
    let shown = &view.registries[0];
    assert_eq!((shown.failures, shown.offered), (3, 1));
    assert_eq!(shown.fault.as_deref(), Some("it does not answer; start it"));
}

#[tokio::test]
async fn r17_a_service_whose_manifest_cannot_be_read_stays_as_it_was() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    registry.push(
        "org/other:latest",
        &manifest("1.0.0")
            .replace("hello", "other")
            .replace("plan-id", "p2"),
    );
    registry.push("org/hello:latest", "{name: broken");
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello", "other"]);
    let specs = broker.specs("dh").await;
    assert!(specs[0].starts_with("org/hello:latest: "), "{specs:?}");
    let transient = ItemError::Transient("it answered 500; try again".to_owned());
    registry.fails("org/other:latest", transient);
    let fetched = registry.fetched();
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello", "other"]);
    // An item with a permanent fault is not read again.
    assert_eq!(registry.fetched(), fetched);
    assert_eq!(
        broker.specs("dh").await[1],
        "org/other:latest: it answered 500; try again"
    );
}

#[tokio::test]
async fn a_service_whose_image_loses_its_label_stays_as_it_was() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    let unlabelled = |text: &str| ItemError::NotABundle {
        digest: Digest::of(text.as_bytes()),
        sentence: format!("{text} has no label; build it with one"),
    };
    registry.fails("org/hello:latest", unlabelled("org/hello:latest"));
    registry.push("org/never:latest", "");
    registry.fails("org/never:latest", unlabelled("org/never:latest"));
    for _ in 0..2 {
        broker.refresh().await;
        assert_eq!(broker.offers().await, ["hello"]);
        let why = "org/hello:latest: org/hello:latest has no label; build it with one";
        assert_eq!(broker.specs("dh").await, [why]);
    }
    assert_eq!(broker.provision("i", "").await.0, 201);
    let view = broker.publisher.view().await.expect("the store answers");
    let shown = &view.registries[0];
    assert_eq!((shown.items, shown.offered, shown.faulty), (1, 1, 1));
    registry.push("org/hello:latest", &manifest("1.0.0"));
    broker.refresh().await;
    assert_eq!(broker.specs("dh").await, ["org/hello:latest"]);
}

#[tokio::test]
async fn r18_without_any_registry_that_answers_a_broker_starts_and_offers_nothing() {
    let registry = FakeRegistry::new("dh");
    registry.is_down(true);
    let fixture = Fixture::with(&[registry]);
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, NOTHING);
    assert_eq!(
        broker
            .send("GET", "/readyz", serde_json::Value::Null)
            .await
            .0,
        200
    );
    broker.close().await;
    let none = Fixture::with(&[]);
    let broker = none.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, NOTHING);
}

#[tokio::test]
async fn a_restarted_broker_serves_stored_bundles_before_it_lists_registries() {
    let (fixture, registry, broker) = Fixture::with_hello().await;
    assert_eq!(broker.provision("i", "").await.0, 201);
    broker.close().await;
    registry.is_down(true);
    let broker = fixture.open().await;
    assert_eq!(broker.offers().await, ["hello"]);
    assert_eq!(broker.provision("j", "").await.0, 201);
    assert_eq!(broker.deprovision("i").await, 200);
}

#[tokio::test]
async fn of_two_registries_that_offer_the_same_the_first_is_used_and_both_are_named() {
    let (first, second) = (FakeRegistry::new("first"), FakeRegistry::new("second"));
    second.push("org/hello:latest", &manifest("2.0.0"));
    first.push("other/hello:latest", &manifest("1.0.0"));
    let fixture = Fixture::with(&[first.clone(), second]);
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello"]);
    let specs = broker.specs("second").await;
    assert!(
        specs[0].contains("first/other/hello:latest and second/org/hello:latest both have"),
        "{specs:?}"
    );
    // A failure of the first does not move the offering to the second.
    first.is_down(true);
    broker.refresh().await;
    assert_eq!(broker.specs("first").await, ["other/hello:latest"]);
    first.is_down(false);
    first.remove("other/hello:latest");
    broker.refresh().await;
    assert_eq!(broker.specs("second").await, ["org/hello:latest"]);
    assert_eq!(broker.offers().await, ["hello"]);
}
