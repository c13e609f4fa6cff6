//! Claims: selection, order and limits of the claimed operations.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, NEVER, WORK, advance, bytes, finish, new_operation, only,
};
use crate::commit::{Commit, Due, Next, Start, Write};
use crate::operation::{Fence, OperationId, Outcome, Queue, State, WorkerId};
use crate::store::LeaseError;
use std::time::Duration;

/// A claim returns a ready operation completely, running, under the next fence, and only once.
pub async fn a_ready_operation_is_claimed_once(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let mut expected = fixture.operation(id).await;
    let (first, second) = (fixture.worker(LASTING).await, fixture.worker(LASTING).await);
    let claimed = fixture.claim(first, 10).await;
    expected.row.state = State::Running;
    expected.row.fence = Fence(1);
    assert_eq!(claimed, [expected.clone()]);
    assert_eq!(fixture.operation(id).await, expected);
    assert_eq!(fixture.claim(first, 10).await, [], "its own");
    assert_eq!(fixture.claim(second, 10).await, [], "another's");
}

/// An operation that waits for another one is never claimed.
pub async fn a_waiting_operation_is_never_claimed(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start(Start::Waiting).await;
    let worker = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim(worker, 10).await, []);
    candidate.pass(AFTER_BRIEF).await;
    assert_eq!(fixture.claim(worker, 10).await, []);
    assert_eq!(fixture.state(id).await, State::Waiting);
}

/// An operation is not claimed before it is due, whether new, yielded or retried.
pub async fn nothing_is_claimed_before_it_is_due(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let later = Due::In(BRIEF);
    let new = fixture.start(Start::Ready(later)).await;
    let yielded = fixture.start(Start::Claimed(worker)).await;
    fixture.commit(advance(yielded, Next::Ready(later))).await;
    let retried = fixture.start(Start::Claimed(worker)).await;
    fixture.commit(advance(retried, Next::Retry(later))).await;
    let never = fixture.start(Start::Ready(Due::In(NEVER))).await;
    assert_eq!(fixture.claim(worker, 10).await, []);
    candidate.pass(AFTER_BRIEF).await;
    let mut claimed = fixture.claim_ids(worker, 10).await;
    claimed.sort();
    assert_eq!(claimed, [new, yielded, retried]);
    assert_eq!(fixture.state(never).await, State::Ready);
}

/// The operation with the oldest due time comes first, regardless of the order of acceptance.
pub async fn the_longest_due_comes_first(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let seconds = |n| Due::In(Duration::from_secs(n));
    let third = fixture.start(Start::Ready(seconds(3))).await;
    let first = fixture.start(Start::Ready(seconds(1))).await;
    let second = fixture.start(Start::Ready(seconds(2))).await;
    candidate.pass(AFTER_BRIEF).await;
    let fourth = fixture.start_ready().await;
    let worker = fixture.worker(LASTING).await;
    for id in [first, second, third, fourth] {
        assert_eq!(fixture.claim_ids(worker, 1).await, [id]);
    }
}

/// A claim takes at most the given number from each queue, and nothing from other queues.
pub async fn a_claim_is_limited_per_queue(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let queues = ["one", "One", "one ", "two"].map(Queue::named);
    for queue in &queues {
        for _ in 0..5 {
            let mut new = new_operation("a", Start::Ready(Due::Now));
            new.queue = queue.clone();
            fixture.commit(Commit::new().start(new)).await;
        }
    }
    let worker = fixture.worker(LASTING).await;
    let mut left = [5_usize; 4];
    for limits in [[2, 0, 1, 0], [0, 5, 9, 1], [9, 9, 9, 9]] {
        let requested: Vec<(Queue, usize)> = queues.iter().cloned().zip(limits).collect();
        let claimed = fixture
            .store
            .claim(worker, &requested)
            .await
            .expect("a claim");
        for (n, queue) in queues.iter().enumerate() {
            let taken = claimed.iter().filter(|c| c.row.queue == *queue).count();
            assert_eq!(taken, limits[n].min(left[n]), "{queue:?}");
            left[n] -= taken;
        }
    }
    let none = fixture.store.claim(worker, &[]).await.expect("a claim");
    assert_eq!(none, [], "no queue, no work");
}

/// A worker without a lease cannot claim.
pub async fn a_claim_needs_a_lease(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    let claimed = fixture.store.claim(WorkerId::fresh(), &[(WORK, 1)]).await;
    assert!(matches!(claimed, Err(LeaseError::Lost)), "{claimed:?}");
    assert_eq!(fixture.state(id).await, State::Ready);
}

/// A worker that yields releases the operation; the next claim has another fence.
pub async fn a_yielded_operation_can_be_claimed_by_anyone(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, fence) = fixture.running(LASTING).await;
    fixture
        .commit(advance(id, Next::Ready(Due::Now)).fenced(id, fence))
        .await;
    assert_eq!(fixture.state(id).await, State::Ready);
    let other = fixture.worker(LASTING).await;
    let claimed = fixture.claim(other, 10).await;
    assert_eq!(claimed.len(), 1);
    let row = &claimed[0].row;
    assert_eq!((row.id, row.fence), (id, Fence(fence.0 + 1)));
    assert_eq!(row.takeovers, 0, "a yield is not a takeover");
}

/// An operation that was made to wait again, by its own run or while it was ready, is not claimed before a commit wakes
/// it; then it can be claimed at once, by anyone.
pub async fn an_operation_that_waits_again_is_claimed_after_a_wake(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, ran, fence) = fixture.running(BRIEF).await;
    let wait = Commit::new().advance(ran, Next::Waiting, Some(bytes("text")), None);
    fixture.commit(wait.fenced(ran, fence)).await;
    let ready = fixture.start_ready().await;
    let later = fixture.start(Start::Ready(Due::In(NEVER))).await;
    let ids = [ran, ready, later];
    for id in [ready, later] {
        fixture.commit(advance(id, Next::Waiting)).await;
    }
    for id in ids {
        assert_eq!(fixture.state(id).await, State::Waiting);
    }
    assert_eq!(fixture.row(ran).await.detail, "text");
    assert_eq!(fixture.stats().await.queues[0].waiting, 3);
    assert_eq!(fixture.claim(worker, 10).await, []);
    candidate.pass(AFTER_BRIEF).await;
    let other = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim(other, 10).await, [], "nobody holds it");
    for (id, fence) in ids.into_iter().zip([2, 1, 1]) {
        fixture.commit(only(Write::Wake(id))).await;
        let claimed = fixture.claim(other, 10).await;
        assert_eq!(claimed.len(), 1);
        let row = &claimed[0].row;
        assert_eq!((row.id, row.fence), (id, Fence(fence)));
        assert_eq!((row.attempt, row.takeovers), (1, 0));
    }
}

/// A claim returns whether cancellation of the operation was requested.
pub async fn a_claim_returns_a_requested_cancellation(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start_ready().await;
    fixture.commit(only(Write::Cancel(id))).await;
    let worker = fixture.worker(LASTING).await;
    assert!(fixture.claim(worker, 1).await[0].row.cancel);
}

/// An operation that ended while it was ready is not claimed.
pub async fn an_ended_operation_is_not_claimed(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut live: Vec<OperationId> = Vec::new();
    for n in 0..10 {
        let id = fixture.start_ready().await;
        if n % 2 == 0 {
            fixture.commit(finish(id, Outcome::Cancelled)).await;
        } else {
            live.push(id);
        }
    }
    let worker = fixture.worker(LASTING).await;
    let mut claimed = fixture.claim_ids(worker, 100).await;
    claimed.sort();
    assert_eq!(claimed, live);
}
