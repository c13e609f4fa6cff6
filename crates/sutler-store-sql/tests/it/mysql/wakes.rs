//! Hints: at once to oneself, by a timer to other replicas.

use super::candidate::{MySql, open};
use crate::scene::ready;
use std::time::Duration;
use sutler_journal::Store as _;
use sutler_store_sql::SqlSettings;

/// How soon another replica must look: these servers send no notifications.
const ELSEWHERE: Duration = Duration::from_millis(500);

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
    let mut heard = elsewhere.hints();
    for _ in 0..3 {
        let hint = tokio::time::timeout(Duration::from_secs(30), heard.changed()).await;
        hint.expect("a hint").expect("the store lives");
    }
}
