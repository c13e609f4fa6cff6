//! Servers that stop, freeze and come back.

use super::candidate::MySql;
use super::cluster;
use crate::scene::{insert, key, ready, until_ok};
use sqlx::{Executor as _, MySqlConnection, Row as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::{Commit, CommitError, Store, settle};
use sutler_servers::Server;
use sutler_store_sql::{MySqlStore, SqlSettings};
use tokio::task::JoinHandle;

/// Gives up soon, and has one connection, so that its session can be found.
fn impatient() -> SqlSettings {
    SqlSettings {
        connections: 1,
        connect_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_secs(1),
        hint_every: Duration::from_secs(3600),
        ..SqlSettings::default()
    }
}

/// How soon a lost server must be noticed: two timeouts of a second each, on a busy machine.
const SOON: Duration = Duration::from_secs(8);

/// Looks until a session waits for a lock.
async fn until_somebody_waits<T>(looking: &mut MySqlConnection, waiting: &JoinHandle<T>) {
    loop {
        let look = "SELECT COUNT(*) FROM information_schema.innodb_trx
                    WHERE trx_state = 'LOCK WAIT'";
        let row = looking.fetch_one(look).await.expect("a count");
        if row.get::<i64, _>(0) > 0 {
            return;
        }
        assert!(!waiting.is_finished(), "nobody waited");
        // Who looks more often is shown what was there before.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn own() -> Option<(Server, MySql, Arc<MySqlStore>)> {
    let server = cluster::own()?;
    let candidate = MySql::on(&server).await;
    let store = MySqlStore::open_with(&candidate.url, impatient()).await;
    Some((server, candidate, Arc::new(store.expect("a store"))))
}

/// A lost server is noticed soon, by readers and writers; and nothing that was acknowledged is lost.
async fn is_noticed(store: &dyn Store, lost: &Commit) {
    let began = Instant::now();
    let read = store.get(&key("before")).await;
    assert!(read.is_err(), "nobody can know");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let began = Instant::now();
    match store.commit(lost).await {
        Err(CommitError::Unknown(_) | CommitError::NotWritten(_)) => {}
        other => panic!("the server is away, yet {other:?}"),
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

async fn goes_on(store: &dyn Store, lost: &Commit) {
    let read = until_ok("a read", || async { store.get(&key("before")).await }).await;
    assert!(read.is_some(), "what was acknowledged is there");
    until_ok("the lost commit", || settle(store, lost)).await;
    let found = store.get(&key("lost")).await.expect("a read");
    assert!(found.is_some());
    store.commit(&insert("after")).await.expect("a commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_of_the_server_everything_goes_on() {
    let Some((server, _candidate, store)) = own().await else {
        return;
    };
    store.commit(&insert("before")).await.expect("a commit");
    let lost = insert("lost");
    server.kill();
    is_noticed(&*store, &lost).await;
    server.start();
    goes_on(&*store, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_between_two_requests_is_not_noticed() {
    let Some((server, _candidate, store)) = own().await else {
        return;
    };
    store.commit(&insert("before")).await.expect("a commit");
    for n in 0..3 {
        server.kill();
        server.start();
        match n {
            0 => drop(store.get(&key("before")).await.expect("a read")),
            1 => store.commit(&insert("x")).await.expect("a commit"),
            _ => drop(store.now().await.expect("the time")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_noticed_and_goes_on() {
    let Some((server, _candidate, store)) = own().await else {
        return;
    };
    store.commit(&insert("before")).await.expect("a commit");
    let lost = insert("lost");
    server.freeze();
    is_noticed(&*store, &lost).await;
    server.thaw();
    goes_on(&*store, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_waits_when_its_wire_is_cut_is_ended_and_then_applied_once() {
    let Some((server, candidate, store)) = own().await else {
        return;
    };
    let start = ready("a");
    let sutler_journal::Write::Start(new) = &start.writes()[0] else {
        panic!("a start");
    };
    let id = new.id;
    store.commit(&start).await.expect("a commit");
    let patient = SqlSettings {
        answer_timeout: Duration::from_secs(60),
        statement_timeout: Duration::from_secs(60),
        lock_timeout: Duration::from_secs(60),
        ..impatient()
    };
    let store = MySqlStore::open_with(&candidate.url, patient).await;
    let store = Arc::new(store.expect("a store"));
    let mut place = candidate.place.lock().await;
    let hold = "START TRANSACTION; SELECT id FROM sutler_op FOR UPDATE";
    place.db.execute(sqlx::raw_sql(hold)).await.expect("locks");
    let retry = sutler_journal::Next::Retry(sutler_journal::Due::Now);
    let commit = Commit::new().advance(id, retry, None, None);
    let waiting = tokio::spawn({
        let (store, commit) = (Arc::clone(&store), commit.clone());
        async move { store.commit(&commit).await }
    });
    let mut looking = cluster::connect(&server).await;
    until_somebody_waits(&mut looking, &waiting).await;
    candidate.proxy.set_down(true);
    let answer = waiting.await.expect("no panic");
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    candidate.proxy.set_down(false);
    let repeat = tokio::spawn({
        let (store, commit) = (Arc::clone(&store), commit.clone());
        async move { settle(&*store, &commit).await }
    });
    place.db.execute("ROLLBACK").await.expect("the end");
    repeat.await.expect("no panic").expect("the commit");
    let operation = store.operation(id).await.expect("a read");
    assert_eq!(operation.expect("the operation").row.attempt, 2);
}
