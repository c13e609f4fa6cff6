//! Servers that stop, freeze and come back.

use super::cluster;
use super::conformance::MySql;
use crate::faults::{self, impatient};
use crate::fixture::ready;
use sqlx::{Executor as _, MySqlConnection, Row as _};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{Commit, CommitError, OperationId, Store as _, commit_until_known};
use sutler_servers::Server;
use sutler_store_sql::{MySqlStore, SqlSettings};
use tokio::task::JoinHandle;

/// Polls until a session waits for a lock.
async fn until_a_session_waits<T>(observer: &mut MySqlConnection, waiting: &JoinHandle<T>) {
    loop {
        let look = "SELECT COUNT(*) FROM information_schema.innodb_trx
                    WHERE trx_state = 'LOCK WAIT'";
        let row = observer.fetch_one(look).await.expect("a count");
        if row.get::<i64, _>(0) > 0 {
            return;
        }
        assert!(!waiting.is_finished(), "nobody waited");
        // More frequent reads return cached data.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn own() -> Option<(Server, MySql, Arc<MySqlStore>)> {
    let server = cluster::own()?;
    let candidate = MySql::on(&server).await;
    let store = MySqlStore::open_with(&candidate.url, impatient()).await;
    Some((server, candidate, Arc::new(store.expect("a store"))))
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_of_the_server_the_store_recovers() {
    if let Some((server, _candidate, store)) = own().await {
        faults::after_a_restart_of_the_server_the_store_recovers(&server, &*store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_two_requests_is_not_noticed() {
    if let Some((server, _candidate, store)) = own().await {
        faults::a_restart_between_two_requests_is_not_noticed(&server, &*store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_noticed_and_recovers() {
    if let Some((server, _candidate, store)) = own().await {
        faults::a_frozen_server_is_noticed_and_recovers(&server, &*store).await;
    }
}

/// A commit that retries a new operation.
async fn retry_of_new_operation(store: &MySqlStore) -> (OperationId, Commit) {
    let start = ready("a");
    let sutler_journal::Write::Start(new) = &start.writes()[0] else {
        panic!("a start");
    };
    let id = new.id;
    store.commit(&start).await.expect("a commit");
    let retry = sutler_journal::Next::Retry(sutler_journal::Due::Now);
    (id, Commit::new().advance(id, retry, None, None))
}

const HOLD: &str = "START TRANSACTION; SELECT id FROM sutler_op FOR UPDATE";

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_while_a_session_is_ended_leaves_the_commit_unknown() {
    let Some((_server, candidate, store)) = own().await else {
        return;
    };
    let (id, commit) = retry_of_new_operation(&store).await;
    let settings = SqlSettings {
        statement_timeout: Duration::from_secs(60),
        lock_timeout: Duration::from_secs(60),
        ..impatient()
    };
    let store = MySqlStore::open_with(&candidate.url, settings).await;
    let store = store.expect("a store");
    let mut place = candidate.place.lock().await;
    place.db.execute(sqlx::raw_sql(HOLD)).await.expect("locks");
    let answer = store.commit(&commit).await;
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    candidate.proxy.stall_at("KILL CONNECTION");
    let again = tokio::time::timeout(Duration::from_secs(30), store.commit(&commit)).await;
    let again = again.expect("a response in time");
    assert!(matches!(again, Err(CommitError::Unknown(_))), "{again:?}");
    assert!(candidate.proxy.is_stalled(), "the session was to be ended");
    candidate.proxy.set_stalled(false);
    place.db.execute("ROLLBACK").await.expect("the end");
    let done = commit_until_known(&store, &commit).await;
    done.expect("the commit");
    let operation = store.operation(id).await.expect("a read");
    assert_eq!(operation.expect("the operation").row.attempt, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_commit_after_a_cut_is_ended_and_applied_once() {
    let Some((server, candidate, store)) = own().await else {
        return;
    };
    let (id, commit) = retry_of_new_operation(&store).await;
    let settings = SqlSettings {
        answer_timeout: Duration::from_secs(60),
        statement_timeout: Duration::from_secs(60),
        lock_timeout: Duration::from_secs(60),
        ..impatient()
    };
    let store = MySqlStore::open_with(&candidate.url, settings).await;
    let store = Arc::new(store.expect("a store"));
    let mut place = candidate.place.lock().await;
    place.db.execute(sqlx::raw_sql(HOLD)).await.expect("locks");
    let waiting = tokio::spawn({
        let (store, commit) = (Arc::clone(&store), commit.clone());
        async move { store.commit(&commit).await }
    });
    let mut observer = cluster::connect(&server).await;
    until_a_session_waits(&mut observer, &waiting).await;
    candidate.proxy.set_down(true);
    let answer = waiting.await.expect("no panic");
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    candidate.proxy.set_down(false);
    let repeat = tokio::spawn({
        let (store, commit) = (Arc::clone(&store), commit.clone());
        async move { commit_until_known(&*store, &commit).await }
    });
    place.db.execute("ROLLBACK").await.expect("the end");
    repeat.await.expect("no panic").expect("the commit");
    let operation = store.operation(id).await.expect("a read");
    assert_eq!(operation.expect("the operation").row.attempt, 2);
}
