//! Probes: when they are sent, with what, and whose result counts.

use super::fixture::{PlatformFixture, Replica, definition, until, until_passed};
use super::samples::catalog;
use super::scripted_broker::Reaction;
use std::sync::Arc;
use sutler_client::wire::Answer;
use sutler_platform::brokers::BrokerDefinition;
use sutler_platform::lifecycle::breaker::{Breaker, BreakerReply};
use sutler_platform::records::BrokerAuthentication;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

fn with_token(token: &str) -> BrokerDefinition {
    BrokerDefinition {
        authentication: BrokerAuthentication::Bearer {
            token: token.to_owned(),
        },
        ..definition()
    }
}

fn whole(body: &str) -> Reaction {
    Reaction::Answer(Answer::new(200, &[("ETag", "\"v1\"")], body.to_owned()))
}

/// A broker whose catalog is known and whose breaker opens now.
async fn tripped(platform: &PlatformFixture, replica: &Replica) -> Uuid {
    platform.broker.reacts(|_| whole(&catalog(&[])));
    let broker = replica.register_as("db", with_token("old")).await;
    replica.until_synced(broker).await;
    platform.broker.reacts(|_| Reaction::Silence);
    replica.trip(broker).await;
    broker
}

#[tokio::test(start_paused = true)]
async fn the_pauses_between_probes_grow_and_several_replicas_send_each_once() {
    let platform = PlatformFixture::new();
    let replicas = [
        platform.replica().await,
        platform.replica().await,
        platform.replica().await,
    ];
    let broker = tripped(&platform, &replicas[0]).await;
    let (before, began) = (platform.broker.request_count(), Instant::now());
    let mut moments = Vec::new();
    until("six probes are sent", async || {
        let sent = platform.broker.request_count() - before;
        moments.resize(sent, began.elapsed());
        sent == 6
    })
    .await;
    // Each pause is the double one, less up to a quarter, and the engine looks once a second.
    let mut last = 0.0;
    for (moment, pause) in moments.iter().zip([5.0, 10.0, 20.0, 40.0, 80.0, 160.0_f64]) {
        let waited = moment.as_secs_f64() - last;
        let shortest = (pause * 0.75).max(5.0) - 0.1;
        assert!((shortest..pause + 1.2).contains(&waited), "{moments:?}");
        last = moment.as_secs_f64();
    }
    match replicas[2].breaker(broker).await {
        Breaker::Open(open) => assert_eq!(open.failed_probes, 6),
        breaker => panic!("{breaker:?}"),
    }
    for replica in replicas {
        replica.close().await;
    }
}

/// Holds: P-010, P-040.
#[tokio::test(start_paused = true)]
async fn a_probe_has_the_tag_of_the_known_catalog_and_no_user() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    tripped(&platform, &replica).await;
    let before = platform.broker.request_count();
    until("a probe is sent", async || {
        platform.broker.request_count() > before
    })
    .await;
    let probe = platform.broker.received()[before].clone();
    assert_eq!(probe.request.target(), "/v2/catalog");
    assert_eq!(probe.tag(), Some("\"v1\""));
    assert_eq!(probe.header("X-Broker-API-Originating-Identity"), None);
    assert!(probe.header("X-Broker-API-Request-Identity").is_some());
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn new_credentials_are_probed_at_once() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = tripped(&platform, &replica).await;
    platform
        .broker
        .reacts(|received| match received.token.as_deref() {
            Some("new") => whole(&catalog(&[])),
            _ => Reaction::Answer(Answer::new(401, &[], "{}")),
        });
    until("the pause is long", async || {
        matches!(replica.breaker(broker).await, Breaker::Open(open) if open.failed_probes >= 6)
    })
    .await;
    let updated = replica.brokers.update(broker, None, with_token("new"));
    updated.await.expect("it is updated");
    until_passed(2).await;
    let breaker = replica.breaker(broker).await;
    assert!(matches!(breaker, Breaker::Closed { .. }), "{breaker:?}");
    assert_eq!(replica.queue_limit(broker), Some(32));
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_was_sent_with_old_credentials_does_not_count() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = tripped(&platform, &replica).await;
    let (before, hanging) = (platform.broker.request_count(), Arc::new(Notify::new()));
    let held = hanging.clone();
    platform
        .broker
        .reacts(move |received| match received.token.as_deref() {
            Some("new") => whole(&catalog(&[])),
            _ => Reaction::AnswerAfter(held.clone(), Answer::new(401, &[], "{}")),
        });
    until("a probe hangs", async || {
        platform.broker.request_count() > before
    })
    .await;
    let updated = replica.brokers.update(broker, None, with_token("new"));
    updated.await.expect("it is updated");
    hanging.notify_one();
    until_passed(2).await;
    let breaker = replica.breaker(broker).await;
    assert!(matches!(breaker, Breaker::Closed { .. }), "{breaker:?}");
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_have_a_broker_probed_now() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = tripped(&platform, &replica).await;
    until("the pause is long", async || {
        matches!(replica.breaker(broker).await, Breaker::Open(open) if open.failed_probes >= 5)
    })
    .await;
    let before = platform.broker.request_count();
    let accepted = replica.brokers.probe(broker).await;
    assert_eq!(accepted.expect("it is probed"), BreakerReply::Accepted);
    until_passed(2).await;
    assert_eq!(platform.broker.request_count(), before + 1);
    platform.broker.answers(200, catalog(&[]));
    replica.brokers.probe(broker).await.expect("it is probed");
    until_passed(2).await;
    let closed = replica.brokers.probe(broker).await;
    assert_eq!(closed.expect("it is closed"), BreakerReply::Unchanged);
    replica.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_while_a_probe_is_sent_ends_the_probe() {
    let platform = PlatformFixture::new();
    let replica = platform.replica().await;
    let broker = tripped(&platform, &replica).await;
    let (before, hanging) = (platform.broker.request_count(), Arc::new(Notify::new()));
    let held = hanging.clone();
    let answer = Answer::new(200, &[], catalog(&[]));
    platform
        .broker
        .reacts(move |_| Reaction::AnswerAfter(held.clone(), answer.clone()));
    until("a probe hangs", async || {
        platform.broker.request_count() > before
    })
    .await;
    let by = super::samples::operator();
    let paused = replica.brokers.pause(broker, by).await;
    paused.expect("it is paused");
    hanging.notify_one();
    until_passed(60).await;
    let breaker = replica.breaker(broker).await;
    assert!(matches!(breaker, Breaker::Paused { .. }), "{breaker:?}");
    assert_eq!(replica.pending_verbs().await, ["sync"]);
    replica.close().await;
}
