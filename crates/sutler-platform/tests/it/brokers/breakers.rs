//! Breakers across replicas: what one process finds stops the others, and nothing ends by it.

use super::fixture::{PlatformFixture, Replica, until, until_passed};
use super::samples::{catalog, operator};
use std::time::Duration;
use sutler_journal::{Commit, Due, NewOperation, OperationId, Start, State};
use sutler_platform::brokers::BrokerCommandError;
use sutler_platform::lifecycle::breaker::{
    Breaker, BreakerEventError, BreakerReply, ExchangeOutcome, OpenCause,
};
use sutler_platform::records::broker_queue;
use uuid::Uuid;

/// Longest time until other replicas follow.
const FOLLOWED_WITHIN: u64 = 2;

/// Two replicas that follow each other and run nothing, and a broker that both know.
async fn two_replicas(platform: &PlatformFixture) -> (Replica, Replica, Uuid) {
    let one = platform.following_replica().await;
    let other = platform.following_replica().await;
    let broker = one.register("db").await;
    until("both share the broker", async || {
        one.queue_limit(broker) == Some(16) && other.queue_limit(broker) == Some(16)
    })
    .await;
    (one, other, broker)
}

#[tokio::test(start_paused = true)]
async fn five_silences_on_one_replica_close_the_queue_on_every_replica() {
    let platform = PlatformFixture::new();
    let (one, other, broker) = two_replicas(&platform).await;
    for silences in 0..5 {
        assert_eq!(one.queue_limit(broker), Some(16), "after {silences}");
        one.exchange(broker, ExchangeOutcome::Unanswered).await;
    }
    assert_eq!(one.queue_limit(broker), Some(0));
    until_passed(FOLLOWED_WITHIN).await;
    assert_eq!(other.queue_limit(broker), Some(0));
    match other.breaker(broker).await {
        Breaker::Open(open) => assert_eq!(open.cause, OpenCause::Silence),
        breaker => panic!("{breaker:?}"),
    }
    assert_eq!(one.pending_verbs().await, ["probe", "sync"]);
}

#[tokio::test(start_paused = true)]
async fn one_refusal_of_the_credentials_closes_the_queue_on_every_replica() {
    let platform = PlatformFixture::new();
    let (one, other, broker) = two_replicas(&platform).await;
    other.exchange(broker, ExchangeOutcome::Unauthorized).await;
    assert_eq!(other.queue_limit(broker), Some(0));
    until_passed(FOLLOWED_WITHIN).await;
    assert_eq!(one.queue_limit(broker), Some(0));
    match one.breaker(broker).await {
        Breaker::Open(open) => assert_eq!(open.cause, OpenCause::Unauthorized),
        breaker => panic!("{breaker:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn silences_of_two_replicas_do_not_add_up_and_an_answer_begins_anew() {
    let platform = PlatformFixture::new();
    let (one, other, broker) = two_replicas(&platform).await;
    for replica in [&one, &other] {
        for _ in 0..4 {
            replica.exchange(broker, ExchangeOutcome::Unanswered).await;
        }
    }
    one.exchange(broker, ExchangeOutcome::Answered).await;
    for _ in 0..4 {
        one.exchange(broker, ExchangeOutcome::Unanswered).await;
    }
    let breaker = one.breaker(broker).await;
    assert!(matches!(breaker, Breaker::Closed { .. }), "{breaker:?}");
}

#[tokio::test(start_paused = true)]
async fn replicas_that_find_the_same_at_once_start_one_probe() {
    let platform = PlatformFixture::new();
    let (one, other, broker) = two_replicas(&platform).await;
    tokio::join!(
        one.exchange(broker, ExchangeOutcome::Unauthorized),
        one.exchange(broker, ExchangeOutcome::Unauthorized),
        other.exchange(broker, ExchangeOutcome::Unauthorized),
    );
    assert_eq!(one.pending_verbs().await, ["probe", "sync"]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_answered_opens_the_queue_on_every_replica() {
    let platform = PlatformFixture::new();
    let (one, two) = (platform.replica().await, platform.replica().await);
    let broker = one.register("db").await;
    until("it is stopped for both", async || {
        for _ in 0..5 {
            one.exchange(broker, ExchangeOutcome::Unanswered).await;
        }
        two.queue_limit(broker) == Some(0)
    })
    .await;
    platform.broker.answers(200, catalog(&[("s", &["p"])]));
    until("a probe has closed it", async || {
        matches!(one.breaker(broker).await, Breaker::Closed { .. })
    })
    .await;
    until_passed(FOLLOWED_WITHIN).await;
    for replica in [&one, &two] {
        assert_eq!(replica.queue_limit(broker), Some(16));
        assert_eq!(
            replica.items(broker).await,
            ["s", "s/p"],
            "it is synced, too"
        );
    }
    assert_eq!(one.pending_verbs().await, ["sync"]);
    one.close().await;
    two.close().await;
}

#[tokio::test(start_paused = true)]
async fn exchanges_that_hung_while_it_was_open_are_not_counted_afterwards() {
    let platform = PlatformFixture::new();
    let one = platform.replica().await;
    let broker = one.register("db").await;
    let begun = one.now();
    one.trip(broker).await;
    platform.broker.answers(200, catalog(&[]));
    until("a probe has closed it", async || {
        one.queue_limit(broker) == Some(32)
    })
    .await;
    for outcome in [
        ExchangeOutcome::Unauthorized,
        ExchangeOutcome::Unanswered,
        ExchangeOutcome::Unanswered,
        ExchangeOutcome::Unanswered,
        ExchangeOutcome::Unanswered,
        ExchangeOutcome::Unanswered,
    ] {
        one.brokers
            .exchange_ended(broker, begun, outcome, None)
            .await;
    }
    assert_eq!(one.queue_limit(broker), Some(32));
    one.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_starts_while_a_breaker_is_open_does_not_serve_the_queue() {
    let platform = PlatformFixture::new();
    let one = platform.idle_replica().await;
    let (down, up) = (one.register("down").await, one.register("up").await);
    one.trip(down).await;
    let late = platform.following_replica().await;
    until("it knows both", async || late.queue_limit(up).is_some()).await;
    assert_eq!(late.queue_limit(down), Some(0));
    assert_eq!(late.queue_limit(up), Some(32));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_not_seen_a_broker_counts_it_too() {
    let platform = PlatformFixture::new();
    let broker = platform.idle_replica().await.register("db").await;
    let other = platform.idle_replica().await;
    other.trip(broker).await;
    assert_eq!(other.queue_limit(broker), Some(0));
    // Of no broker nothing is counted.
    other
        .exchange(Uuid::nil(), ExchangeOutcome::Unauthorized)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_every_replica_and_ends_nothing() {
    let platform = PlatformFixture::new();
    let (one, other, broker) = two_replicas(&platform).await;
    let waiting = NewOperation {
        id: OperationId::fresh(),
        lane: one.records.keys.instance("app", Uuid::nil()),
        verb: "provision",
        queue: broker_queue(broker),
        start: Start::Ready(Due::In(Duration::from_secs(5))),
        detail: "d".into(),
        request: "r".into(),
    };
    let commit = Commit::new().start(waiting.clone());
    one.store().commit(&commit).await.expect("it is written");
    let accepted = one.brokers.pause(broker, operator()).await;
    assert_eq!(accepted.expect("it is paused"), BreakerReply::Accepted);
    assert_eq!(one.queue_limit(broker), Some(0));
    until_passed(FOLLOWED_WITHIN).await;
    assert_eq!(other.queue_limit(broker), Some(0));
    let again = other.brokers.pause(broker, operator()).await;
    assert_eq!(again.expect("it is paused"), BreakerReply::Unchanged);
    let row = one.store().operation(waiting.id).await.expect("it answers");
    let row = row.expect("it is there").row;
    assert_eq!((row.state, row.fence.0), (State::Ready, 0));
    let resumed = other.brokers.resume(broker).await;
    assert_eq!(resumed.expect("it goes on"), BreakerReply::Accepted);
    until_passed(FOLLOWED_WITHIN).await;
    for replica in [&one, &other] {
        assert_eq!(replica.queue_limit(broker), Some(16));
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_broker_gets_no_probe_and_is_probed_at_once_when_it_goes_on() {
    let platform = PlatformFixture::new();
    let one = platform.replica().await;
    let broker = one.register("db").await;
    one.until_synced(broker).await;
    one.trip(broker).await;
    let paused = one.brokers.pause(broker, operator()).await;
    paused.expect("it is paused");
    assert_eq!(one.pending_verbs().await, ["sync"]);
    let refused = one.brokers.probe(broker).await;
    let expected = BreakerEventError::Paused;
    assert!(
        matches!(refused, Err(BrokerCommandError::Breaker(it)) if it == expected),
        "{refused:?}"
    );
    let before = platform.broker.request_count();
    until_passed(1_000).await;
    assert_eq!(platform.broker.request_count(), before, "not even a sync");
    platform.broker.answers(200, catalog(&[]));
    one.brokers.resume(broker).await.expect("it goes on");
    until_passed(2).await;
    assert_eq!(one.queue_limit(broker), Some(32));
    one.close().await;
}
