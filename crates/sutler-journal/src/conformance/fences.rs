//! Fences: who lost an operation, or its lease, writes nothing.

use super::Candidate;
use super::scene::{
    AFTER_BRIEF, BRIEF, LASTING, Scene, advance, bytes, finish, insert, new_operation,
};
use crate::commit::{Commit, Due, Next, Start, Which};
use crate::operation::{Fence, OperationId, Outcome, State, WorkerId};

/// The present claim's fence holds, and only that one.
pub async fn a_fence_holds_for_the_present_claim_only(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let (worker, id, first) = scene.running(LASTING).await;
    scene
        .commit(advance(id, Next::Same).fenced(id, first))
        .await;
    for wrong in [Fence(0), Fence(first.0 + 1), Fence(99)] {
        let commit = insert("a", "x").fenced(id, wrong);
        assert_eq!(scene.stale(commit).await, Which::Expect(1), "{wrong:?}");
    }
    scene.commit(advance(id, Next::Ready(Due::Now))).await;
    let claimed = scene.claim(worker, 1).await;
    let second = claimed[0].row.fence;
    assert_eq!(second, Fence(first.0 + 1));
    let commit = insert("a", "x").fenced(id, first);
    assert_eq!(scene.stale(commit).await, Which::Expect(1), "its own past");
    scene.commit(insert("a", "x").fenced(id, second)).await;
}

/// Nothing but a running operation has a fence that holds.
pub async fn a_fence_holds_only_while_the_operation_runs(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let mut cases: Vec<(OperationId, Fence)> = Vec::new();
    cases.push((OperationId::fresh(), Fence(0)));
    cases.push((scene.start(Start::Waiting).await, Fence(0)));
    cases.push((scene.start_ready().await, Fence(0)));
    for next in [
        Next::Ready(Due::Now),
        Next::Retry(Due::Now),
        Next::Done(Outcome::Succeeded),
    ] {
        let (_, id, fence) = scene.running(LASTING).await;
        scene.commit(advance(id, next).fenced(id, fence)).await;
        cases.push((id, fence));
    }
    for (id, fence) in cases {
        let commit = insert("a", "x").fenced(id, fence);
        assert_eq!(scene.stale(commit).await, Which::Expect(1));
    }
    assert_eq!(scene.get("a").await, None);
}

/// Once the lease ran out its fences hold no more, even before anybody claimed the work.
pub async fn an_expired_lease_writes_nothing(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let (worker, id, fence) = scene.running(BRIEF).await;
    scene.commit(insert("early", "x").fenced(id, fence)).await;
    candidate.pass(AFTER_BRIEF).await;
    let before = scene.snapshot().await;
    let late = insert("late", "x").fenced(id, fence);
    assert_eq!(scene.stale(late).await, Which::Expect(1));
    let late = finish(id, Outcome::Succeeded).fenced(id, fence);
    assert_eq!(scene.stale(late).await, Which::Expect(0));
    scene.must_be_lost(worker).await;
    let late = insert("late", "x").fenced(id, fence);
    assert_eq!(scene.stale(late).await, Which::Expect(1), "still");
    assert_eq!(scene.snapshot().await, before);
}

/// After a takeover the old worker writes nothing, and the new one does.
pub async fn a_worker_that_was_taken_over_writes_nothing(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let (_, id, old) = scene.running(BRIEF).await;
    candidate.pass(AFTER_BRIEF).await;
    let heir = scene.worker(LASTING).await;
    let new = scene.claim(heir, 1).await[0].row.fence;
    let result = |fence: Fence, text: &str| {
        Commit::new()
            .advance(id, Next::Done(Outcome::Succeeded), Some(bytes(text)), None)
            .fenced(id, fence)
    };
    assert_eq!(scene.stale(result(old, "old")).await, Which::Expect(0));
    assert_eq!(scene.state(id).await, State::Running);
    scene.commit(result(new, "new")).await;
    assert_eq!(scene.row(id).await.detail, "new");
    assert_eq!(scene.stale(result(old, "old")).await, Which::Expect(0));
}

/// An operation can begin with its worker, under fence 1, if the worker holds a lease.
pub async fn a_claim_in_the_accepting_commit_needs_a_lease(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let worker = scene.worker(BRIEF).await;
    let begin = |worker| insert("a", "x").start(new_operation("a", Start::Claimed(worker)));
    let stranger = begin(WorkerId::fresh());
    assert_eq!(scene.stale(stranger).await, Which::Write(1), "no lease");
    assert_eq!(scene.get("a").await, None);

    let new = new_operation("b", Start::Claimed(worker));
    let id = new.id;
    scene.commit(Commit::new().start(new)).await;
    let row = scene.row(id).await;
    assert_eq!((row.state, row.fence), (State::Running, Fence(1)));
    let progress = advance(id, Next::Same).fenced(id, Fence(1));
    scene.commit(progress).await;

    candidate.pass(AFTER_BRIEF).await;
    assert_eq!(scene.stale(begin(worker)).await, Which::Write(1), "expired");
    let released = scene.worker(LASTING).await;
    scene.store.release(released).await.expect("a release");
    assert_eq!(
        scene.stale(begin(released)).await,
        Which::Write(1),
        "released"
    );
    assert_eq!(scene.get("a").await, None);
}

/// A repeat of a fenced commit succeeds though its fence is long gone: it was applied.
pub async fn a_repeated_fenced_commit_succeeds_after_the_lease(candidate: &dyn Candidate) {
    let scene = Scene::of(candidate).await;
    let (_, id, fence) = scene.running(BRIEF).await;
    let commit = finish(id, Outcome::Succeeded).fenced(id, fence);
    scene.commit(commit.clone()).await;
    candidate.pass(AFTER_BRIEF).await;
    let before = scene.snapshot().await;
    scene.commit(commit).await;
    assert_eq!(scene.snapshot().await, before);
}
