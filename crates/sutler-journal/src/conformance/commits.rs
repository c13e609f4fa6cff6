//! Commits: all or nothing, once.

use super::Candidate;
use super::fixture::{Fixture, NEVER, advance, bytes, finish, insert, key, new_operation, only};
use crate::commit::{Commit, Due, Next, StaleItem, Start, Write};
use crate::document::Version;
use crate::operation::{OperationId, Outcome, State};
use crate::query::{Cursor, List, OperationFilter, Stats};

/// Every read of a fresh store returns nothing.
pub async fn an_empty_store_holds_nothing(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    assert_eq!(fixture.get("a").await, None);
    let absent_id = OperationId::fresh();
    assert_eq!(
        fixture.store.operation(absent_id).await.expect("a read"),
        None
    );
    assert_eq!(
        fixture
            .store
            .poll(&key("a"), absent_id)
            .await
            .expect("a poll"),
        None
    );
    let everything = List::Prefix(Vec::new());
    assert_eq!(fixture.list_all(&everything, 10).await, []);
    assert_eq!(fixture.operations(OperationFilter::All).await, []);
    assert_eq!(fixture.feed(&Cursor::default()).await.0, []);
    assert_eq!(fixture.stats().await, Stats::default());
    assert_eq!(fixture.log(absent_id).await, []);
}

/// Documents and operations of one commit appear together, under its version.
pub async fn a_commit_writes_documents_and_operations_together(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let new = new_operation("a", Start::Waiting);
    let id = new.id;
    let commit = insert("a", "one")
        .insert(key("b"), Vec::new(), bytes("two"))
        .start(new);
    let version = Version(fixture.commit(commit).await);
    let a = fixture.get("a").await.expect("a");
    let b = fixture.get("b").await.expect("b");
    assert_eq!(
        (a.key, a.version, a.body),
        (key("a"), version, bytes("one"))
    );
    assert_eq!(
        (b.key, b.version, b.body),
        (key("b"), version, bytes("two"))
    );
    assert_eq!(fixture.row(id).await.lane, key("a"));
}

/// Repeating an applied commit succeeds and changes nothing, even if others wrote since.
pub async fn a_repeated_commit_succeeds_and_changes_nothing(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let commit = insert("a", "first")
        .start(new_operation("a", Start::Waiting))
        .advance(id, Next::Retry(Due::Now), None, None);
    fixture.commit(commit.clone()).await;
    let once = fixture.snapshot().await;
    fixture.commit(commit.clone()).await;
    assert_eq!(fixture.snapshot().await, once, "repeated at once");

    let read = fixture.version("a").await;
    fixture
        .commit(Commit::new().replace(key("a"), read, Vec::new(), bytes("second")))
        .await;
    fixture.commit(finish(id, Outcome::Failed)).await;
    let later = fixture.snapshot().await;
    fixture.commit(commit).await;
    assert_eq!(
        fixture.snapshot().await,
        later,
        "repeated after other writes"
    );
}

/// A commit with expectations only is remembered like any other.
pub async fn a_commit_without_writes_can_be_repeated(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let commit = Commit::new().absent(key("a"));
    fixture.commit(commit.clone()).await;
    fixture.commit(insert("a", "now it is there")).await;
    fixture.commit(commit).await;
    fixture.stale(Commit::new().absent(key("a"))).await;
}

/// If one item of a commit fails, none of its writes is applied.
pub async fn a_stale_commit_changes_nothing(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("taken", "old")).await;
    let ready = fixture.start_ready().await;
    let ended = fixture.start_ready().await;
    fixture.commit(finish(ended, Outcome::Succeeded)).await;
    let before = fixture.snapshot().await;

    let much = || {
        insert("new", "x")
            .write(Write::Remove(key("taken")))
            .start(new_operation("new", Start::Ready(Due::Now)))
            .write(Write::Cancel(ready))
            .write(Write::Unpin(ended))
            .advance(ready, Next::Retry(Due::Now), Some(bytes("d")), None)
    };
    let which = fixture.stale(much().absent(key("taken"))).await;
    assert_eq!(which, StaleItem::Expect(1));
    assert_eq!(
        fixture.snapshot().await,
        before,
        "the last expectation failed"
    );
    let late = much().advance(ended, Next::Same, None, None);
    assert_eq!(fixture.stale(late).await, StaleItem::Write(6));
    assert_eq!(fixture.snapshot().await, before, "the last write failed");
}

/// A stale commit may be repeated under its id: only applied commits are remembered.
pub async fn a_stale_commit_is_not_remembered(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("gate", "shut")).await;
    let commit = insert("a", "x").absent(key("gate"));
    assert_eq!(fixture.stale(commit.clone()).await, StaleItem::Expect(1));
    let read = fixture.version("gate").await;
    fixture
        .commit(Commit::new().remove(key("gate"), read))
        .await;
    fixture.commit(commit).await;
    assert!(
        fixture.get("a").await.is_some(),
        "applied at the second try"
    );
}

/// Of several failed conditions, the first is named; expectations come before writes.
pub async fn stale_names_the_first_failed_condition(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let read = Version(fixture.commit(insert("a", "x")).await);
    let absent_id = OperationId::fresh();
    let commit = advance(absent_id, Next::Same)
        .unchanged(key("a"), read)
        .absent(key("b"))
        .absent(key("a"))
        .unchanged(key("b"), read);
    assert_eq!(fixture.stale(commit).await, StaleItem::Expect(2));
    let commit = insert("b", "y")
        .advance(absent_id, Next::Same, None, None)
        .advance(OperationId::fresh(), Next::Same, None, None);
    assert_eq!(fixture.stale(commit).await, StaleItem::Write(1));
}

/// Writes of one commit are applied in their order.
pub async fn writes_are_done_in_their_order(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let postponed = advance(id, Next::Ready(Due::In(NEVER))).write(Write::Wake(id));
    fixture.commit(postponed).await;
    assert!(
        fixture.row(id).await.due <= fixture.now().await,
        "then woken"
    );

    let commit = only(Write::Wake(id)).advance(id, Next::Ready(Due::In(NEVER)), None, None);
    fixture.commit(commit).await;
    assert!(
        fixture.row(id).await.due > fixture.now().await,
        "then postponed"
    );

    let new = new_operation("a", Start::Waiting);
    let born = new.id;
    let commit = Commit::new()
        .start(new)
        .write(Write::Wake(born))
        .write(Write::Unpin(born));
    fixture.commit(commit).await;
    let row = fixture.row(born).await;
    assert_eq!((row.state, row.pinned), (State::Ready, false));

    let commit = only(Write::Cancel(born))
        .advance(born, Next::Done(Outcome::Cancelled), None, None)
        .write(Write::Wake(born));
    fixture.commit(commit).await;
    let row = fixture.row(born).await;
    assert_eq!(row.state, State::Done(Outcome::Cancelled));
    assert!(row.cancel, "asked before it ended");
}

/// A write without an expectation succeeds, whatever the state was.
pub async fn writes_without_expectations_replace_and_remove(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let put = |body: &str| {
        only(Write::Put {
            key: key("a"),
            terms: Vec::new(),
            body: bytes(body),
        })
    };
    for body in ["one", "two"] {
        let version = Version(fixture.commit(put(body)).await);
        let document = fixture.get("a").await.expect("a");
        assert_eq!((document.version, document.body), (version, bytes(body)));
    }
    for _ in 0..2 {
        fixture.commit(only(Write::Remove(key("a")))).await;
        assert_eq!(fixture.get("a").await, None);
    }
}
