//! Wakeups: at once within a process, by a timer to other replicas.

use super::conformance::{MySql, open};
use crate::fixture::{ready, worker};
use std::time::{Duration, Instant};
use sutler_journal::{Queue, Store as _};
use sutler_store_sql::SqlSettings;

/// Time within which another replica must claim: these servers send no notifications.
const ELSEWHERE: Duration = Duration::from_millis(500);
/// Attempts, because a busy machine may delay some of them.
const TRIES: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_operation_is_hinted_at_here_at_once_and_elsewhere_by_the_timer() {
    let Some(candidate) = MySql::fresh().await else {
        return;
    };
    assert!(SqlSettings::default().hint_every * 2 <= ELSEWHERE);
    let here = candidate.current();
    let elsewhere = open(&candidate.url).await;
    let mut own = here.hints();
    own.mark_unchanged();
    here.commit(&ready("a")).await.expect("a commit");
    assert!(own.has_changed().expect("the store lives"), "at once");
    let mut wakeups = elsewhere.hints();
    let queue = [(Queue::named("work"), 1)];
    let worker = worker(&*elsewhere).await;
    let mut fastest = Duration::MAX;
    for n in 0..TRIES {
        let began = Instant::now();
        here.commit(&ready(&n.to_string())).await.expect("a commit");
        wakeups.mark_unchanged();
        let hint = tokio::time::timeout(Duration::from_secs(30), wakeups.changed()).await;
        hint.expect("a hint").expect("the store lives");
        let claimed = elsewhere.claim(worker, &queue).await.expect("a claim");
        assert_eq!(claimed.len(), 1);
        fastest = fastest.min(began.elapsed());
    }
    assert!(fastest <= ELSEWHERE, "{fastest:?}");
}
