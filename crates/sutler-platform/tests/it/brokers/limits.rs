//! How much each replica sends to a broker, and what is learned of it.

use super::fixture::{PlatformFixture, definition, until, until_passed};
use super::samples::{name, namespace, operator};
use std::num::NonZeroU32;
use sutler_client::BrokerEvent;
use sutler_platform::lifecycle::breaker::ExchangeOutcome;
use sutler_platform::records::NamespaceState;

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_overloaded_gets_half_for_a_minute() {
    let platform = PlatformFixture::new();
    let replica = platform.following_replica().await;
    let broker = replica.register("db").await;
    replica.exchange(broker, ExchangeOutcome::Overloaded).await;
    assert_eq!(replica.queue_limit(broker), Some(16));
    until_passed(58).await;
    replica.exchange(broker, ExchangeOutcome::Answered).await;
    assert_eq!(replica.queue_limit(broker), Some(16));
    until_passed(4).await;
    assert_eq!(replica.queue_limit(broker), Some(32));
}

#[tokio::test(start_paused = true)]
async fn replicas_share_the_limit_while_they_live() {
    let platform = PlatformFixture::new();
    let one = platform.following_replica().await;
    let broker = one.register("db").await;
    until_passed(2).await;
    assert_eq!(one.queue_limit(broker), Some(32));
    let two = platform.following_replica().await;
    let mut three = platform.following_replica().await;
    until_passed(2).await;
    for replica in [&one, &two, &three] {
        assert_eq!(replica.queue_limit(broker), Some(11));
    }
    assert_eq!(
        one.brokers.replicas().list().await.expect("a list").len(),
        3
    );
    // One stops in order, and the others learn of it at once.
    two.close().await;
    until_passed(2).await;
    assert_eq!(one.queue_limit(broker), Some(16));
    // One dies.
    three.kill_follower();
    until_passed(100).await;
    assert_eq!(one.queue_limit(broker), Some(16));
    until_passed(3 * 60).await;
    assert_eq!(one.queue_limit(broker), Some(32));
    assert_eq!(
        one.brokers.replicas().list().await.expect("a list").len(),
        2
    );
    until_passed(3600).await;
    assert_eq!(
        one.brokers.replicas().list().await.expect("a list").len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_is_followed_everywhere_and_keeps_what_is_halved() {
    let platform = PlatformFixture::new();
    let one = platform.following_replica().await;
    let other = platform.following_replica().await;
    let broker = one.register("db").await;
    until("both share it", async || {
        other.queue_limit(broker) == Some(16)
    })
    .await;
    other.exchange(broker, ExchangeOutcome::Overloaded).await;
    let mut wider = definition();
    wider.limits.max_in_flight = NonZeroU32::new(100).expect("not zero");
    let updated = one.brokers.update(broker, None, wider).await;
    updated.expect("it is updated");
    until_passed(2).await;
    assert_eq!(one.queue_limit(broker), Some(50));
    assert_eq!(other.queue_limit(broker), Some(25));
}

#[tokio::test(start_paused = true)]
async fn no_registration_gives_a_broker_more_than_a_part_of_a_replica() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let mut greedy = definition();
    greedy.limits.max_in_flight = NonZeroU32::new(10_000).expect("not zero");
    let broker = replica.register_as("db", greedy).await;
    assert_eq!(replica.queue_limit(broker), Some(64));
}

#[tokio::test(start_paused = true)]
async fn the_brokers_of_a_namespace_share_the_part_of_one() {
    let platform = PlatformFixture::new();
    let replica = platform.following_replica().await;
    let app = name("app");
    let key = replica.records.keys.namespace(&app);
    replica.put(&key, namespace(NamespaceState::Active)).await;
    let mut greedy = definition();
    greedy.limits.max_in_flight = NonZeroU32::new(100).expect("not zero");
    let mut brokers = Vec::new();
    for (db, limit) in [("a", 64), ("b", 32), ("c", 21)] {
        let (db, by, greedy) = (name(db), operator(), greedy.clone());
        let registered = replica.brokers.register(Some(&app), &db, greedy, &by).await;
        brokers.push(registered.expect("it is registered").uid);
        until_passed(2).await;
        for broker in &brokers {
            assert_eq!(replica.queue_limit(*broker), Some(limit));
        }
    }
}

/// Holds: P-061.
#[tokio::test(start_paused = true)]
async fn that_a_broker_takes_one_operation_at_a_time_is_forgotten_after_a_day_without_a_conflict() {
    const HOUR: u64 = 3600;
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let other = platform.idle_replica().await;
    let broker = replica.register("db").await;
    let is_serialized = async || {
        let view = other.view(broker).await;
        other.brokers.is_serialized(&view)
    };
    assert!(!is_serialized().await);
    replica.exchange_with(broker, BrokerEvent::Serialize).await;
    assert!(is_serialized().await);
    until_passed(23 * HOUR).await;
    assert!(is_serialized().await);
    replica.exchange_with(broker, BrokerEvent::Serialize).await;
    until_passed(23 * HOUR).await;
    assert!(is_serialized().await);
    until_passed(2 * HOUR).await;
    assert!(!is_serialized().await);
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_written_once_an_hour() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let broker = replica.register("db").await;
    for _ in 0..10 {
        replica.exchange_with(broker, BrokerEvent::Serialize).await;
        until_passed(300).await;
    }
    let first = replica.state(broker).await.serialization;
    let first = first.expect("it is learned").last_conflict;
    let age = first.duration_until(replica.now());
    assert_eq!(age.as_secs(), 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_broker_can_be_serialized_by_choice() {
    let platform = PlatformFixture::new();
    let replica = platform.idle_replica().await;
    let mut serialized = definition();
    serialized.options.serialize = true;
    let broker = replica.register_as("db", serialized).await;
    let view = replica.view(broker).await;
    assert!(replica.brokers.is_serialized(&view));
}
