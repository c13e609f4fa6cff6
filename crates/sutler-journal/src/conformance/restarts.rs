//! Restarts: what was acknowledged is there afterwards, and what ran is found again.

use super::Candidate;
use super::scene::{
    AFTER_BRIEF, BRIEF, LASTING, NEVER, Scene, THING, advance, bytes, finish, ids, insert,
    insert_with, realm,
};
use crate::commit::{Due, Next, Start, Which, Write};
use crate::operation::{Fence, Outcome, State};
use crate::query::{Cursor, List, Sweep};
use std::time::Duration;

/// Documents, terms, operations, counts, logs and the feed are as they were.
pub async fn everything_acknowledged_survives_a_restart(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    scene.commit(insert_with("a", "plan", "small")).await;
    scene.commit(insert("b", "x")).await;
    let cursor = scene.feed(&Cursor::default()).await.1;
    let waiting = scene.start(Start::Waiting).await;
    scene.start(Start::Ready(Due::In(NEVER))).await;
    let swept = scene.start_ready().await;
    scene
        .commit(finish(swept, Outcome::Failed).write(Write::Unpin(swept)))
        .await;
    let done = scene.start_ready().await;
    scene.commit(finish(done, Outcome::Succeeded)).await;
    let logged = scene.store.append_log(waiting, bytes("text")).await;
    logged.expect("a log");
    candidate.pass(Duration::from_secs(1)).await;
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: scene.now().await,
        limit: 10,
    };
    assert_eq!(scene.store.sweep(&sweep).await.expect("a sweep"), 1);
    let before = scene.snapshot().await;
    let changes = scene.feed(&cursor).await;
    let log = scene.log(waiting).await;
    drop(scene);

    let store = candidate.reopen().await;
    let scene = Scene { store };
    assert_eq!(scene.snapshot().await, before);
    assert_eq!(scene.feed(&cursor).await, changes);
    assert_eq!(scene.log(waiting).await, log);
    let list = List::term(&realm(), THING, "plan", b"small");
    assert_eq!(ids(&scene.list_all(&list, 10).await), ["a"]);
    scene.commit(insert("c", "x")).await;
    assert_eq!(scene.feed(&changes.1).await.0.len(), 1, "the feed goes on");
}

/// A commit is remembered over a restart.
pub async fn a_commit_can_be_repeated_after_a_restart(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let id = scene.start_ready().await;
    let commit = advance(id, Next::Retry(Due::Now));
    scene.commit(commit.clone()).await;
    drop(scene);
    let store = candidate.reopen().await;
    let scene = Scene { store };
    scene.commit(commit).await;
    assert_eq!(scene.row(id).await.attempt, 2);
}

/// What ran is taken over once its lease is over, in the same attempt, and the old fence is void.
pub async fn what_ran_is_found_again_after_a_restart(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let (_, id, fence) = scene.running(BRIEF).await;
    let ready = scene.start(Start::Ready(Due::In(BRIEF))).await;
    let memo = advance(id, Next::Same).fenced(id, fence);
    scene.commit(memo).await;
    drop(scene);
    let store = candidate.reopen().await;
    let scene = Scene { store };
    candidate.pass(AFTER_BRIEF).await;
    let late = finish(id, Outcome::Succeeded).fenced(id, fence);
    assert_eq!(scene.stale(late).await, Which::Expect(0));
    let heir = scene.worker(LASTING).await;
    let claimed = scene.claim(heir, 10).await;
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
