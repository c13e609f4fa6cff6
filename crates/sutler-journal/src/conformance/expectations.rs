//! Expectations about documents.

use super::Candidate;
use super::fixture::{Fixture, bytes, insert, key, new_operation};
use crate::commit::{Commit, CommitId, StaleItem, Start};
use crate::document::Version;
use uuid::Uuid;

fn replace(id: &str, read: Version, body: &str) -> Commit {
    Commit::new().replace(key(id), read, Vec::new(), bytes(body))
}

/// `Absent` holds until the document is created, and again once it is removed.
pub async fn absent_holds_while_there_is_no_document(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(Commit::new().absent(key("a"))).await;
    let read = Version(fixture.commit(insert("a", "x")).await);
    assert_eq!(fixture.stale(insert("a", "y")).await, StaleItem::Expect(0));
    assert_eq!(fixture.get("a").await.expect("a").body, bytes("x"));
    fixture.commit(Commit::new().remove(key("a"), read)).await;
    fixture.commit(insert("a", "z")).await;
}

/// `Version` holds only for the version of the last write.
pub async fn version_holds_for_the_last_writer_only(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let first = Version(fixture.commit(insert("a", "1")).await);
    let second = Version(fixture.commit(replace("a", first, "2")).await);
    assert_eq!(
        fixture.stale(replace("a", first, "3")).await,
        StaleItem::Expect(0)
    );
    let never = Version(CommitId(Uuid::now_v7()));
    assert_eq!(
        fixture.stale(replace("a", never, "3")).await,
        StaleItem::Expect(0)
    );
    let gone = Commit::new().remove(key("a"), first);
    assert_eq!(fixture.stale(gone).await, StaleItem::Expect(0));
    fixture.commit(replace("a", second, "3")).await;
    assert_eq!(fixture.get("a").await.expect("a").body, bytes("3"));
}

/// `Version` of an absent document does not hold.
pub async fn a_document_that_is_gone_has_no_version(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let read = Version(fixture.commit(insert("a", "1")).await);
    fixture.commit(Commit::new().remove(key("a"), read)).await;
    assert_eq!(
        fixture.stale(replace("a", read, "2")).await,
        StaleItem::Expect(0)
    );
    let again = Commit::new().remove(key("a"), read);
    assert_eq!(fixture.stale(again).await, StaleItem::Expect(0));
    assert_eq!(fixture.get("a").await, None);
}

/// `Unchanged` guards a document that the commit does not write.
pub async fn unchanged_guards_a_document_that_is_only_read(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let live = Version(fixture.commit(insert("instance", "live")).await);
    let bind = |name: &str| {
        insert(name, "bound")
            .unchanged(key("instance"), live)
            .start(new_operation(name, Start::Waiting))
    };
    fixture.commit(bind("binding-1")).await;
    assert_eq!(
        fixture.version("instance").await,
        live,
        "reading it does not write it"
    );
    fixture.commit(bind("binding-2")).await;
    fixture.commit(replace("instance", live, "deleting")).await;
    assert_eq!(fixture.stale(bind("binding-3")).await, StaleItem::Expect(1));
    assert_eq!(fixture.get("binding-3").await, None);
}

/// `Unchanged` of an absent document does not hold.
pub async fn a_document_that_is_absent_is_not_unchanged(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let never = Version(CommitId(Uuid::now_v7()));
    let commit = insert("b", "x").unchanged(key("a"), never);
    assert_eq!(fixture.stale(commit).await, StaleItem::Expect(1));
    let read = Version(fixture.commit(insert("a", "x")).await);
    fixture.commit(Commit::new().remove(key("a"), read)).await;
    let commit = insert("b", "x").unchanged(key("a"), read);
    assert_eq!(fixture.stale(commit).await, StaleItem::Expect(1));
    assert_eq!(fixture.get("b").await, None);
}

/// A document that was removed and created again with the same content has another version.
pub async fn a_version_is_never_reused(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut versions = vec![Version(fixture.commit(insert("a", "same")).await)];
    for _ in 0..5 {
        let read = fixture.version("a").await;
        fixture.commit(Commit::new().remove(key("a"), read)).await;
        fixture.commit(insert("a", "same")).await;
        let now = fixture.version("a").await;
        assert!(!versions.contains(&now), "a version was used twice");
        versions.push(now);
    }
    for old in &versions[..5] {
        assert_eq!(
            fixture.stale(replace("a", *old, "x")).await,
            StaleItem::Expect(0)
        );
        let reader = insert("b", "x").unchanged(key("a"), *old);
        assert_eq!(fixture.stale(reader).await, StaleItem::Expect(1));
    }
}

/// Expectations refer to the state before the commit, never to its own writes.
pub async fn expectations_do_not_see_the_commits_own_writes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let read = Version(fixture.commit(insert("a", "x")).await);
    let commit = Commit::new()
        .remove(key("a"), read)
        .insert(key("b"), Vec::new(), bytes("y"))
        .unchanged(key("a"), read)
        .absent(key("b"));
    fixture.commit(commit).await;
    assert_eq!(fixture.get("a").await, None);
    assert!(fixture.get("b").await.is_some());
}
