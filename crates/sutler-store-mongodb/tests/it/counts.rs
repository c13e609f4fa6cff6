//! What things cost: round trips, and what is visited.

use crate::candidate::Mongo;
use crate::scene::{bytes, insert, key, new_operation, worker};
use sutler_journal::{Commit, Cursor, Fence, Next, Outcome, Start, Store, Term, Version, Write};

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_two_round_trips_and_a_poll_is_one() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let worker = worker(&*store).await;
    let both = ["bulkWrite", "commitTransaction"];
    let asked = |before: usize| mongo.proxy.asked_since(before);
    let before = mongo.proxy.waits();
    let new = new_operation("a", Start::Claimed(worker));
    let id = new.id;
    let accept = insert("a", 4).start(new);
    let read = Version(accept.id());
    store.commit(&accept).await.expect("accepted");
    assert_eq!(asked(before), both, "accepting");
    let before = mongo.proxy.waits();
    store.poll(&key("a"), id).await.expect("a poll");
    assert_eq!(asked(before), ["find"], "a poll");
    let before = mongo.proxy.waits();
    store.get(&key("a")).await.expect("a read");
    assert_eq!(asked(before), ["find"], "a read");
    let memo = Commit::new()
        .advance(id, Next::Same, None, Some(bytes("memo")))
        .fenced(id, Fence(1));
    let before = mongo.proxy.waits();
    store.commit(&memo).await.expect("a memo");
    assert_eq!(asked(before), both, "a memo");
    let done = Next::Done(Outcome::Succeeded);
    let result = Commit::new()
        .replace(key("a"), read, vec![Term::new("a", "x")], bytes("live"))
        .advance(id, done, Some(bytes("done")), None)
        .fenced(id, Fence(1));
    let before = mongo.proxy.waits();
    store.commit(&result).await.expect("a result");
    assert_eq!(asked(before), both, "a result");
    let next = Commit::new()
        .write(Write::Unpin(id))
        .start(new_operation("a", Start::Waiting));
    let before = mongo.proxy.waits();
    store.commit(&next).await.expect("the next operation");
    assert_eq!(asked(before), both, "letting go of the last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_finds_nothing_is_one_round_trip() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    let worker = worker(&*store).await;
    let queues = [(crate::scene::WORK, 8)];
    let before = mongo.proxy.waits();
    let claimed = store.claim(worker, &queues).await.expect("a claim");
    assert!(claimed.is_empty());
    assert_eq!(mongo.proxy.asked_since(before), ["aggregate"]);
    let ready = Start::Ready(sutler_journal::Due::Now);
    let new = new_operation("a", ready);
    store.commit(&Commit::new().start(new)).await.expect("it");
    let before = mongo.proxy.waits();
    let claimed = store.claim(worker, &queues).await.expect("a claim");
    assert_eq!(claimed.len(), 1);
    assert_eq!(mongo.proxy.asked_since(before), ["aggregate", "bulkWrite"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_without_news_is_one_round_trip() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let store = mongo.current();
    store.commit(&insert("a", 1)).await.expect("a commit");
    let start = Cursor::default();
    let first = store.changes(&start, 100).await.expect("changes");
    assert_eq!(first.changes.len(), 1);
    let before = mongo.proxy.waits();
    let again = store.changes(&start, 100).await.expect("changes");
    assert_eq!(again, first);
    assert_eq!(mongo.proxy.asked_since(before), ["aggregate"]);
}
