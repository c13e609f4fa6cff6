//! What a look at a broker costs.

use super::fixture::{PlatformFixture, definition};
use super::samples::catalog;
use std::sync::{Arc, Mutex};
use sutler_journal::conformance::{Call, Intercept};
use sutler_platform::brokers::BrokerViewError;
use sutler_platform::catalog::PlanKey;
use uuid::Uuid;

/// Records the reads of the store from now on.
fn record_reads(platform: &PlatformFixture) -> Arc<Mutex<Vec<&'static str>>> {
    let reads: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let recorded = reads.clone();
    platform.intercept(move |call| {
        if let Call::Read(name) = call {
            recorded.lock().unwrap().push(name);
        }
        Intercept::Pass
    });
    reads
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_broker_that_did_not_change_is_two_small_reads() {
    let platform = PlatformFixture::new();
    platform.broker.answers(200, catalog(&[("s", &["p"])]));
    let running = platform.replica().await;
    let broker = running.register("db").await;
    running.until_synced(broker).await;
    running.close().await;
    let replica = platform.idle_replica().await;
    let first = replica.view(broker).await;
    let connections = platform.broker.connection_count();
    let reads = record_reads(&platform);
    let again = replica.view(broker).await;
    assert_eq!(*reads.lock().unwrap(), ["get", "get"]);
    assert!(Arc::ptr_eq(&first, &again));
    // Another state: neither the catalog nor the connection is made anew.
    replica.trip(broker).await;
    reads.lock().unwrap().clear();
    let tripped = replica.view(broker).await;
    assert_eq!(*reads.lock().unwrap(), ["get", "get"]);
    assert!(tripped.state.breaker.stop().is_some());
    assert!(Arc::ptr_eq(&first.catalog, &tripped.catalog));
    assert_eq!(platform.broker.connection_count(), connections);
    // Another registration: another connection, the same catalog.
    let mut patient = definition();
    patient.limits.answer_within *= 2;
    let updated = replica.brokers.update(broker, None, patient).await;
    updated.expect("it is updated");
    let before = platform.broker.connection_count();
    let updated = replica.view(broker).await;
    assert!(Arc::ptr_eq(&first.catalog, &updated.catalog));
    assert_eq!(platform.broker.connection_count(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn many_who_look_at_once_read_a_catalog_once() {
    let platform = PlatformFixture::new();
    platform.broker.answers(200, catalog(&[("s", &["p"])]));
    let running = platform.replica().await;
    let broker = running.register("db").await;
    running.until_synced(broker).await;
    running.close().await;
    let replica = platform.idle_replica().await;
    let reads = record_reads(&platform);
    let looks: Vec<_> = (0..32)
        .map(|_| {
            let brokers = replica.brokers.clone();
            tokio::spawn(async move { brokers.view(broker).await.map(|_| ()) })
        })
        .collect();
    for look in looks {
        look.await.expect("no panic").expect("it is registered");
    }
    let lists = reads
        .lock()
        .unwrap()
        .iter()
        .filter(|it| **it == "list")
        .count();
    // One by uid for each who did not know the key yet, and two of the catalog.
    assert!((3..=34).contains(&lists), "{lists}");
    reads.lock().unwrap().clear();
    replica.view(broker).await;
    assert_eq!(*reads.lock().unwrap(), ["get", "get"]);
}

#[tokio::test(start_paused = true)]
async fn a_view_knows_the_versions_that_a_commit_relies_on() {
    let platform = PlatformFixture::new();
    platform.broker.answers(200, catalog(&[("s", &["p"])]));
    let replica = platform.replica().await;
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    let view = replica.view(broker).await;
    let plan = PlanKey {
        service_id: "s".try_into().expect("an id"),
        plan_id: "p".try_into().expect("an id"),
    };
    let keys = &replica.records.keys;
    let key = keys.service_plan(broker, &plan.service_id, &plan.plan_id);
    let stored = replica.store().get(&key).await.expect("it answers");
    let stored = stored.map(|it| it.version);
    assert_eq!(view.catalog.plan_version(&plan), stored);
    let registration = replica.store().get(&view.key).await.expect("it answers");
    assert_eq!(registration.map(|it| it.version), Some(view.version));
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn there_is_no_view_of_a_broker_that_is_not_registered() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let view = replica.brokers.view(Uuid::nil()).await.map(|_| ());
    let expected = Uuid::nil();
    assert!(
        matches!(view, Err(BrokerViewError::NotRegistered(it)) if it == expected),
        "{view:?}"
    );
}
