//! Syncs and probes that are interrupted at any of their commits.

use super::fixture::{PlatformFixture, Replica, until, until_passed};
use super::samples::catalog;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_journal::conformance::{Call, Intercept};
use sutler_journal::{Commit, Write};
use sutler_platform::lifecycle::breaker::Breaker;
use uuid::Uuid;

/// The worker of this replica dies at the n-th commit of a kind, before or after it: of that commit it gets no answer, and
/// its lease runs out. The replica goes on as another worker.
fn die_at(
    platform: &PlatformFixture,
    replica: &Replica,
    (nth, death): (usize, Intercept),
    is_counted: impl Fn(&Commit) -> bool + Send + 'static,
) -> Arc<AtomicUsize> {
    let written = Arc::new(AtomicUsize::new(0));
    let (counted, dying) = (written.clone(), replica.worker());
    platform.intercept(move |call| match call {
        Call::Commit(commit) if is_counted(commit) => {
            match counted.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                true => death.clone(),
                false => Intercept::Pass,
            }
        }
        Call::Renew(worker) | Call::Claim(worker)
            if *worker == dying && counted.load(Ordering::Relaxed) >= nth =>
        {
            Intercept::CrashBefore
        }
        _ => Intercept::Pass,
    });
    written
}

fn is_of_sync(commit: &Commit) -> bool {
    let is_state = |write: &Write| match write {
        Write::Put { key, .. } => key.kind() == "broker_state",
        _ => false,
    };
    commit.writes().iter().any(is_state)
}

/// 120 plans, some of them with another description than those of the other version.
fn large_catalog(version: &str) -> String {
    let plans: Vec<String> = (0..120).map(|number| format!("p{number}")).collect();
    let plans: Vec<&str> = plans.iter().map(String::as_str).collect();
    catalog(&[("s", &plans)]).replace("A plan.", version)
}

/// Versions of the plans that a replica sees.
async fn versions(replica: &Replica, broker: Uuid) -> Vec<String> {
    let view = replica.view(broker).await;
    let plans = view.catalog.known().plans().values();
    let mut versions: Vec<String> = plans
        .map(|it| it.contents().plan.description.to_string())
        .collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_is_interrupted_at_any_commit_is_finished_by_another_process() {
    for death in [Intercept::CrashBefore, Intercept::CrashAfter] {
        for nth in 1.. {
            let platform = PlatformFixture::new();
            platform
                .broker
                .serves_tagged("\"v1\"", large_catalog("one"));
            let starting = platform.replica().await;
            let broker = starting.register("db").await;
            starting.until_synced(broker).await;
            let reader = platform.following_replica().await;
            assert_eq!(versions(&reader, broker).await, ["one"]);
            platform
                .broker
                .serves_tagged("\"v2\"", large_catalog("two"));
            starting
                .brokers
                .sync(broker)
                .await
                .expect("it is requested");
            let written = die_at(&platform, &starting, (nth, death.clone()), is_of_sync);
            until("a commit is counted", async || {
                versions(&reader, broker).await;
                written.load(Ordering::Relaxed) >= nth
                    || starting.state(broker).await.sync.served == 2
            })
            .await;
            if written.load(Ordering::Relaxed) < nth {
                assert_eq!(nth, 4, "two batches and the end");
                starting.close().await;
                break;
            }
            // The broker takes its change back: a tag that is too old would say that nothing has changed.
            platform
                .broker
                .serves_tagged("\"v1\"", large_catalog("one"));
            let successor = platform.replica().await;
            until("it is taken over and ends", async || {
                starting.state(broker).await.sync.served == 2
            })
            .await;
            until_passed(20 * 60).await;
            for replica in [&reader, &successor] {
                assert_eq!(
                    versions(replica, broker).await,
                    ["one"],
                    "{death:?} at {nth}"
                );
            }
            successor.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_interrupted_is_taken_over() {
    for death in [Intercept::CrashBefore, Intercept::CrashAfter] {
        let platform = PlatformFixture::new();
        platform.broker.answers(200, catalog(&[]));
        let one = platform.replica().await;
        let broker = one.register("db").await;
        one.until_synced(broker).await;
        one.trip(broker).await;
        let written = die_at(&platform, &one, (1, death), is_of_sync);
        until("the result of the probe is written or not", async || {
            written.load(Ordering::Relaxed) > 0
        })
        .await;
        let two = platform.replica().await;
        until("the breaker is closed", async || {
            matches!(two.breaker(broker).await, Breaker::Closed { .. })
        })
        .await;
        until_passed(60).await;
        assert_eq!(two.queue_limit(broker), Some(16));
        assert_eq!(two.pending_verbs().await, ["sync"]);
        two.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_stops_nobody_from_following_later() {
    let platform = PlatformFixture::new();
    let (one, other) = (
        platform.following_replica().await,
        platform.following_replica().await,
    );
    let broker = one.register("db").await;
    until("both share it", async || {
        other.queue_limit(broker) == Some(16)
    })
    .await;
    one.trip(broker).await;
    platform.intercept(|_| Intercept::Refuse);
    until_passed(30).await;
    platform.intercept(|_| Intercept::Pass);
    until_passed(2).await;
    assert_eq!(other.queue_limit(broker), Some(0));
}

#[tokio::test(start_paused = true)]
async fn what_was_found_while_the_store_did_not_answer_is_found_again() {
    let platform = PlatformFixture::new();
    let replica = platform.following_replica().await;
    let broker = replica.register("db").await;
    use sutler_platform::lifecycle::breaker::ExchangeOutcome::Unanswered;
    for _ in 0..4 {
        replica.exchange(broker, Unanswered).await;
    }
    platform.intercept(|_| Intercept::Refuse);
    replica.exchange(broker, Unanswered).await;
    platform.intercept(|_| Intercept::Pass);
    assert_eq!(replica.queue_limit(broker), Some(32));
    replica.exchange(broker, Unanswered).await;
    assert_eq!(replica.queue_limit(broker), Some(0));
}
