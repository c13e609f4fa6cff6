//! Fences: a worker that lost an operation or its lease cannot write.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, advance, bytes, finish, insert, new_operation, only,
};
use crate::commit::{Commit, Due, Next, StaleItem, Start, Write};
use crate::operation::{Fence, OperationId, Outcome, State, WorkerId};

/// Only the fence of the present claim holds.
pub async fn a_fence_holds_for_the_present_claim_only(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, first) = fixture.running(LASTING).await;
    fixture
        .commit(advance(id, Next::Same).fenced(id, first))
        .await;
    for wrong in [Fence(0), Fence(first.0 + 1), Fence(99)] {
        let commit = insert("a", "x").fenced(id, wrong);
        assert_eq!(
            fixture.stale(commit).await,
            StaleItem::Expect(1),
            "{wrong:?}"
        );
    }
    fixture.commit(advance(id, Next::Ready(Due::Now))).await;
    let claimed = fixture.claim(worker, 1).await;
    let second = claimed[0].row.fence;
    assert_eq!(second, Fence(first.0 + 1));
    let commit = insert("a", "x").fenced(id, first);
    assert_eq!(
        fixture.stale(commit).await,
        StaleItem::Expect(1),
        "its own past"
    );
    fixture.commit(insert("a", "x").fenced(id, second)).await;
}

/// Only a running operation has a fence that holds.
pub async fn a_fence_holds_only_while_the_operation_runs(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut cases: Vec<(OperationId, Fence)> = Vec::new();
    cases.push((OperationId::fresh(), Fence(0)));
    cases.push((fixture.start(Start::Waiting).await, Fence(0)));
    cases.push((fixture.start_ready().await, Fence(0)));
    for next in [
        Next::Ready(Due::Now),
        Next::Retry(Due::Now),
        Next::Waiting,
        Next::Done(Outcome::Succeeded),
    ] {
        let (_, id, fence) = fixture.running(LASTING).await;
        fixture.commit(advance(id, next).fenced(id, fence)).await;
        cases.push((id, fence));
    }
    for (id, fence) in cases {
        let commit = insert("a", "x").fenced(id, fence);
        assert_eq!(fixture.stale(commit).await, StaleItem::Expect(1));
    }
    assert_eq!(fixture.get("a").await, None);
}

/// After a lease expired its fences do not hold, even before another worker claimed the operations.
pub async fn an_expired_lease_writes_nothing(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, fence) = fixture.running(BRIEF).await;
    fixture.commit(insert("early", "x").fenced(id, fence)).await;
    candidate.pass(AFTER_BRIEF).await;
    let before = fixture.snapshot().await;
    let late = insert("late", "x").fenced(id, fence);
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(1));
    let late = finish(id, Outcome::Succeeded).fenced(id, fence);
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(0));
    fixture.must_be_lost(worker).await;
    let late = insert("late", "x").fenced(id, fence);
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(1), "still");
    assert_eq!(fixture.snapshot().await, before);
}

/// After a takeover the old worker cannot write, and the new one can.
pub async fn a_worker_after_a_takeover_cannot_write(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, old) = fixture.running(BRIEF).await;
    candidate.pass(AFTER_BRIEF).await;
    let successor = fixture.worker(LASTING).await;
    let new = fixture.claim(successor, 1).await[0].row.fence;
    let result = |fence: Fence, text: &str| {
        Commit::new()
            .advance(id, Next::Done(Outcome::Succeeded), Some(bytes(text)), None)
            .fenced(id, fence)
    };
    assert_eq!(
        fixture.stale(result(old, "old")).await,
        StaleItem::Expect(0)
    );
    assert_eq!(fixture.state(id).await, State::Running);
    fixture.commit(result(new, "new")).await;
    assert_eq!(fixture.row(id).await.detail, "new");
    assert_eq!(
        fixture.stale(result(old, "old")).await,
        StaleItem::Expect(0)
    );
}

/// The worker of an operation that another commit made wait has lost it: it can write nothing, also after the operation
/// was woken and claimed again.
pub async fn a_worker_of_an_operation_that_was_made_to_wait_cannot_write(
    candidate: &dyn Candidate,
) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, old) = fixture.running(LASTING).await;
    let (_, kept, _) = fixture.running(LASTING).await;
    fixture.commit(advance(id, Next::Waiting)).await;
    let memo = |fence| {
        let memo = Commit::new().advance(id, Next::Same, None, Some(bytes("memo")));
        memo.fenced(id, fence)
    };
    let done = |fence| finish(id, Outcome::Succeeded).fenced(id, fence);
    let late = async || {
        for commit in [memo(old), done(old)] {
            assert_eq!(fixture.stale(commit).await, StaleItem::Expect(0));
        }
        let renewal = fixture.store.renew(worker, LASTING).await;
        assert_eq!(renewal.expect("a lease").held, []);
    };
    late().await;
    assert_eq!(fixture.state(id).await, State::Waiting);
    fixture.commit(only(Write::Wake(id))).await;
    late().await;
    let successor = fixture.worker(LASTING).await;
    let claimed = fixture.claim(successor, 10).await;
    assert_eq!(claimed.len(), 1);
    let row = &claimed[0].row;
    assert_eq!((row.id, row.fence), (id, Fence(old.0 + 1)));
    assert_eq!(row.takeovers, 0, "no worker died");
    late().await;
    fixture.commit(memo(row.fence)).await;
    fixture.commit(done(row.fence)).await;
    let other = fixture.state(kept).await;
    assert_eq!(other, State::Running, "of another worker");
}

/// An operation can start claimed by a worker, under fence 1, if the worker holds a lease.
pub async fn a_claim_in_the_accepting_commit_needs_a_lease(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(BRIEF).await;
    let begin = |worker| insert("a", "x").start(new_operation("a", Start::Claimed(worker)));
    let stranger = begin(WorkerId::fresh());
    assert_eq!(
        fixture.stale(stranger).await,
        StaleItem::Write(1),
        "no lease"
    );
    assert_eq!(fixture.get("a").await, None);

    let new = new_operation("b", Start::Claimed(worker));
    let id = new.id;
    fixture.commit(Commit::new().start(new)).await;
    let row = fixture.row(id).await;
    assert_eq!((row.state, row.fence), (State::Running, Fence(1)));
    let progress = advance(id, Next::Same).fenced(id, Fence(1));
    fixture.commit(progress).await;

    candidate.pass(AFTER_BRIEF).await;
    assert_eq!(
        fixture.stale(begin(worker)).await,
        StaleItem::Write(1),
        "expired"
    );
    let released = fixture.worker(LASTING).await;
    fixture.store.release(released).await.expect("a release");
    assert_eq!(
        fixture.stale(begin(released)).await,
        StaleItem::Write(1),
        "released"
    );
    assert_eq!(fixture.get("a").await, None);
}

/// A repeat of an applied fenced commit succeeds although its fence no longer holds.
pub async fn a_repeated_fenced_commit_succeeds_after_the_lease(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, fence) = fixture.running(BRIEF).await;
    let commit = finish(id, Outcome::Succeeded).fenced(id, fence);
    fixture.commit(commit.clone()).await;
    candidate.pass(AFTER_BRIEF).await;
    let before = fixture.snapshot().await;
    fixture.commit(commit).await;
    assert_eq!(fixture.snapshot().await, before);
}
