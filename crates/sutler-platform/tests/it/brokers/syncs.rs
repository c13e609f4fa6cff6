//! Syncs of catalogs: when, how often, and what becomes of items that cannot be used.

use super::fixture::{PlatformFixture, Replica, definition, until, until_passed};
use super::samples::{catalog, operator, service};
use super::scripted_broker::Reaction;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_client::BrokerEvent;
use sutler_client::wire::Answer;
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Key, Write};
use sutler_platform::catalog::FaultOutcome;
use tokio::sync::Notify;
use uuid::Uuid;

/// What is known of a broker after its first sync.
async fn synced(platform: &PlatformFixture, replica: &Replica, body: String) -> Uuid {
    platform.broker.answers(200, body);
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    broker
}

/// Requests a sync, and waits for it.
async fn sync_again(replica: &Replica, broker: Uuid) {
    replica.brokers.sync(broker).await.expect("it is requested");
    replica.until_synced(broker).await;
}

#[tokio::test(start_paused = true)]
async fn three_replicas_read_a_catalog_once_and_again_at_its_time() {
    let platform = PlatformFixture::new();
    let replicas = [
        platform.replica().await,
        platform.replica().await,
        platform.replica().await,
    ];
    let broker = synced(&platform, &replicas[0], catalog(&[("s", &["p"])])).await;
    until_passed(13 * 60).await;
    assert_eq!(platform.broker.request_count(), 1);
    for relists in 2..=9 {
        until("it is read again", async || {
            platform.broker.request_count() >= relists
        })
        .await;
        assert_eq!(platform.broker.request_count(), relists);
        // Never sooner than nine tenths of a quarter of an hour.
        until_passed(13 * 60).await;
        assert_eq!(platform.broker.request_count(), relists);
    }
    for replica in &replicas {
        assert_eq!(replica.items(broker).await, ["s", "s/p"]);
    }
    assert_eq!(replicas[0].pending_verbs().await, ["sync"]);
    for replica in replicas {
        replica.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn syncs_of_many_brokers_do_not_stay_together() {
    let platform = PlatformFixture::new();
    platform.broker.answers(200, catalog(&[]));
    let replica = platform.replica().await;
    for number in 0..20 {
        replica.register(&format!("b{number}")).await;
    }
    until("all are read", async || {
        platform.broker.request_count() == 20
    })
    .await;
    let mut counts = Vec::new();
    for _ in 0..100 {
        until_passed(10).await;
        counts.push(platform.broker.request_count());
    }
    counts.dedup();
    assert!(counts.len() > 5, "{counts:?}");
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_catalog_is_not_sent_again_and_changes_nothing() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let body = catalog(&[("s", &["p"])]);
    platform.broker.serves_tagged("\"v1\"", body);
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    let before = replica.state(broker).await;
    assert_eq!(before.entity_tag.as_deref(), Some("\"v1\""));
    until_passed(1).await;
    sync_again(&replica, broker).await;
    let received = platform.broker.received();
    let tags: Vec<_> = received.iter().map(|it| it.tag()).collect();
    assert_eq!(tags, [None, Some("\"v1\"")]);
    let after = replica.state(broker).await;
    assert_eq!(after.catalog_revision, before.catalog_revision);
    assert_eq!(after.entity_tag, before.entity_tag);
    assert!(after.sync.read_at > before.sync.read_at);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_catalog_without_a_tag_does_not_get_another_revision() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p"])])).await;
    let before = replica.state(broker).await.catalog_revision;
    sync_again(&replica, broker).await;
    assert_eq!(replica.state(broker).await.catalog_revision, before);
    replica.close().await;
}

/// Holds: P-046.
#[tokio::test(start_paused = true)]
async fn an_unusable_item_is_reported_and_the_others_are_synced() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broken = json!({"services": [
        service("s", &["p", ""]), {"id": "t"}, service("u", &["q"]),
    ]});
    let broker = synced(&platform, &replica, broken.to_string()).await;
    assert_eq!(replica.items(broker).await, ["s", "u", "s/p", "u/q"]);
    let faults = replica.state(broker).await.sync.faults;
    let listed: Vec<_> = faults.listed.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].starts_with("services[0].plans[1]"), "{listed:?}");
    assert!(listed[1].starts_with("services[1]"), "{listed:?}");
    // What becomes unusable later stays as it was.
    let mut renamed = service("u", &["q"]);
    renamed["name"] = json!("");
    let worse = json!({"services": [service("s", &["p"]), renamed]});
    platform.broker.answers(200, worse.to_string());
    sync_again(&replica, broker).await;
    assert_eq!(replica.items(broker).await, ["s", "u", "s/p", "u/q"]);
    let faults = replica.state(broker).await.sync.faults;
    let outcomes: Vec<_> = faults.listed.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [FaultOutcome::LastVersionStays]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_catalog_that_cannot_be_read_changes_nothing_but_what_is_said_of_it() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p"])])).await;
    let before = replica.state(broker).await;
    for (status, body, expected) in [
        (500, r#"{"description": "no disk"}"#, "500: no disk"),
        (200, "<html>", "the catalog cannot be read"),
        (404, "{}", "404"),
        (304, "", "304"),
    ] {
        platform.broker.answers(status, body);
        sync_again(&replica, broker).await;
        let state = replica.state(broker).await;
        let failure = state.sync.failure.unwrap_or_default();
        assert!(failure.contains(expected), "{failure}");
        assert_eq!(state.sync.read_at, before.sync.read_at);
        assert_eq!(state.catalog_revision, before.catalog_revision);
        assert_eq!(replica.items(broker).await, ["s", "s/p"]);
    }
    // It is read again within a minute.
    platform.broker.answers(200, catalog(&[("s", &["p", "q"])]));
    until_passed(62).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p", "s/q"]);
    assert_eq!(replica.state(broker).await.sync.failure, None);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_is_asked_for_its_catalog_when_it_wants() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let later = Answer::new(429, &[("Retry-After", "300")], "{}");
    platform
        .broker
        .reacts(move |_| Reaction::Answer(later.clone()));
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    assert_eq!(replica.queue_limit(broker), Some(16), "it counts, too");
    until_passed(260).await;
    assert_eq!(platform.broker.request_count(), 1);
    until_passed(45).await;
    assert_eq!(platform.broker.request_count(), 2);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_the_credentials_of_a_sync_gets_nothing_more() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    platform.broker.answers(401, "{}");
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    assert_eq!(replica.queue_limit(broker), Some(0));
    replica.close().await;
}

/// Holds: P-047.
#[tokio::test(start_paused = true)]
async fn answers_that_show_an_old_catalog_ask_for_few_syncs_and_never_for_none() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[])).await;
    for _ in 0..100 {
        replica
            .exchange_with(broker, BrokerEvent::RelistCatalog)
            .await;
    }
    until_passed(2).await;
    assert_eq!(platform.broker.request_count(), 2, "one at once");
    replica
        .exchange_with(broker, BrokerEvent::RelistCatalog)
        .await;
    until_passed(12).await;
    assert_eq!(platform.broker.request_count(), 3, "and one for the others");
    until_passed(60).await;
    assert_eq!(platform.broker.request_count(), 3);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_is_requested_while_one_runs_is_made_after_it() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let hanging = Arc::new(Notify::new());
    let held = hanging.clone();
    let old = Answer::new(200, &[("ETag", "\"v1\"")], catalog(&[("s", &["p"])]));
    platform
        .broker
        .reacts(move |_| Reaction::AnswerAfter(held.clone(), old.clone()));
    let broker = replica.register("db").await;
    until("it hangs", async || platform.broker.request_count() == 1).await;
    let number = replica.brokers.sync(broker).await.expect("it is requested");
    assert_eq!(
        replica.brokers.sync(broker).await.expect("again"),
        number + 1
    );
    platform.broker.answers(200, catalog(&[("s", &["q"])]));
    hanging.notify_one();
    replica.until_synced(broker).await;
    // Whoever asked sees what was read afterwards, without a tag of what was read before.
    assert_eq!(replica.items(broker).await, ["s", "s/q"]);
    let received = platform.broker.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[1].tag(), None);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_of_a_broker_that_is_paused_and_everything_afterwards() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p"])])).await;
    let paused = replica.brokers.pause(broker, operator()).await;
    paused.expect("it is paused");
    replica.brokers.sync(broker).await.expect("it is requested");
    platform.broker.answers(200, catalog(&[("s", &["p", "q"])]));
    until_passed(3600).await;
    assert_eq!(platform.broker.request_count(), 1);
    replica.brokers.resume(broker).await.expect("it goes on");
    until_passed(2).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p", "s/q"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn another_interval_counts_from_now_on() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[])).await;
    let mut often = definition();
    often.limits.relist_every = Duration::from_secs(60);
    let updated = replica.brokers.update(broker, None, often).await;
    updated.expect("it is updated");
    until_passed(3 * 60 + 5).await;
    let count = platform.broker.request_count();
    assert!((4..=6).contains(&count), "{count}");
    replica.close().await;
}

/// The keys that commits write and remove, in their order, and the number of commits that do.
type WrittenItems = Arc<Mutex<(usize, Vec<(bool, Key)>)>>;

fn record_items(platform: &PlatformFixture) -> WrittenItems {
    let items = WrittenItems::default();
    let recorded = items.clone();
    platform.intercept(move |call| {
        if let Call::Commit(commit) = call {
            let of_catalog = |key: &Key| key.kind().starts_with("service_");
            let mut recorded = recorded.lock().unwrap();
            let before = recorded.1.len();
            for write in commit.writes() {
                match write {
                    Write::Put { key, .. } if of_catalog(key) => {
                        recorded.1.push((true, key.clone()));
                    }
                    Write::Remove(key) if of_catalog(key) => recorded.1.push((false, key.clone())),
                    _ => {}
                }
            }
            recorded.0 += usize::from(recorded.1.len() > before);
        }
        Intercept::Pass
    });
    items
}

#[tokio::test(start_paused = true)]
async fn a_large_catalog_is_written_in_batches_that_never_show_a_plan_without_its_offering() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let ids: Vec<String> = (0..120).map(|number| format!("p{number}")).collect();
    let plans: Vec<&str> = ids.iter().map(String::as_str).collect();
    let (first, second) = plans.split_at(60);
    let second: Vec<String> = second.iter().map(|id| format!("t{id}")).collect();
    let second: Vec<&str> = second.iter().map(String::as_str).collect();
    let large = catalog(&[("s", first), ("t", &second)]);
    let items = record_items(&platform);
    let broker = synced(&platform, &replica, large.clone()).await;
    assert_eq!(replica.items(broker).await.len(), 122);
    check_order(&items, 2);
    // All of it is removed, and dropped since nothing uses it.
    platform.broker.answers(200, catalog(&[]));
    sync_again(&replica, broker).await;
    assert_eq!(replica.items(broker).await, [""; 0]);
    check_order(&items, 6);
    assert!(replica.state(broker).await.catalog_revision > 4);
    replica.close().await;
}

/// Checks the order of all writes so far, and that there were so many commits.
fn check_order(items: &WrittenItems, commits: usize) {
    let items = items.lock().unwrap();
    assert_eq!(items.0, commits, "commits that write items");
    let mut present: BTreeMap<&Key, bool> = BTreeMap::new();
    for (is_put, key) in &items.1 {
        present.insert(key, *is_put);
        let offerings: Vec<&str> = present
            .iter()
            .filter(|(key, is_put)| **is_put && key.kind() == "service_offering")
            .map(|(key, _)| key.id(1))
            .collect();
        let alone = present.iter().find(|(key, is_put)| {
            **is_put && key.kind() == "service_plan" && !offerings.contains(&key.id(1))
        });
        assert!(alone.is_none(), "without its offering: {alone:?}");
    }
}
