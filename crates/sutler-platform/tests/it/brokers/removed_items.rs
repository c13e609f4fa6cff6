//! Offerings and plans that a broker removes: marked first, dropped when nothing uses them, and back when they return.

use super::fixture::{PlatformFixture, Replica};
use super::samples::{catalog, gone, instance};
use sutler_journal::{Commit, CommitError};
use sutler_platform::catalog::PlanKey;
use sutler_platform::lifecycle::instance::Instance;
use uuid::Uuid;

async fn synced(platform: &PlatformFixture, replica: &Replica, body: String) -> Uuid {
    platform.broker.serves_tagged("\"v1\"", body);
    let broker = replica.register("db").await;
    replica.until_synced(broker).await;
    broker
}

/// The broker serves another catalog, which is read now.
async fn sync(platform: &PlatformFixture, replica: &Replica, broker: Uuid, body: String) {
    platform.broker.serves_tagged("\"v2\"", body);
    sync_again(replica, broker).await;
}

async fn sync_again(replica: &Replica, broker: Uuid) {
    replica.brokers.sync(broker).await.expect("it is requested");
    replica.until_synced(broker).await;
}

async fn put_instance(replica: &Replica, instance: Instance) {
    let keys = &replica.records.keys;
    let key = keys.instance(&instance.namespace, instance.uid);
    replica.put(&key, instance).await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_plan_that_nothing_uses_is_dropped() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p", "q"])])).await;
    sync(&platform, &replica, broker, catalog(&[("s", &["p"])])).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_plan_stays_marked_until_its_last_instance_is_gone() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p", "q"])])).await;
    put_instance(&replica, instance(broker, 1, "q")).await;
    let without = catalog(&[("s", &["p"])]);
    sync(&platform, &replica, broker, without).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p", "-s/q"]);
    sync_again(&replica, broker).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p", "-s/q"]);
    // The catalog is the same still: its tag must not keep the plan.
    put_instance(&replica, gone(instance(broker, 1, "q"))).await;
    sync_again(&replica, broker).await;
    assert_eq!(replica.items(broker).await, ["s", "s/p"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn instances_of_other_brokers_and_other_plans_keep_nothing() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let body = catalog(&[("s", &["p", "q"])]);
    let broker = synced(&platform, &replica, body).await;
    put_instance(&replica, instance(Uuid::nil(), 1, "q")).await;
    put_instance(&replica, instance(broker, 2, "p")).await;
    sync(&platform, &replica, broker, catalog(&[])).await;
    assert_eq!(replica.items(broker).await, ["-s", "-s/p"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_offering_stays_as_long_as_an_instance_is_of_it() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let body = catalog(&[("s", &["p"])]);
    let broker = synced(&platform, &replica, body).await;
    // Of a plan that is not known any more.
    put_instance(&replica, instance(broker, 1, "old")).await;
    sync(&platform, &replica, broker, catalog(&[])).await;
    assert_eq!(replica.items(broker).await, ["-s"]);
    replica.close().await;
}

/// service-catalog#1757.
#[tokio::test(start_paused = true)]
async fn what_returns_is_offered_again() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let body = catalog(&[("s", &["p"]), ("t", &["q"])]);
    let broker = synced(&platform, &replica, body.clone()).await;
    put_instance(&replica, instance(broker, 1, "p")).await;
    sync(&platform, &replica, broker, catalog(&[("t", &["q"])])).await;
    assert_eq!(replica.items(broker).await, ["-s", "t", "-s/p", "t/q"]);
    platform.broker.serves_tagged("\"v3\"", body);
    sync_again(&replica, broker).await;
    assert_eq!(replica.items(broker).await, ["s", "t", "s/p", "t/q"]);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_saw_a_plan_before_it_was_removed_is_not_written() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = synced(&platform, &replica, catalog(&[("s", &["p", "q"])])).await;
    let seen = replica.view(broker).await;
    sync(&platform, &replica, broker, catalog(&[("s", &["p"])])).await;
    let plan = PlanKey {
        service_id: "s".try_into().expect("an id"),
        plan_id: "q".try_into().expect("an id"),
    };
    let keys = &replica.records.keys;
    let plan_key = keys.service_plan(broker, &plan.service_id, &plan.plan_id);
    let version = seen.catalog.plan_version(&plan).expect("it was offered");
    let commit = seen.expect_registered(Commit::new());
    let commit = commit.unchanged(plan_key, version);
    let late = instance(broker, 1, "q");
    let commit = replica
        .with_put(commit, &keys.instance("app", late.uid), late)
        .await;
    let refused = replica.store().commit(&commit).await;
    assert!(matches!(refused, Err(CommitError::Stale(_))), "{refused:?}");
    replica.close().await;
}
