//! Leases: one per worker, covering all its claims, by the store's clock.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, WORK, advance, finish, new_operation, only,
};
use super::samples::bytes;
use crate::commit::{Commit, Due, Next, StaleItem, Start, Write};
use crate::operation::{Fence, Outcome, State, WorkerId};
use crate::store::LeaseError;
use std::time::Duration;

/// A lease that is renewed in time stays valid, and so do its claims.
pub async fn a_renewed_lease_stays_valid(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, fence) = fixture.running(BRIEF).await;
    let other = fixture.worker(LASTING).await;
    fixture.store.renew(worker, LASTING).await.expect("in time");
    candidate.pass(AFTER_BRIEF).await;
    assert_eq!(fixture.claim(other, 10).await, [], "it is still held");
    fixture
        .commit(advance(id, Next::Same).fenced(id, fence))
        .await;
    fixture.store.renew(worker, LASTING).await.expect("in time");
}

/// A worker that returns after its lease expired gets `Lost`, even if no other worker took its
/// operations, and its id cannot be used again.
pub async fn a_paused_workers_renewal_is_lost(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, _) = fixture.running(BRIEF).await;
    let idle = fixture.worker(BRIEF).await;
    candidate.pass(AFTER_BRIEF).await;
    for _ in 0..2 {
        fixture.must_be_lost(worker).await;
        fixture.must_be_lost(idle).await;
    }
    assert_eq!(
        fixture.state(id).await,
        State::Running,
        "not taken over yet"
    );
    let reborn = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(reborn, 10).await, [id]);
    fixture.must_be_lost(worker).await;
}

/// A renewal extends only the lease of its own worker.
pub async fn a_renewal_is_for_one_worker(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (dead, theirs, _) = fixture.running(BRIEF).await;
    let (alive, _, _) = fixture.running(BRIEF).await;
    fixture.store.renew(alive, LASTING).await.expect("a lease");
    candidate.pass(AFTER_BRIEF).await;
    fixture.must_be_lost(dead).await;
    assert_eq!(fixture.claim_ids(alive, 10).await, [theirs]);
}

/// An operation of a dead worker is claimed with another fence, one more takeover, the same attempt.
pub async fn operations_of_a_dead_worker_are_taken_over(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, fence) = fixture.running(BRIEF).await;
    let memo = Commit::new().advance(id, Next::Same, None, Some("memo".into()));
    fixture.commit(memo.fenced(id, fence)).await;
    let mut expected = fixture.operation(id).await;
    for round in 1..=3 {
        let next = fixture.worker(BRIEF).await;
        assert_eq!(fixture.claim(next, 10).await, [], "not while it is held");
        candidate.pass(AFTER_BRIEF).await;
        let successor = fixture.worker(BRIEF).await;
        let claimed = fixture.claim(successor, 10).await;
        expected.row.fence = Fence(fence.0 + round);
        expected.row.takeovers += 1;
        assert_eq!(claimed, [expected.clone()]);
    }
    assert_eq!(expected.row.attempt, 1, "a takeover is not an attempt");
}

/// Takeovers are counted since the last progress; a retry is not progress.
pub async fn progress_ends_the_count_of_takeovers(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let names = ["text", "memo", "ready", "retry", "put back", "waiting"];
    let mut running = Vec::new();
    for lane in names {
        let worker = fixture.worker(BRIEF).await;
        let new = new_operation(lane, Start::Claimed(worker));
        running.push(new.id);
        fixture.commit(Commit::new().start(new)).await;
    }
    candidate.pass(AFTER_BRIEF).await;
    let successor = fixture.worker(LASTING).await;
    for operation in fixture.claim(successor, 10).await {
        assert_eq!(operation.row.takeovers, 1);
    }
    for (id, next, progress, left) in [
        (running[0], Next::Same, None, 1),
        (running[1], Next::Same, Some(bytes("memo")), 0),
        (running[2], Next::Ready(Due::Now), None, 0),
        (running[3], Next::Retry(Due::Now), None, 1),
        (running[4], Next::PutBack(Due::Now), Some(bytes("memo")), 1),
        (running[5], Next::Waiting, None, 0),
    ] {
        let commit = Commit::new().advance(id, next, Some(bytes("text")), progress);
        fixture.commit(commit).await;
        assert_eq!(fixture.row(id).await.takeovers, left, "{next:?}");
    }
}

/// Operations to take over are claimed in the order of their due times, like ready ones.
pub async fn takeovers_are_limited_and_ordered_like_other_claims(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(BRIEF).await;
    let old = fixture.start(Start::Claimed(worker)).await;
    candidate.pass(AFTER_BRIEF).await;
    let new = fixture.start_ready().await;
    let successor = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(successor, 0).await, []);
    assert_eq!(fixture.claim_ids(successor, 1).await, [old]);
    assert_eq!(fixture.claim_ids(successor, 1).await, [new]);
}

/// Operations of a released worker are ready at once, without a takeover.
pub async fn a_release_makes_all_operations_ready(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let first = fixture.start(Start::Claimed(worker)).await;
    let second = fixture.start_ready().await;
    assert_eq!(fixture.claim_ids(worker, 10).await, [second]);
    let ended = fixture.start(Start::Claimed(worker)).await;
    fixture.commit(finish(ended, Outcome::Succeeded)).await;
    let (_, others, _) = fixture.running(LASTING).await;

    fixture.store.release(worker).await.expect("a release");
    for id in [first, second] {
        let row = fixture.row(id).await;
        assert_eq!((row.state, row.fence), (State::Ready, Fence(1)));
        assert_eq!((row.takeovers, row.attempt), (0, 1));
    }
    assert_eq!(fixture.state(ended).await, State::Done(Outcome::Succeeded));
    assert_eq!(fixture.state(others).await, State::Running);

    let late = advance(first, Next::Same).fenced(first, Fence(1));
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(0));
    let claim = fixture.store.claim(worker, &[(WORK, 10)]).await;
    assert!(matches!(claim, Err(LeaseError::Lost)), "{claim:?}");

    let successor = fixture.worker(LASTING).await;
    let claimed = fixture.claim(successor, 10).await;
    assert_eq!(claimed.len(), 2);
    for operation in claimed {
        assert_eq!(operation.row.fence, Fence(2));
        assert_eq!(operation.row.takeovers, 0, "no worker died");
    }
    fixture
        .store
        .release(worker)
        .await
        .expect("a second release");
    let stranger = WorkerId::fresh();
    fixture
        .store
        .release(stranger)
        .await
        .expect("nothing to do");
    assert_eq!(fixture.state(first).await, State::Running, "the heir's");
}

/// A renewal returns exactly the worker's running operations with a requested cancellation.
pub async fn a_renewal_returns_cancelled_operations(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, mine, fence) = fixture.running(LASTING).await;
    let spared = fixture.start(Start::Claimed(worker)).await;
    let (other, theirs, _) = fixture.running(LASTING).await;
    let ready = fixture.start_ready().await;
    let renew = async |worker| {
        let renewal = fixture.store.renew(worker, LASTING).await;
        renewal.expect("a lease").cancelled
    };
    assert_eq!(renew(worker).await, []);
    let cancel = only(Write::Cancel(mine))
        .write(Write::Cancel(theirs))
        .write(Write::Cancel(ready));
    fixture.commit(cancel).await;
    assert_eq!(renew(worker).await, [mine]);
    assert_eq!(renew(worker).await, [mine], "until it is dealt with");
    let renewal = fixture.store.renew(worker, LASTING).await;
    let mut held = renewal.expect("a lease").held;
    held.sort();
    let mut expected = vec![mine, spared];
    expected.sort();
    assert_eq!(held, expected, "all of this worker's, and no others");
    assert_eq!(renew(other).await, [theirs]);
    assert!(!fixture.row(spared).await.cancel);
    let done = finish(mine, Outcome::Cancelled).fenced(mine, fence);
    fixture.commit(done).await;
    assert_eq!(renew(worker).await, []);
}

/// A renewal lists the operations that its worker runs, and no longer those that ended or were given back: a worker stops
/// runs that are not listed.
pub async fn a_renewal_lists_only_operations_that_run(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let held = async || {
        let renewal = fixture.store.renew(worker, LASTING).await;
        let mut held = renewal.expect("a lease").held;
        held.sort();
        held
    };
    let mut running = Vec::new();
    for _ in 0..7 {
        running.push(fixture.start(Start::Claimed(worker)).await);
    }
    running.sort();
    assert_eq!(held().await, running);
    let now = Due::In(Duration::ZERO);
    for next in [
        Next::Done(Outcome::Succeeded),
        Next::Ready(now),
        Next::Retry(now),
        Next::PutBack(now),
        Next::Waiting,
    ] {
        let id = running.pop().expect("an operation");
        let fence = fixture.row(id).await.fence;
        fixture.commit(advance(id, next).fenced(id, fence)).await;
        assert_eq!(held().await, running, "{next:?}");
    }
    let abandoned = running.pop().expect("an operation");
    fixture.commit(finish(abandoned, Outcome::Failed)).await;
    assert_eq!(held().await, running, "ended by another commit");
    let other = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim(other, 10).await.len(), 3);
    assert_eq!(held().await, running, "claimed by another worker");
}

/// A renewal with another duration sets the expiry to that duration from now.
pub async fn a_renewal_sets_the_end_of_the_lease(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, fence) = fixture.running(LASTING).await;
    fixture.store.renew(worker, BRIEF).await.expect("a lease");
    candidate.pass(AFTER_BRIEF).await;
    fixture.must_be_lost(worker).await;
    let late = advance(id, Next::Same).fenced(id, fence);
    assert_eq!(fixture.stale(late).await, StaleItem::Expect(0));
    candidate.pass(Duration::from_secs(1)).await;
    let successor = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(successor, 1).await, [id]);
}
