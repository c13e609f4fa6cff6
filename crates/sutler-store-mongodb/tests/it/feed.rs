//! The feed with many commits and few reads.

use crate::conformance::Mongo;
use crate::fixture::{insert, until};
use mongodb::bson::{Bson, Document as Bsons, Timestamp, Uuid, doc};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_journal::{CommitId, Cursor, Store, Sweep};
use tokio::task::JoinSet;

/// More records than can get positions in as many rounds as may fail.
const MANY: u32 = 25_600;
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Inserts commit records without positions.
async fn leave_unread(mongo: &Mongo) {
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let database = client.expect("a client").database(&mongo.place.path);
    let record = |increment: u32| {
        let ts = Bson::Timestamp(Timestamp { time: 1, increment });
        doc! {
            "_id": Uuid::new(), "at": 1_i64, "ts": ts, "new": true, "hint": false,
            "about": [{ "o": Uuid::new() }],
        }
    };
    let records = (1..=MANY).map(record);
    let commits = database.collection::<Bsons>("commits");
    let made = commits.insert_many(records).await;
    made.expect("records");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_with_many_unnumbered_commits_is_read() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    leave_unread(&mongo).await;
    let store = mongo.current();
    let mine = insert("a", 0);
    store.commit(&mine).await.expect("a commit");
    // A cursor after all of them: so each must have its position before there is a response.
    let end = Cursor::of_number(u64::from(MANY));
    let last = store.changes(&end, 10).await.expect("changes").changes;
    let last: Vec<CommitId> = last.iter().map(|it| it.commit).collect();
    assert_eq!(last, [mine.id()], "in order");
    let first = store.changes(&Cursor::default(), 10).await;
    assert_eq!(first.expect("changes").changes.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_with_many_unnumbered_commits_is_trimmed() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    leave_unread(&mongo).await;
    let store = mongo.current();
    let sweep = Sweep::Feed {
        before: store.now().await.expect("the time"),
        limit: 700,
    };
    assert_eq!(store.sweep(&sweep).await.expect("a sweep"), 700);
    assert_eq!(store.sweep(&sweep).await.expect("a sweep"), 700);
    let left = store.changes(&Cursor::default(), 1000).await;
    let left = left.expect("changes");
    assert!(left.gap, "some were forgotten");
    assert_eq!(left.changes.len(), 1000, "as many as wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_read_ends_while_others_commit() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(Mutex::new(HashSet::<CommitId>::new()));
    let known = || acknowledged.lock().expect("no panic").clone();
    let mut writers = JoinSet::new();
    let replica = mongo.replica().await;
    for writer in 0..16 {
        let (store, stop) = (Arc::clone(&replica), Arc::clone(&stop));
        let acknowledged = Arc::clone(&acknowledged);
        writers.spawn(async move {
            for n in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let commit = insert(&format!("{writer}-{n}"), 0);
                store.commit(&commit).await.expect("nobody is in the way");
                acknowledged.lock().expect("no panic").insert(commit.id());
            }
        });
    }
    let (store, start) = (mongo.current(), Cursor::default());
    for round in 1..=5 {
        until("more is committed", || async {
            known().len() >= round * 100
        })
        .await;
        let before = known();
        let read = store.changes(&start, 1_000_000);
        let read = tokio::time::timeout(LONG, read).await.expect("in time");
        let read = read.expect("changes").changes;
        let read: HashSet<CommitId> = read.iter().map(|it| it.commit).collect();
        assert!(before.is_subset(&read), "what was acknowledged is read");
    }
    stop.store(true, Ordering::SeqCst);
    writers.join_all().await;
}
