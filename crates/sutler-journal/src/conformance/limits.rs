//! Limits: the same in every store; a commit over a limit writes nothing.

use super::Candidate;
use super::fixture::{Fixture, advance, bytes, insert, key, new_operation, only};
use crate::commit::{BYTES_MAX, Commit, Due, Next, Start, WRITES_MAX, Write};
use crate::document::{TERMS_MAX, Term};
use crate::operation::Outcome;
use bytes::Bytes;

fn many(count: usize) -> Commit {
    let mut commit = Commit::new();
    for n in 0..count {
        commit = commit.insert(key(&format!("{n:03}")), Vec::new(), bytes("x"));
    }
    commit
}

/// A commit may have a hundred writes.
pub async fn a_hundred_writes_are_accepted(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(many(WRITES_MAX)).await;
    assert!(fixture.get("000").await.is_some());
    assert!(fixture.get("099").await.is_some());
}

/// A commit with a hundred and one writes is refused.
pub async fn more_writes_are_refused(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let before = fixture.snapshot().await;
    fixture.refused(many(WRITES_MAX + 1)).await;
    assert_eq!(fixture.snapshot().await, before);
}

/// Nearly a megabyte is accepted and read back; more is refused, in one piece or in many.
pub async fn a_megabyte_is_the_most(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let insert_bytes = |commit: Commit, id: &str, size: usize| {
        let body = Bytes::from(vec![7; size]);
        commit.insert(key(id), Vec::new(), body)
    };
    let large = BYTES_MAX - 1000;
    fixture
        .commit(insert_bytes(Commit::new(), "large", large))
        .await;
    let read = fixture.get("large").await.expect("the document");
    assert!(read.body.len() == large && read.body.iter().all(|byte| *byte == 7));

    let before = fixture.snapshot().await;
    fixture
        .refused(insert_bytes(Commit::new(), "larger", BYTES_MAX + 1))
        .await;
    let mut pieces = Commit::new();
    for n in 0..20 {
        pieces = insert_bytes(pieces, &format!("{n}"), BYTES_MAX / 20);
    }
    fixture.refused(pieces).await;
    let mut new = new_operation("a", Start::Ready(Due::Now));
    new.request = Bytes::from(vec![7; BYTES_MAX]);
    fixture.refused(insert("a", "x").start(new)).await;
    assert_eq!(fixture.snapshot().await, before);
}

/// The number and length of a document's terms are limited.
pub async fn terms_are_limited(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let terms = |count: usize, size: usize| -> Vec<Term> {
        let names = names.iter().take(count);
        names
            .map(|name| Term::new(name, vec![b'x'; size]))
            .collect()
    };
    let put = |terms| Commit::new().insert(key("a"), terms, bytes("x"));
    fixture.refused(put(terms(TERMS_MAX + 1, 1))).await;
    fixture.refused(put(terms(1, 513))).await;
    assert_eq!(fixture.get("a").await, None);
    fixture.commit(put(terms(TERMS_MAX, 512))).await;
}

/// Two writes of one commit that contend for a document or an operation are refused.
pub async fn contending_writes_are_refused(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let version = fixture.commit(insert("old", "x")).await;
    let before = fixture.snapshot().await;
    let put = |id: &str| Write::Put {
        key: key(id),
        terms: Vec::new(),
        body: bytes("y"),
    };
    let new = new_operation("a", Start::Waiting);
    let reseal = Write::Reseal {
        operation: id,
        read: (bytes("d"), bytes("p")),
        detail: bytes("d"),
        request: bytes("r"),
        progress: bytes("p"),
    };
    for commit in [
        only(put("a")).write(put("a")),
        only(put("old")).write(Write::Remove(key("old"))),
        only(Write::Remove(key("old"))).write(put("old")),
        Commit::new().start(new.clone()).start(new.clone()),
        Commit::new()
            .start(new.clone())
            .advance(new.id, Next::Same, None, None),
        advance(id, Next::Same).advance(id, Next::Done(Outcome::Failed), None, None),
        advance(id, Next::Same).write(reseal),
    ] {
        let harmless = insert("other", "x").write(Write::Cancel(id));
        fixture.refused(merged(harmless, &commit)).await;
        assert_eq!(fixture.snapshot().await, before);
    }
    assert_eq!(fixture.version("old").await.0, version);
}

/// Appends the writes of another commit.
fn merged(commit: Commit, other: &Commit) -> Commit {
    let writes = other.writes().iter().cloned();
    writes.fold(commit, Commit::write)
}
