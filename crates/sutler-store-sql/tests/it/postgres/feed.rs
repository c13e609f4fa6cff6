//! The feed of PostgreSQL while commits begin and end during a read of it.
//!
//! Not here: the behaviours of every store (the conformance suite).

use super::cluster;
use super::conformance::Postgres;
use crate::fixture::insert;
use sqlx::{Executor as _, Row as _};
use sutler_journal::conformance::{Candidate as _, concurrent_reads};
use sutler_journal::{Cursor, Store as _};
use sutler_servers::{Demands, postgres};

/// A reader of the feed waits after it has read the last number given, until lock 4711 is free.
const WAITING_READER: &str = "
    CREATE OR REPLACE FUNCTION sutler_place_v1(p_sequence regclass, p_number bigint)
        RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        IF p_number = 0 THEN PERFORM pg_advisory_xact_lock(4711); END IF;
        RETURN (((p_sequence::oid::bigint & 1073741823) | 1073741824) << 32)
            | (coalesce(p_number, 0) & 4294967295);
    END $$;
    SELECT pg_advisory_lock(4711)";
const WAITING: &str = "SELECT count(*) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 0 AND objid = 4711 AND NOT granted";

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_begins_during_a_read_of_the_feed_hides_no_other() {
    let Some(server) = cluster::own() else {
        return;
    };
    let candidate = Postgres::on(&server).await;
    let store = candidate.current();
    let before = insert("before");
    store.commit(&before).await.expect("a commit");
    let mut place = candidate.place.lock().await;
    let wait = place.db.execute(sqlx::raw_sql(WAITING_READER)).await;
    wait.expect("a lock");
    let reading = tokio::spawn({
        let store = candidate.current();
        async move { store.changes(&Cursor::default(), 10).await }
    });
    let mut observer = cluster::connect(&server).await;
    while observer
        .fetch_one(WAITING)
        .await
        .expect("locks")
        .get::<i64, _>(0)
        == 0
    {
        assert!(!reading.is_finished(), "the reader did not wait");
    }
    store.commit(&insert("ended")).await.expect("a commit");
    let open = candidate.stall(insert("open")).await;
    let free = place.db.execute("SELECT pg_advisory_unlock(4711)").await;
    free.expect("the lock is free");
    let read = reading.await.expect("no panic").expect("changes");
    let first = read.changes.first().map(|change| change.commit);
    assert_eq!(first, Some(before.id()), "acknowledged before the read");
    open.finish().await.expect("the commit");
    let all = store.changes(&Cursor::default(), 10).await;
    assert_eq!(all.expect("changes").changes.len(), 3);
}

/// On a server that waits for its disk, commits hold their place for longer than they compute.
#[tokio::test(flavor = "multi_thread")]
async fn the_feed_is_current_on_a_server_that_waits_for_its_disk() {
    let arguments = [
        "-c",
        "fsync=on",
        "-c",
        "commit_delay=3000",
        "-c",
        "commit_siblings=1",
    ];
    let demands = Demands {
        arguments: arguments.map(str::to_owned).to_vec(),
        ..Demands::default()
    };
    let Some(server) = postgres::own(demands) else {
        return;
    };
    let candidate = Postgres::on(&server).await;
    concurrent_reads::the_feed_is_current_while_many_commit(&candidate).await;
}
