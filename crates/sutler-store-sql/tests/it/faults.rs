//! Servers that stop, freeze and come back: the same for every server.

use crate::fixture::{insert, key, until_ok};
use std::time::{Duration, Instant};
use sutler_journal::{Commit, CommitError, Store, commit_until_known};
use sutler_servers::Server;
use sutler_store_sql::SqlSettings;

/// Short time limits, and one connection, so that its session can be found.
pub(crate) fn impatient() -> SqlSettings {
    SqlSettings {
        connections: 1,
        connect_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_secs(1),
        hint_every: Duration::from_secs(3600),
        ..SqlSettings::default()
    }
}

/// Time within which a lost server must be noticed: two timeouts of a second each, on a busy machine.
const SOON: Duration = Duration::from_secs(8);

/// A lost server is noticed soon, by reads and writes, and no acknowledged commit is lost.
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
    until_ok("the lost commit", || commit_until_known(store, lost)).await;
    let found = store.get(&key("lost")).await.expect("a read");
    assert!(found.is_some());
    store.commit(&insert("after")).await.expect("a commit");
}

pub(crate) async fn after_a_restart_of_the_server_the_store_recovers(
    server: &Server,
    store: &dyn Store,
) {
    store.commit(&insert("before")).await.expect("a commit");
    let lost = insert("lost");
    server.kill();
    is_noticed(store, &lost).await;
    server.start();
    goes_on(store, &lost).await;
}

pub(crate) async fn a_restart_between_two_requests_is_not_noticed(
    server: &Server,
    store: &dyn Store,
) {
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

pub(crate) async fn a_frozen_server_is_noticed_and_recovers(server: &Server, store: &dyn Store) {
    store.commit(&insert("before")).await.expect("a commit");
    let lost = insert("lost");
    server.freeze();
    is_noticed(store, &lost).await;
    server.thaw();
    goes_on(store, &lost).await;
}
