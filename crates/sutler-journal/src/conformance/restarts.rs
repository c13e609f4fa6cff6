//! Restarts: acknowledged data is still there, and running operations are taken over.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, NEVER, THING, advance, bytes, finish, ids, insert,
    insert_with, realm,
};
use crate::commit::{Due, Next, StaleItem, Start, Write};
use crate::operation::{Fence, Outcome, State};
use crate::query::{Cursor, List, Sweep};
use std::time::Duration;

/// Documents, terms, operations, counts, logs and the feed are unchanged by a restart.
pub async fn everything_acknowledged_survives_a_restart(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert_with("a", "plan", "small")).await;
    fixture.commit(insert("b", "x")).await;
    let cursor = fixture.feed(&Cursor::default()).await.1;
    let waiting = fixture.start(Start::Waiting).await;
    fixture.start(Start::Ready(Due::In(NEVER))).await;
    let swept = fixture.start_ready().await;
    fixture
        .commit(finish(swept, Outcome::Failed).write(Write::Unpin(swept)))
        .await;
    let done = fixture.start_ready().await;
    fixture.commit(finish(done, Outcome::Succeeded)).await;
    let logged = fixture.store.append_log(waiting, bytes("text")).await;
    logged.expect("a log");
    candidate.pass(Duration::from_secs(1)).await;
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: fixture.now().await,
        limit: 10,
    };
    assert_eq!(fixture.store.sweep(&sweep).await.expect("a sweep"), 1);
    let before = fixture.snapshot().await;
    let changes = fixture.feed(&cursor).await;
    let log = fixture.log(waiting).await;
    drop(fixture);

    let store = candidate.reopen().await;
    let fixture = Fixture { store };
    assert_eq!(fixture.snapshot().await, before);
    assert_eq!(fixture.feed(&cursor).await, changes);
    assert_eq!(fixture.log(waiting).await, log);
    let list = List::term(&realm(), THING, "plan", b"small");
    assert_eq!(ids(&fixture.list_all(&list, 10).await), ["a"]);
    fixture.commit(insert("c", "x")).await;
    assert_eq!(
        fixture.feed(&changes.1).await.0.len(),
        1,
        "the feed goes on"
    );
}

/// A commit is remembered across a restart.
pub async fn a_commit_can_be_repeated_after_a_restart(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let commit = advance(id, Next::Retry(Due::Now));
    fixture.commit(commit.clone()).await;
    drop(fixture);
    let store = candidate.reopen().await;
    let fixture = Fixture { store };
    fixture.commit(commit).await;
    assert_eq!(fixture.row(id).await.attempt, 2);
}

/// A running operation is taken over once its lease expired, in the same attempt; the old fence is void.
pub async fn a_running_operation_is_taken_over_after_a_restart(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, fence) = fixture.running(BRIEF).await;
    let ready = fixture.start(Start::Ready(Due::In(BRIEF))).await;
    let memo = advance(id, Next::Same).fenced(id, fence);
    fixture.commit(memo).await;
    drop(fixture);
    let store = candidate.reopen().await;
    let fixture = Fixture { store };
    candidate.pass(AFTER_BRIEF).await;
    let late = finish(id, Outcome::Succeeded).fenced(id, fence);
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(0));
    let successor = fixture.worker(LASTING).await;
    let claimed = fixture.claim(successor, 10).await;
    assert_eq!(claimed.len(), 2);
    for operation in claimed {
        let row = operation.row;
        assert_eq!((row.state, row.attempt), (State::Running, 1));
        let expected = if row.id == id {
            (id, Fence(2), 1)
        } else {
            (ready, Fence(1), 0)
        };
        assert_eq!((row.id, row.fence, row.takeovers), expected);
    }
}
