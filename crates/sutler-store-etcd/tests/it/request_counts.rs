//! Costs: round trips, and keys touched by a commit.

use crate::conformance::Etcd;
use crate::fixture::{bytes, insert, key, new_operation, realm, worker};
use bytes::Bytes;
use std::collections::BTreeSet;
use sutler_journal::{
    Commit, Fence, Kind, List, Next, Outcome, Start, Store, Term, Version, Write,
};

/// The keys that the last transaction writes or removes.
fn keys_touched(etcd: &Etcd) -> usize {
    let request = etcd.proxy.last_commit();
    let head = request.windows(4).position(|it| it == b"\r\n\r\n");
    let body = &request[head.expect("a head") + 4..];
    let txn: serde_json::Value = serde_json::from_slice(body).expect("a transaction");
    let steps = txn["success"].as_array().expect("steps");
    let key = |step: &serde_json::Value| {
        let put = &step["request_put"]["key"];
        let delete = &step["request_delete_range"]["key"];
        let key = put.as_str().or(delete.as_str());
        key.expect("a put or a delete").to_owned()
    };
    let keys: BTreeSet<String> = steps.iter().map(key).collect();
    assert_eq!(keys.len(), steps.len(), "no key twice");
    keys.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_one_round_trip_and_so_is_a_poll() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    let worker = worker(&*store).await;
    let before = etcd.proxy.round_trips();
    let new = new_operation("a", Start::Claimed(worker));
    let id = new.id;
    let accept = insert("a", 4).start(new);
    let read = Version(accept.id());
    store.commit(&accept).await.expect("accepted");
    assert_eq!(etcd.proxy.round_trips() - before, 1, "accepting");
    store.poll(&key("a"), id).await.expect("a poll");
    assert_eq!(etcd.proxy.round_trips() - before, 2, "a poll");
    store.get(&key("a")).await.expect("a read");
    assert_eq!(etcd.proxy.round_trips() - before, 3, "a read");
    let memo = Commit::new()
        .advance(id, Next::Same, None, Some(bytes("memo")))
        .fenced(id, Fence(1));
    store.commit(&memo).await.expect("a memo");
    assert_eq!(etcd.proxy.round_trips() - before, 4, "a memo");
    let result = Commit::new()
        .replace(key("a"), read, vec![Term::new("a", "x")], bytes("live"))
        .advance(
            id,
            Next::Done(Outcome::Succeeded),
            Some(bytes("done")),
            None,
        )
        .fenced(id, Fence(1));
    store.commit(&result).await.expect("a result");
    assert_eq!(etcd.proxy.round_trips() - before, 5, "a result");
    store.commit(&result).await.expect("a repeat");
    assert!(etcd.proxy.round_trips() - before <= 6, "a repeat");
    let next = Commit::new()
        .write(Write::Unpin(id))
        .start(new_operation("a", Start::Waiting));
    let before = etcd.proxy.round_trips();
    store.commit(&next).await.expect("the next operation");
    assert_eq!(
        etcd.proxy.round_trips() - before,
        1,
        "letting go of the last"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_a_commit_touches_do_not_depend_on_its_terms() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    let mut touched = BTreeSet::new();
    for terms in [0, 1, 8] {
        let id = format!("{terms}");
        let start = new_operation(&id, Start::Waiting);
        let operation = start.id;
        let commit = insert(&id, terms).start(start);
        store.commit(&commit).await.expect("a commit");
        touched.insert(keys_touched(&etcd));
        let names = ["s", "t", "u", "v", "w", "x", "y", "z"];
        let others = names.iter().take(8 - terms).map(|it| Term::new(it, "new"));
        let replace = Commit::new()
            .replace(key(&id), Version(commit.id()), others.collect(), bytes("x"))
            .advance(
                operation,
                Next::Done(Outcome::Failed),
                Some(bytes("d")),
                None,
            );
        store.commit(&replace).await.expect("a commit");
        touched.insert(keys_touched(&etcd));
    }
    // The document, the operation, the commit record, the head.
    assert_eq!(touched, BTreeSet::from([4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_contents_are_one_key_and_are_deleted_without_users() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    let large = |byte: u8| Bytes::from(vec![byte; 100_000]);
    let mut new = new_operation("a", Start::Waiting);
    let id = new.id;
    (new.detail, new.request) = (large(1), large(2));
    store.commit(&Commit::new().start(new)).await.expect("it");
    assert_eq!(keys_touched(&etcd), 4, "one sheet for both");
    let polled = store.poll(&key("a"), id).await.expect("a poll");
    assert_eq!(polled.expect("it").detail, large(1));
    for byte in 3..6 {
        let memo = Commit::new().advance(id, Next::Same, None, Some(large(byte)));
        store.commit(&memo).await.expect("a memo");
        let first = byte == 3;
        let expected = if first { 4 } else { 5 };
        assert_eq!(keys_touched(&etcd), expected, "the old sheet goes at once");
    }
    let whole = store.operation(id).await.expect("a read").expect("it");
    assert_eq!((whole.request, whole.progress), (large(2), large(5)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_may_have_a_hundred_expectations_and_a_hundred_writes() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    let mut commit = Commit::new();
    for n in 0..100 {
        commit = commit.absent(key(&format!("absent-{n}")));
        commit = commit.start(new_operation(&format!("{n}"), Start::Waiting));
    }
    store.commit(&commit).await.expect("the commit");
    let blocked = Commit::new().absent(key("absent-7"));
    store.commit(&insert("absent-7", 0)).await.expect("it");
    let stale = store.commit(&blocked).await;
    assert!(stale.is_err(), "{stale:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_by_term_is_two_round_trips_wherever_it_is() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let store = etcd.current();
    for n in 0..40 {
        store
            .commit(&insert(&format!("{n:02}"), 1))
            .await
            .expect("it");
    }
    let list = List::Term {
        realm: realm(),
        kind: Kind::new("thing"),
        name: "a",
        from: b"".to_vec(),
        to: b"99".to_vec(),
    };
    let mut after = None;
    for _ in 0..4 {
        let before = etcd.proxy.round_trips();
        let page = store.list(&list, after.as_ref(), 10).await.expect("a page");
        assert_eq!(
            (page.documents.len(), etcd.proxy.round_trips() - before),
            (10, 2)
        );
        after = page.next;
    }
    assert_eq!(after, None);
}
