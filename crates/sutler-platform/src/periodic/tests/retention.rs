//! What is removed after its time, and what is kept. Times are short, so that a test does not run for years.

use crate::lifecycle::binding::BindingCommand;
use crate::lifecycle::instance::{Instance, InstanceCommand};
use crate::lifecycle::orphan::OrphanState;
use crate::records::{ORPHAN, OrphanRecord, Record, TypedRecord};
use crate::retention::RetentionSettings;
use crate::test_platform::{Endpoint, ScriptedAnswer, TestPlatform, TestSettings, person};
use serde_json::json;
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_journal::{Key, List, OperationFilter, OperationList};
use sutler_records::FeedRetention;

const HOUR: Duration = Duration::from_secs(3600);

/// Tombstones are kept for an hour, orphans for two, and intents for three.
async fn platform() -> TestPlatform {
    let retention = RetentionSettings {
        journal: 3 * HOUR,
        tombstones: HOUR,
        orphans: 2 * HOUR,
        feed: FeedRetention {
            age: HOUR,
            ..FeedRetention::default()
        },
    };
    let settings = TestSettings {
        retention,
        look_every: Duration::from_secs(30),
        ..TestSettings::default()
    };
    TestPlatform::with(settings).await
}

async fn exists<T: TypedRecord>(platform: &TestPlatform, key: &Key) -> bool {
    let found = platform.context.records.load::<T>(key).await;
    found.expect("it is read").state != Record::Absent
}

/// Operations of a lane that the journal has.
async fn operations(platform: &TestPlatform, lane: &Key) -> usize {
    let list = OperationList {
        filter: OperationFilter::Lane(lane.clone()),
        before: None,
        limit: 100,
    };
    let store = &platform.context.records.documents.store;
    store.operations(&list).await.expect("they are read").len()
}

async fn delete(platform: &TestPlatform, key: &Key) {
    let command = InstanceCommand::Delete {
        by: person("ann"),
        cascade: false,
        bindings: Vec::new(),
    };
    platform.ask_instance(key, command).await;
    platform
        .until_instance(key, "it is gone", |it| it.tombstone.is_some())
        .await;
}

async fn rows(platform: &TestPlatform) -> Vec<OrphanRecord> {
    let records = &platform.context.records;
    let list = List::Prefix(records.keys.all_of(ORPHAN));
    let page = records.list::<OrphanRecord>(&list, None, 10).await;
    let items = page.expect("a page").items.into_iter();
    items.map(|(_, row)| row).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_is_removed_after_its_time() {
    let platform = platform().await;
    let (key, _) = platform.live_instance().await;
    delete(&platform, &key).await;
    tokio::time::sleep(HOUR - Duration::from_secs(60)).await;
    assert!(exists::<Instance>(&platform, &key).await, "it is kept");
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert!(!exists::<Instance>(&platform, &key).await, "it is removed");
}

/// A binding is of no use without its instance: its turn would find none.
#[tokio::test(start_paused = true)]
async fn the_tombstone_of_an_instance_stays_while_it_has_bindings() {
    let platform = platform().await;
    let (key, instance) = platform.live_instance().await;
    let binding = platform.bound(&instance, "app-db").await;
    let abandon = InstanceCommand::Abandon(person("ann").into());
    platform.ask_instance(&key, abandon).await;
    tokio::time::sleep(2 * HOUR).await;
    assert!(exists::<Instance>(&platform, &key).await, "it is kept");
    let abandon = BindingCommand::Abandon(person("ann").into());
    platform.ask(&binding, abandon).await;
    tokio::time::sleep(2 * HOUR).await;
    assert!(!exists::<Instance>(&platform, &key).await, "it is removed");
}

#[tokio::test(start_paused = true)]
async fn intents_that_have_ended_are_swept_after_their_time() {
    let platform = platform().await;
    let (key, _) = platform.live_instance().await;
    assert_eq!(operations(&platform, &key).await, 1);
    tokio::time::sleep(3 * HOUR - Duration::from_secs(60)).await;
    assert_eq!(operations(&platform, &key).await, 1, "it is kept");
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(operations(&platform, &key).await, 0, "it is swept");
    assert!(exists::<Instance>(&platform, &key).await, "it is live");
}

/// An intent that waits for a person is never swept.
#[tokio::test(start_paused = true)]
async fn an_intent_that_has_not_ended_is_kept() {
    let platform = platform().await;
    let broker = &platform.broker;
    broker.plan(Method::Put, Endpoint::Instance, ScriptedAnswer::Never);
    let key = platform.create_instance().await;
    tokio::time::sleep(5 * HOUR).await;
    assert_eq!(operations(&platform, &key).await, 1);
}

/// A row that is done is removed, and one that needs an operator is not.
#[tokio::test(start_paused = true)]
async fn only_orphans_that_are_deleted_are_removed() {
    let platform = platform().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
    platform.live_instance().await;
    let is_done = async || {
        let rows = rows(&platform).await;
        matches!(rows[0].orphan.state, OrphanState::Done { .. })
    };
    platform.until("the orphan is deleted", is_done).await;
    tokio::time::sleep(2 * HOUR - Duration::from_secs(60)).await;
    assert_eq!(rows(&platform).await.len(), 1, "it is kept");
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(rows(&platform).await, [], "it is removed");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_not_deleted_is_kept() {
    let platform = platform().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
    broker.plan(Method::Delete, Endpoint::Instance, ScriptedAnswer::Never);
    platform.create_instance().await;
    let is_found = async || !rows(&platform).await.is_empty();
    platform.until("there is an orphan", is_found).await;
    tokio::time::sleep(5 * HOUR).await;
    assert_eq!(rows(&platform).await.len(), 1);
}

/// The runs of the tasks themselves, and the feed, do not grow.
#[tokio::test(start_paused = true)]
async fn an_idle_platform_does_not_grow() {
    let platform = platform().await;
    let store = &platform.context.records.documents.store;
    tokio::time::sleep(3 * HOUR).await;
    let (feed, list) = (store.feed_length().await, all_operations());
    let (feed, rows) = (feed.expect("a length"), store.operations(&list).await);
    let rows = rows.expect("they are read").len();
    tokio::time::sleep(6 * HOUR).await;
    let later = store.feed_length().await.expect("a length");
    assert!(later <= feed + feed / 4, "{feed} commits, then {later}");
    let list = all_operations();
    let later = store.operations(&list).await.expect("they are read").len();
    assert!(later <= rows + rows / 4, "{rows} operations, then {later}");
}

fn all_operations() -> OperationList {
    OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 10_000,
    }
}
