//! Commits: all or nothing, once.

use super::Candidate;
use super::scene::{NEVER, Scene, advance, bytes, finish, insert, key, new_operation, only};
use crate::commit::{Commit, Due, Next, Start, Which, Write};
use crate::document::Version;
use crate::operation::{OperationId, Outcome, State};
use crate::query::{Cursor, List, OperationFilter, Stats};

/// A fresh store has nothing in it, and says so in every way it can be asked.
pub async fn an_empty_store_holds_nothing(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    assert_eq!(scene.get("a").await, None);
    let nobody = OperationId::fresh();
    assert_eq!(scene.store.operation(nobody).await.expect("a read"), None);
    assert_eq!(
        scene.store.poll(&key("a"), nobody).await.expect("a poll"),
        None
    );
    let everything = List::Prefix(Vec::new());
    assert_eq!(scene.list_all(&everything, 10).await, []);
    assert_eq!(scene.operations(OperationFilter::All).await, []);
    assert_eq!(scene.feed(&Cursor::default()).await.0, []);
    assert_eq!(scene.stats().await, Stats::default());
    assert_eq!(scene.log(nobody).await, []);
}

/// Documents and operations of one commit are there together, under its version.
pub async fn a_commit_writes_documents_and_operations_together(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let new = new_operation("a", Start::Waiting);
    let id = new.id;
    let commit = insert("a", "one")
        .insert(key("b"), Vec::new(), bytes("two"))
        .start(new);
    let version = Version(scene.commit(commit).await);
    let a = scene.get("a").await.expect("a");
    let b = scene.get("b").await.expect("b");
    assert_eq!(
        (a.key, a.version, a.body),
        (key("a"), version, bytes("one"))
    );
    assert_eq!(
        (b.key, b.version, b.body),
        (key("b"), version, bytes("two"))
    );
    assert_eq!(scene.row(id).await.lane, key("a"));
}

/// Repeating an applied commit succeeds and does nothing, even if others wrote since.
pub async fn a_repeated_commit_succeeds_and_changes_nothing(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let id = scene.start_ready().await;
    let commit = insert("a", "first")
        .start(new_operation("a", Start::Waiting))
        .advance(id, Next::Retry(Due::Now), None, None);
    scene.commit(commit.clone()).await;
    let once = scene.snapshot().await;
    scene.commit(commit.clone()).await;
    assert_eq!(scene.snapshot().await, once, "repeated at once");

    let read = scene.version("a").await;
    scene
        .commit(Commit::new().replace(key("a"), read, Vec::new(), bytes("second")))
        .await;
    scene.commit(finish(id, Outcome::Failed)).await;
    let later = scene.snapshot().await;
    scene.commit(commit).await;
    assert_eq!(scene.snapshot().await, later, "repeated after other writes");
}

/// A commit that only expected something is remembered like any other.
pub async fn a_commit_without_writes_can_be_repeated(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let commit = Commit::new().absent(key("a"));
    scene.commit(commit.clone()).await;
    scene.commit(insert("a", "now it is there")).await;
    scene.commit(commit).await;
    scene.stale(Commit::new().absent(key("a"))).await;
}

/// What would have fitted is not written when something else does not.
pub async fn a_stale_commit_changes_nothing(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    scene.commit(insert("taken", "old")).await;
    let ready = scene.start_ready().await;
    let ended = scene.start_ready().await;
    scene.commit(finish(ended, Outcome::Succeeded)).await;
    let before = scene.snapshot().await;

    let much = || {
        insert("new", "x")
            .write(Write::Remove(key("taken")))
            .start(new_operation("new", Start::Ready(Due::Now)))
            .write(Write::Cancel(ready))
            .write(Write::Unpin(ended))
            .advance(ready, Next::Retry(Due::Now), Some(bytes("d")), None)
    };
    let which = scene.stale(much().absent(key("taken"))).await;
    assert_eq!(which, Which::Expect(1));
    assert_eq!(
        scene.snapshot().await,
        before,
        "the last expectation failed"
    );
    let late = much().advance(ended, Next::Same, None, None);
    assert_eq!(scene.stale(late).await, Which::Write(6));
    assert_eq!(scene.snapshot().await, before, "the last write failed");
}

/// A stale commit may be tried again under its id: only what was applied is remembered.
pub async fn a_stale_commit_is_not_remembered(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    scene.commit(insert("gate", "shut")).await;
    let commit = insert("a", "x").absent(key("gate"));
    assert_eq!(scene.stale(commit.clone()).await, Which::Expect(1));
    let read = scene.version("gate").await;
    scene.commit(Commit::new().remove(key("gate"), read)).await;
    scene.commit(commit).await;
    assert!(scene.get("a").await.is_some(), "applied at the second try");
}

/// Of several things that do not hold, the first is named; expectations come before writes.
pub async fn stale_names_the_first_thing_that_does_not_hold(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let read = Version(scene.commit(insert("a", "x")).await);
    let nobody = OperationId::fresh();
    let commit = advance(nobody, Next::Same)
        .unchanged(key("a"), read)
        .absent(key("b"))
        .absent(key("a"))
        .unchanged(key("b"), read);
    assert_eq!(scene.stale(commit).await, Which::Expect(2));
    let commit = insert("b", "y")
        .advance(nobody, Next::Same, None, None)
        .advance(OperationId::fresh(), Next::Same, None, None);
    assert_eq!(scene.stale(commit).await, Which::Write(1));
}

/// Writes that may go together are done in the order in which they stand.
pub async fn writes_are_done_in_their_order(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let id = scene.start_ready().await;
    let postponed = advance(id, Next::Ready(Due::In(NEVER))).write(Write::Wake(id));
    scene.commit(postponed).await;
    assert!(scene.row(id).await.due <= scene.now().await, "then woken");

    let commit = only(Write::Wake(id)).advance(id, Next::Ready(Due::In(NEVER)), None, None);
    scene.commit(commit).await;
    assert!(
        scene.row(id).await.due > scene.now().await,
        "then postponed"
    );

    let new = new_operation("a", Start::Waiting);
    let born = new.id;
    let commit = Commit::new()
        .start(new)
        .write(Write::Wake(born))
        .write(Write::Unpin(born));
    scene.commit(commit).await;
    let row = scene.row(born).await;
    assert_eq!((row.state, row.pinned), (State::Ready, false));

    let commit = only(Write::Cancel(born))
        .advance(born, Next::Done(Outcome::Cancelled), None, None)
        .write(Write::Wake(born));
    scene.commit(commit).await;
    let row = scene.row(born).await;
    assert_eq!(row.state, State::Done(Outcome::Cancelled));
    assert!(row.cancel, "asked before it ended");
}

/// A write without an expectation goes through, whatever was there.
pub async fn writes_without_expectations_replace_and_remove(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let put = |body: &str| {
        only(Write::Put {
            key: key("a"),
            terms: Vec::new(),
            body: bytes(body),
        })
    };
    for body in ["one", "two"] {
        let version = Version(scene.commit(put(body)).await);
        let document = scene.get("a").await.expect("a");
        assert_eq!((document.version, document.body), (version, bytes(body)));
    }
    for _ in 0..2 {
        scene.commit(only(Write::Remove(key("a")))).await;
        assert_eq!(scene.get("a").await, None);
    }
}
