//! Number of requests and store calls of a refresh of many specs: counted, not timed.
//!
//! An unchanged spec costs its share of a page, and nothing is written for it. Growth is measured with few and with
//! many.

use super::fixture::{FakeRegistry, Fixture, TestBroker};
use super::scheduler::Scheduler;
use std::sync::Arc;
use sutler_bundle_service::{DELETIONS, REFRESH};

/// Specs read per page.
const PAGE: usize = 200;
/// Reads and writes of any run: those of the task itself, and one poll of the publisher.
const ANY_TURN: usize = 24;

fn manifest(number: usize, version: &str) -> String {
    format!(
        "{{version: 1.0, name: bundle-{number}, bundle_version: {version}, description: One of many., \
         bindable: true, plans: [{{name: small, description: One., parameters: [{{name: size, type: string, \
         title: Size, default: s{number}}}]}}]}}"
    )
}

fn item(number: usize) -> String {
    format!("org/bundle-{number:04}:latest")
}

/// A broker that has read this many specs.
async fn fixture(count: usize) -> (Fixture, Arc<FakeRegistry>, TestBroker) {
    let registry = FakeRegistry::new("large");
    for number in 0..count {
        registry.push(&item(number), &manifest(number, "1.0.0"));
    }
    let fixture = Fixture::with(std::slice::from_ref(&registry));
    let broker = fixture.open().await;
    broker.refresh().await;
    assert_eq!(broker.offers().await.len(), count);
    (fixture, registry, broker)
}

#[tokio::test]
async fn a_refresh_with_nothing_changed_reads_pages_and_writes_no_spec() {
    for count in [50, 450] {
        let (fixture, registry, broker) = fixture(count).await;
        let fetched = registry.fetched();
        fixture.take_store_calls();
        broker.take_status_reads();
        broker.refresh().await;
        let calls = fixture.take_store_calls();
        assert_eq!(registry.fetched(), fetched);
        assert!(calls.lists <= ANY_TURN + count / PAGE, "{count}: {calls:?}");
        assert!(
            calls.gets - broker.take_status_reads() <= ANY_TURN,
            "{count}: {calls:?}"
        );
        assert!(calls.writes <= ANY_TURN, "{count}: {calls:?}");
        broker.close().await;
    }
}

#[tokio::test]
async fn only_changed_items_are_fetched_and_written() {
    let (fixture, registry, broker) = fixture(450).await;
    for number in 0..10 {
        registry.push(&item(number), &manifest(number, "2.0.0"));
    }
    let fetched = registry.fetched();
    fixture.take_store_calls();
    broker.take_status_reads();
    broker.refresh().await;
    let calls = fixture.take_store_calls();
    assert_eq!(registry.fetched() - fetched, 10);
    // Each has a version, a spec and the copy of a plan; the publisher reads the version and looks up the copy.
    assert!(calls.writes <= ANY_TURN + 3 * 10, "{calls:?}");
    assert!(
        calls.gets - broker.take_status_reads() <= ANY_TURN + 2 * 10,
        "{calls:?}"
    );
    assert!(calls.lists <= ANY_TURN + 2 * (450 / PAGE + 1), "{calls:?}");
}

#[tokio::test]
async fn reading_many_for_the_first_time_asks_for_pages_and_not_for_each() {
    let (fixture, _, broker) = fixture(450).await;
    let calls = fixture.take_store_calls();
    let turns = 2 * ANY_TURN;
    assert!(
        calls.gets - broker.take_status_reads() <= turns,
        "{calls:?}"
    );
    assert!(calls.lists <= turns + 6 * (450 / PAGE + 1), "{calls:?}");
    // Versions, specs and copies of plans, in batches.
    assert!(calls.commits <= turns + 3 * (450 / 80 + 1), "{calls:?}");
}

#[tokio::test]
async fn deletions_that_a_refresh_overtakes_do_not_try_every_version() {
    for before in 0..8 {
        let registry = FakeRegistry::new("large");
        for number in 0..100 {
            registry.push(&item(number), &manifest(number, "1.0.0"));
        }
        let scheduler = Arc::new(Scheduler::default());
        let mut fixture = Fixture::with(std::slice::from_ref(&registry));
        fixture.scheduler = Some(scheduler.clone());
        // Both tasks run when a broker starts for the first time.
        scheduler.set_plan(&[
            (DELETIONS, before),
            (REFRESH, usize::MAX),
            (DELETIONS, usize::MAX),
        ]);
        let broker = fixture.open().await;
        broker.refresh().await;
        broker.delete().await;
        let calls = scheduler.made(DELETIONS);
        assert!(calls <= 2 * ANY_TURN, "{before}: {calls} calls");
        assert_eq!(broker.offers().await.len(), 100);
        broker.close().await;
    }
}

#[tokio::test]
async fn a_broker_that_knows_many_offers_them_while_its_registry_is_down() {
    let (fixture, registry, broker) = fixture(60).await;
    broker.close().await;
    registry.is_down(true);
    let broker = fixture.open().await;
    assert_eq!(broker.offers().await.len(), 60);
}
