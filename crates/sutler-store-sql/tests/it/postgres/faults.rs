//! Servers that stop, freeze and come back; commits that are overtaken in flight.

use super::cluster;
use super::conformance::Postgres;
use crate::faults::{self, impatient};
use crate::fixture::{insert, key, until_ok};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Executor as _, Row as _};
use std::sync::Arc;
use sutler_journal::{Commit, CommitError, Store as _, commit_until_known};
use sutler_servers::Server;
use sutler_store_sql::PostgresStore;

async fn own() -> Option<(Server, Postgres, Arc<PostgresStore>)> {
    let server = cluster::own()?;
    let candidate = Postgres::on(&server).await;
    let store = PostgresStore::open_with(&candidate.url, impatient()).await;
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

/// The session whose last statement read the time.
async fn session_of(candidate: &Postgres) -> Pid {
    let find = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT sutler_now()'";
    let mut place = candidate.place.lock().await;
    let row = place.db.fetch_one(find).await.expect("a session");
    Pid::from_raw(row.get(0)).expect("a process")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_flight_is_never_reported_as_stale() {
    let Some((_cluster, candidate, store)) = own().await else {
        return;
    };
    let others = candidate.current();
    store.now().await.expect("the time");
    let session = session_of(&candidate).await;
    // Its session receives the commit and does not process it.
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
    until_ok("the slow commit", || commit_until_known(&*store, &slow)).await;
    let found = others.get(&key("a")).await.expect("a read");
    let version = found.expect("the slow commit's document").version;
    assert_eq!(version, sutler_journal::Version(slow.id()));
}
