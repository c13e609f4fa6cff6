//! Limits against hostile or odd registries: long texts, many faults, changed settings of offers.

use super::fixture::{FakeRegistry, Fixture, manifest, until};
use super::scheduler::Scheduler;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sutler_bundle_service::REFRESH;
use sutler_registry::ItemError;

/// More faults than are stored per registry.
const MANY: usize = 120;

#[tokio::test]
async fn long_faults_of_many_items_do_not_prevent_writing_good_items() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    for nth in 0..MANY {
        let item = format!("org/broken-{nth}:latest");
        registry.push(&item, &manifest("1.0.0"));
        let fault = ItemError::Malformed {
            digest: None,
            sentence: format!("it is broken\u{1b}[2J {}", "very ".repeat(20_000)),
        };
        registry.fails(&item, fault);
    }
    registry.push("org/hello:latest", &manifest("1.0.1"));
    broker.refresh().await;
    let status = broker.running.task_status(REFRESH).await;
    assert_eq!(status.expect("the store answers").failure, None);
    let (_, catalog) = broker.send("GET", "/v2/catalog", Value::Null).await;
    let version = &catalog["services"][0]["metadata"]["bundleVersion"];
    assert_eq!(version, "1.0.1");
    let view = broker
        .publisher
        .view_of("dh")
        .await
        .expect("the store answers");
    let unread = view.expect("it is configured").unread;
    assert_eq!(unread.len(), sutler_registry::UNREAD_KEPT_MAX);
    let plain = |it: &String| !it.contains('\u{1b}') && it.chars().count() < 1_000;
    assert!(unread.values().all(plain));
}

#[tokio::test]
async fn an_item_that_is_not_a_bundle_is_read_once() {
    let (_town, registry, broker) = Fixture::with_hello().await;
    registry.push("org/tool:latest", "no bundle");
    let before = registry.fetched();
    broker.refresh().await;
    assert_eq!(registry.fetched(), before + 1);
    broker.refresh().await;
    assert_eq!(registry.fetched(), before + 1);
    assert_eq!(broker.offers().await, ["hello"]);
}

#[tokio::test]
async fn an_offering_that_failed_because_of_the_store_is_offered_later() {
    let registry = FakeRegistry::new("dh");
    let mut fixture = Fixture::with(std::slice::from_ref(&registry));
    let scheduler = Arc::new(Scheduler::default());
    fixture.scheduler = Some(scheduler.clone());
    let broker = fixture.open().await;
    broker.refresh().await;
    scheduler.full.store(true, Ordering::SeqCst);
    registry.push("org/hello:latest", &manifest("1.0.0"));
    broker.refresh().await;
    assert!(broker.offers().await.is_empty());
    scheduler.full.store(false, Ordering::SeqCst);
    until("it is offered", async || broker.offers().await == ["hello"]).await;
    assert_eq!(broker.provision("i", "").await.0, 201);
}

#[tokio::test]
async fn an_instance_keeps_its_version_when_the_configuration_gives_its_bundle_another_name() {
    let (mut fixture, registry, broker) = Fixture::with_hello().await;
    broker.close().await;
    // Now another tag has the plain name: this one is `hello-latest`, with ids of its own.
    fixture.default_tag = "stable".to_owned();
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await, ["hello-latest"]);
    let (_, catalog) = broker.send("GET", "/v2/catalog", Value::Null).await;
    let service = catalog["services"][0]["id"].as_str().expect("an id");
    let plan = catalog["services"][0]["plans"][0]["id"].as_str();
    let plan = plan.expect("an id");
    let body = json!({
        "service_id": service, "plan_id": plan, "organization_guid": "o", "space_guid": "s",
    });
    let made = broker.send("PUT", "/v2/service_instances/i", body).await;
    assert_eq!(made.0, 201, "{made:?}");
    registry.push("org/hello:latest", &manifest("2.0.0"));
    broker.refresh().await;
    broker.delete().await;
    broker.close().await;
    let broker = fixture.open().await;
    let path = format!("/v2/service_instances/i?service_id={service}&plan_id={plan}");
    let gone = broker.send("DELETE", &path, Value::Null).await;
    assert_eq!(gone.0, 200, "{gone:?}");
}
