//! Wakeups: at once within a process, by notification to other replicas.

use super::conformance::{Postgres, open};
use crate::fixture::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::Store as _;
use sutler_store_sql::{PostgresStore, SqlSettings};

/// Time within which another replica must claim.
const ELSEWHERE: Duration = Duration::from_millis(50);
/// Attempts, because a busy machine may delay some of them.
const TRIES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_operation_is_hinted_at_here_at_once_and_elsewhere_soon() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    let here = candidate.current();
    let without_timer = SqlSettings {
        hint_every: Duration::from_secs(3600),
        ..SqlSettings::default()
    };
    let elsewhere = PostgresStore::open_with(&candidate.url, without_timer).await;
    let elsewhere = Arc::new(elsewhere.expect("a store"));
    let mut wakeups = elsewhere.hints();
    // The timer's first wakeup, and the one sent when the listener starts.
    for _ in 0..2 {
        let first = tokio::time::timeout(Duration::from_secs(30), wakeups.changed()).await;
        first.expect("it listens").expect("the store lives");
    }
    let mut fastest = Duration::MAX;
    for n in 0..TRIES {
        let mut own = here.hints();
        own.mark_unchanged();
        wakeups.mark_unchanged();
        here.commit(&ready(&n.to_string())).await.expect("a commit");
        let began = Instant::now();
        assert!(own.has_changed().expect("the store lives"), "at once");
        let hint = tokio::time::timeout(Duration::from_secs(30), wakeups.changed()).await;
        hint.expect("a hint").expect("the store lives");
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest <= ELSEWHERE, "{fastest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_sends_hints_without_notifications() {
    let Some(candidate) = Postgres::fresh().await else {
        return;
    };
    let store = open(&candidate.url).await;
    candidate.proxy.set_down(true);
    let mut hints = store.hints();
    for _ in 0..3 {
        let hint = tokio::time::timeout(Duration::from_secs(30), hints.changed()).await;
        hint.expect("a hint").expect("the store lives");
    }
}
