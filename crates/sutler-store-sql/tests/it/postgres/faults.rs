//! Servers that stop, freeze and come back; commits that are overtaken on their way.

use super::candidate::Postgres;
use super::cluster;
use crate::scene::{insert, key, until_ok};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Executor as _, Row as _};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::{Commit, CommitError, Store, settle};
use sutler_servers::Server;
use sutler_store_sql::{PostgresStore, SqlSettings};

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

async fn own() -> Option<(Server, Postgres, Arc<PostgresStore>)> {
    let server = cluster::own()?;
    let candidate = Postgres::on(&server).await;
    let store = PostgresStore::open_with(&candidate.url, impatient()).await;
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

/// The session whose last words were about the time.
async fn session_of(candidate: &Postgres) -> Pid {
    let find = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT sutler_now()'";
    let mut place = candidate.place.lock().await;
    let row = place.db.fetch_one(find).await.expect("a session");
    Pid::from_raw(row.get(0)).expect("a process")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_still_on_its_way_is_never_told_to_be_stale() {
    let Some((_cluster, candidate, store)) = own().await else {
        return;
    };
    let others = candidate.current();
    store.now().await.expect("the time");
    let session = session_of(&candidate).await;
    // Its session takes the commit in and does nothing about it.
    kill_process(session, Signal::STOP).expect("it stops");
    let slow = insert("a");
    let answer = store.commit(&slow).await;
    assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
    let quick = insert("a");
    others.commit(&quick).await.expect("a commit");
    let again = store.commit(&slow).await;
    assert!(
        matches!(again, Err(CommitError::Unknown(_))),
        "it may still be applied, yet {again:?}"
    );
    let read = sutler_journal::Version(quick.id());
    let removed = Commit::new().remove(key("a"), read);
    others.commit(&removed).await.expect("a commit");
    kill_process(session, Signal::CONT).expect("it goes on");
    until_ok("the slow commit", || settle(&*store, &slow)).await;
    let found = others.get(&key("a")).await.expect("a read");
    let version = found.expect("the slow commit's document").version;
    assert_eq!(version, sutler_journal::Version(slow.id()));
}
