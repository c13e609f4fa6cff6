//! Several replicas on one store: they receive each other's wakeups, and a dead one blocks none.

use crate::conformance::Mongo;
use crate::fixture::{WORK, bytes, insert, key, new_operation, until, worker};
use mongodb::ClientSession;
use mongodb::bson::{Document as Bsons, doc};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, Cursor, Due, OperationId, Start, Store, Sweep, Version, WorkerId,
};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_woken_for_operations_of_another() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let (one, other) = (mongo.current(), mongo.replica().await);
    let mut times = Vec::new();
    for _ in 0..9 {
        let mut hints = other.hints();
        hints.mark_unchanged();
        let new = new_operation("a", Start::Ready(Due::Now));
        let began = Instant::now();
        let accepted = one.commit(&Commit::new().start(new)).await;
        accepted.expect("accepted");
        let received = tokio::time::timeout(Duration::from_secs(10), hints.changed()).await;
        received.expect("in time").expect("a hint");
        times.push(began.elapsed());
    }
    times.sort();
    eprintln!("commit and hint on another replica: median {:?}", times[4]);
    let worker = worker(&*other).await;
    let claimed = other.claim(worker, &[(WORK, 100)]).await.expect("a claim");
    assert_eq!(claimed.len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_the_feed_is_woken_for_every_commit_of_another() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let (one, other) = (mongo.current(), mongo.replica().await);
    let mut hints = other.feed_hints();
    for n in 0..9 {
        hints.mark_unchanged();
        let commit = insert(&n.to_string(), 0);
        one.commit(&commit).await.expect("a commit");
        let received = tokio::time::timeout(Duration::from_secs(10), hints.changed()).await;
        received.expect("in time").expect("a hint");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_read_the_same_document_get_through() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let shared = insert("shared", 0);
    mongo.current().commit(&shared).await.expect("it");
    let mut writers = JoinSet::new();
    for replica in 0..3 {
        let store = mongo.replica().await;
        for lane in 0..4 {
            let (store, read) = (store.clone(), Version(shared.id()));
            writers.spawn(async move {
                for n in 0..10 {
                    let id = format!("{replica}-{lane}-{n}");
                    let commit = insert(&id, 1).unchanged(key("shared"), read);
                    store.commit(&commit).await.expect("nobody changed it");
                }
            });
        }
    }
    writers.join_all().await;
    let store = mongo.current();
    let mut received_changes = 0;
    let mut cursor = Cursor::default();
    loop {
        let part = store.changes(&cursor, 50).await.expect("changes");
        if part.changes.is_empty() {
            break;
        }
        received_changes += part.changes.len();
        cursor = part.next;
    }
    assert_eq!(received_changes, 1 + 3 * 4 * 10, "each once");
}

/// A transaction that holds an operation, of a process that is gone.
async fn abandoned(mongo: &Mongo, id: OperationId) -> ClientSession {
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let client = client.expect("a client");
    let mut session = client.start_session().await.expect("a session");
    session.start_transaction().await.expect("a transaction");
    let operations = client
        .database(&mongo.place.path)
        .collection::<Bsons>("operations");
    let this = mongodb::bson::Uuid::from_bytes(*id.0.as_bytes());
    let touched = operations
        .update_one(doc! { "_id": this }, doc! { "$set": { "touched": true } })
        .session(&mut session)
        .await;
    assert_eq!(touched.expect("a write").matched_count, 1);
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_died_during_a_commit_blocks_no_other() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let dead = WorkerId::fresh();
    let brief = Duration::from_secs(1);
    store.renew(dead, brief).await.expect("a lease");
    let mut held = Vec::new();
    for _ in 0..3 {
        let new = new_operation("a", Start::Claimed(dead));
        held.push(new.id);
        store.commit(&Commit::new().start(new)).await.expect("it");
    }
    let mut session = abandoned(&mongo, held[0]).await;
    let successor = worker(&*store).await;
    let began = Instant::now();
    until("the others are taken over", || async {
        let claimed = store
            .claim(successor, &[(WORK, 10)])
            .await
            .expect("a claim");
        let held = store.renew(successor, Duration::from_secs(60)).await;
        let held = held.expect("a lease").held;
        assert!(claimed.iter().all(|it| held.contains(&it.row.id)));
        held.len() == 2
    })
    .await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "quickly, not in {took:?}");
    let new = new_operation("b", Start::Ready(Due::Now));
    store.commit(&Commit::new().start(new)).await.expect("it");
    let claimed = store
        .claim(successor, &[(WORK, 10)])
        .await
        .expect("a claim");
    assert_eq!(claimed.len(), 1, "what others do goes on");
    session
        .abort_transaction()
        .await
        .expect("the server ends it");
    until("the last is taken over", || async {
        let claimed = store
            .claim(successor, &[(WORK, 10)])
            .await
            .expect("a claim");
        claimed.iter().any(|it| it.row.id == held[0])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_operation_under_an_expired_lease_is_found() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let dead = worker(&*store).await;
    let new = new_operation("a", Start::Claimed(dead));
    let id = new.id;
    store.commit(&Commit::new().start(new)).await.expect("it");
    // As if the operation had appeared only after the lease was closed.
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let database = client.expect("a client").database(&mongo.place.path);
    let this = doc! { "_id": mongodb::bson::Uuid::from_bytes(*dead.0.as_bytes()) };
    let settled = doc! { "$set": { "open": false, "until": 1_i64 } };
    let leases = database.collection::<Bsons>("leases");
    let settled = leases.update_one(this, settled).await;
    assert_eq!(settled.expect("a write").modified_count, 1);
    let successor = worker(&*store).await;
    let sweep = Sweep::Feed {
        before: store.now().await.expect("the time"),
        limit: 10,
    };
    store.sweep(&sweep).await.expect("a sweep");
    let claimed = store.claim(successor, &[(WORK, 1)]).await.expect("a claim");
    let ids: Vec<OperationId> = claimed.iter().map(|it| it.row.id).collect();
    assert_eq!(ids, [id]);
    // Nothing holds it now: the lease is closed again, then deleted.
    store.claim(successor, &[(WORK, 1)]).await.expect("a claim");
    store.sweep(&sweep).await.expect("a sweep");
    let info = store.info().await.expect("facts about the store");
    assert_eq!((info.abandoned, info.leases_over), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_operation_does_not_block_the_queue() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let mut ready = Vec::new();
    for _ in 0..2 {
        let new = new_operation("a", Start::Ready(Due::Now));
        ready.push(new.id);
        store.commit(&Commit::new().start(new)).await.expect("it");
    }
    let mut session = abandoned(&mongo, ready[0]).await;
    let worker = worker(&*store).await;
    let claimed = store.claim(worker, &[(WORK, 1)]).await.expect("a claim");
    let ids: Vec<OperationId> = claimed.iter().map(|it| it.row.id).collect();
    assert_eq!(ids, [ready[1]], "the next in the queue");
    session
        .abort_transaction()
        .await
        .expect("the server ends it");
    until("its turn comes", || async {
        let claimed = store.claim(worker, &[(WORK, 1)]).await.expect("a claim");
        claimed.iter().any(|it| it.row.id == ready[0])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_a_dead_replica_holds_is_refused_in_time_and_free_later() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let new = new_operation("a", Start::Waiting);
    let id = new.id;
    store.commit(&Commit::new().start(new)).await.expect("it");
    let mut session = abandoned(&mongo, id).await;
    let memo = Commit::new().advance(id, sutler_journal::Next::Same, None, Some(bytes("memo")));
    let refused = store.commit(&memo).await;
    assert!(
        matches!(refused, Err(CommitError::NotWritten(_))),
        "{refused:?}"
    );
    session
        .abort_transaction()
        .await
        .expect("the server ends it");
    store.commit(&memo).await.expect("it is free");
}
