//! Operations: start, advance and end.

use super::Candidate;
use super::fixture::{Fixture, LASTING, NEVER, advance, bytes, finish, key, new_operation, only};
use crate::clock::StoreTime;
use crate::commit::{Commit, Due, Next, StaleItem, Start, Write};
use crate::operation::{Fence, Operation, OperationId, Outcome, State};
use crate::query::OperationFilter;
use std::time::Duration;

/// A new operation has the requested fields, is in its first attempt, and is pinned.
pub async fn a_new_operation_has_the_requested_fields(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let wait = Duration::from_secs(100);
    for (start, state, fence, delay) in [
        (Start::Waiting, State::Waiting, Fence(0), None),
        (
            Start::Ready(Due::Now),
            State::Ready,
            Fence(0),
            Some(Duration::ZERO),
        ),
        (
            Start::Ready(Due::In(wait)),
            State::Ready,
            Fence(0),
            Some(wait),
        ),
        (Start::Claimed(worker), State::Running, Fence(1), None),
    ] {
        let before = fixture.now().await;
        let new = new_operation("a", start);
        fixture.commit(Commit::new().start(new.clone())).await;
        let after = fixture.now().await;
        let Operation {
            row,
            request,
            progress,
        } = fixture.operation(new.id).await;
        assert_eq!((row.id, &row.lane), (new.id, &new.lane));
        assert_eq!((&*row.verb, &row.queue), (new.verb, &new.queue));
        assert_eq!((row.state, row.fence), (state, fence), "{start:?}");
        assert_eq!((row.attempt, row.takeovers), (1, 0));
        assert_eq!((row.cancel, row.pinned), (false, true));
        assert!(row.accepted >= before && row.accepted <= after);
        assert_eq!(row.finished, None);
        if let Some(delay) = delay {
            assert!(row.due >= before.plus(delay) && row.due <= after.plus(delay));
        }
        assert_eq!((&row.detail, request), (&new.detail, new.request));
        assert_eq!(progress, "");
        let polled = fixture.store.poll(&new.lane, new.id).await.expect("a poll");
        let polled = polled.expect("the operation");
        assert_eq!(
            (polled.state, polled.verb, polled.detail),
            (row.state, row.verb, row.detail)
        );
    }
}

/// An id can be started once; a second start is stale at its write.
pub async fn an_operation_id_is_used_once(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let new = new_operation("a", Start::Waiting);
    fixture.commit(Commit::new().start(new.clone())).await;
    let mut second = new_operation("b", Start::Ready(Due::Now));
    second.id = new.id;
    let commit = Commit::new().start(second);
    assert_eq!(fixture.stale(commit.clone()).await, StaleItem::Write(0));
    fixture.commit(finish(new.id, Outcome::Succeeded)).await;
    assert_eq!(fixture.stale(commit).await, StaleItem::Write(0));
    assert_eq!(fixture.row(new.id).await.lane, key("a"));
}

/// Advancing replaces the given fields and leaves all others.
pub async fn advancing_replaces_only_the_given_fields(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, id, _) = fixture.running(LASTING).await;
    let before = fixture.operation(id).await;
    let commit = Commit::new().advance(id, Next::Same, Some(bytes("half")), None);
    fixture.commit(commit).await;
    let mut expected = before;
    expected.row.detail = bytes("half");
    assert_eq!(fixture.operation(id).await, expected);
    let commit = Commit::new().advance(id, Next::Same, None, Some(bytes("memo")));
    fixture.commit(commit).await;
    expected.progress = bytes("memo");
    assert_eq!(fixture.operation(id).await, expected);
    let commit = Commit::new().advance(id, Next::Same, Some(bytes("")), Some(bytes("")));
    fixture.commit(commit).await;
    expected.row.detail = bytes("");
    expected.progress = bytes("");
    assert_eq!(
        fixture.operation(id).await,
        expected,
        "nothing is a value too"
    );
}

/// Only a retry increases the attempt; detail and progress stay.
pub async fn a_retry_grows_the_attempt(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (worker, id, _) = fixture.running(LASTING).await;
    let memo = Commit::new().advance(id, Next::Same, None, Some(bytes("memo")));
    fixture.commit(memo).await;
    for attempt in 2..5 {
        fixture.commit(advance(id, Next::Retry(Due::Now))).await;
        let row = fixture.row(id).await;
        assert_eq!((row.state, row.attempt), (State::Ready, attempt));
        let claimed = fixture.claim(worker, 10).await;
        assert_eq!(claimed.len(), 1);
        assert_eq!(claimed[0].row.attempt, attempt, "a claim is not an attempt");
        assert_eq!(claimed[0].progress, "memo");
        fixture.commit(advance(id, Next::Ready(Due::Now))).await;
        assert_eq!(
            fixture.row(id).await.attempt,
            attempt,
            "a yield is not an attempt"
        );
        assert_eq!(fixture.claim_ids(worker, 10).await, [id]);
    }
}

/// An operation that does not exist cannot be advanced.
pub async fn an_absent_operation_cannot_be_advanced(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let absent_id = OperationId::fresh();
    for next in every_next() {
        assert_eq!(
            fixture.stale(advance(absent_id, next)).await,
            StaleItem::Write(0)
        );
    }
    let reseal = Write::Reseal {
        operation: absent_id,
        read: (bytes("x"), bytes("x")),
        detail: bytes("x"),
        request: bytes("x"),
        progress: bytes("x"),
    };
    assert_eq!(fixture.stale(only(reseal)).await, StaleItem::Write(0));
    for write in [Write::Cancel, Write::Wake, Write::Unpin] {
        fixture.commit(only(write(absent_id))).await;
    }
    assert_eq!(fixture.operations(OperationFilter::All).await, []);
}

/// An ended operation cannot be advanced, cancelled, woken, started or claimed.
pub async fn an_ended_operation_never_changes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled] {
        let new = new_operation("a", Start::Claimed(worker));
        let id = new.id;
        fixture.commit(Commit::new().start(new.clone())).await;
        let before = fixture.now().await;
        let commit = Commit::new().advance(id, Next::Done(outcome), Some(bytes("end")), None);
        fixture.commit(commit).await;
        let after = fixture.now().await;
        let ended = fixture.operation(id).await;
        assert_eq!(ended.row.state, State::Done(outcome));
        assert_eq!(ended.row.detail, "end");
        let finished = ended.row.finished.expect("the time of its end");
        assert!(finished >= before && finished <= after);
        for next in every_next() {
            let commit = Commit::new().advance(id, next, Some(bytes("x")), Some(bytes("x")));
            assert_eq!(fixture.stale(commit).await, StaleItem::Write(0), "{next:?}");
        }
        assert_eq!(
            fixture.stale(Commit::new().start(new)).await,
            StaleItem::Write(0)
        );
        let commit = only(Write::Cancel(id)).write(Write::Wake(id));
        fixture.commit(commit).await;
        assert_eq!(fixture.claim_ids(worker, 10).await, []);
        let renewal = fixture.store.renew(worker, LASTING).await.expect("a lease");
        assert_eq!(renewal.cancelled, []);
        assert_eq!(fixture.operation(id).await, ended);
    }
}

/// Waking makes an operation that waits, or is due later, claimable now, and changes nothing else.
pub async fn waking_makes_claimable_now(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let waiting = fixture.start(Start::Waiting).await;
    let later = fixture.start(Start::Ready(Due::In(NEVER))).await;
    let worker = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(worker, 10).await, []);
    for id in [waiting, later] {
        let mut expected = fixture.operation(id).await;
        fixture.commit(only(Write::Wake(id))).await;
        let woken = fixture.operation(id).await;
        assert!(woken.row.due <= fixture.now().await);
        expected.row.state = State::Ready;
        expected.row.due = woken.row.due;
        assert_eq!(woken, expected);
        assert_eq!(fixture.claim_ids(worker, 10).await, [id]);
        let running = fixture.operation(id).await;
        fixture.commit(only(Write::Wake(id))).await;
        assert_eq!(fixture.operation(id).await, running, "it runs already");
    }
}

/// Waking an operation that is already due does not move it to the end of the queue.
pub async fn waking_a_due_operation_keeps_its_order(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let first = fixture.start_ready().await;
    candidate.pass(Duration::from_secs(1)).await;
    let second = fixture.start_ready().await;
    candidate.pass(Duration::from_secs(1)).await;
    fixture.commit(only(Write::Wake(first))).await;
    let worker = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(worker, 1).await, [first]);
    assert_eq!(fixture.claim_ids(worker, 1).await, [second]);
}

/// Cancelling marks an operation that has not ended, and leaves its state.
pub async fn cancelling_marks_and_moves_nothing(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    for start in [
        Start::Waiting,
        Start::Ready(Due::In(NEVER)),
        Start::Claimed(worker),
    ] {
        let id = fixture.start(start).await;
        let mut expected = fixture.operation(id).await;
        expected.row.cancel = true;
        for _ in 0..2 {
            fixture.commit(only(Write::Cancel(id))).await;
            assert_eq!(fixture.operation(id).await, expected);
        }
    }
}

/// Resealing changes only ciphertexts, also of an ended operation.
pub async fn resealing_changes_nothing_else(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (_, running, _) = fixture.running(LASTING).await;
    let ended = fixture.start_ready().await;
    fixture.commit(finish(ended, Outcome::Failed)).await;
    for id in [running, ended] {
        let mut expected = fixture.operation(id).await;
        let reseal = Write::Reseal {
            operation: id,
            read: (expected.row.detail.clone(), expected.progress.clone()),
            detail: bytes("new detail"),
            request: bytes("new request"),
            progress: bytes("new progress"),
        };
        fixture.commit(only(reseal.clone())).await;
        assert_eq!(
            fixture.stale(only(reseal)).await,
            StaleItem::Write(0),
            "read before"
        );
        expected.row.detail = bytes("new detail");
        expected.request = bytes("new request");
        expected.progress = bytes("new progress");
        assert_eq!(fixture.operation(id).await, expected);
    }
}

/// An imported operation keeps its fields; a running one becomes ready.
pub async fn an_imported_operation_keeps_its_fields(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let pattern = fixture.start(Start::Waiting).await;
    let pattern = fixture.operation(pattern).await;
    let long_ago = StoreTime(1_600_000_000_000_000);
    for state in [
        State::Waiting,
        State::Ready,
        State::Running,
        State::Done(Outcome::Cancelled),
    ] {
        let mut import = pattern.clone();
        import.row.id = OperationId::fresh();
        import.row.verb = "unbind".into();
        import.row.state = state;
        import.row.due = long_ago.plus(Duration::from_secs(5));
        import.row.fence = Fence(7);
        (import.row.attempt, import.row.takeovers) = (3, 2);
        (import.row.cancel, import.row.pinned) = (true, false);
        import.row.accepted = long_ago;
        import.row.finished = match state {
            State::Done(_) => Some(long_ago.plus(Duration::from_secs(9))),
            State::Waiting | State::Ready | State::Running => None,
        };
        import.progress = bytes("memo");
        let before = fixture.now().await;
        fixture
            .commit(only(Write::Import(Box::new(import.clone()))))
            .await;
        let arrived = fixture.operation(import.row.id).await;
        if state == State::Running {
            assert!(arrived.row.due >= before && arrived.row.due <= fixture.now().await);
            import.row.state = State::Ready;
            import.row.due = arrived.row.due;
        }
        assert_eq!(arrived, import);
        let again = only(Write::Import(Box::new(import)));
        assert_eq!(
            fixture.stale(again).await,
            StaleItem::Write(0),
            "the id is taken"
        );
    }
    let stats = fixture.stats().await;
    assert_eq!((stats.accepted, stats.live, stats.terminal), (5, 4, 1));
    let worker = fixture.worker(LASTING).await;
    let claimed = fixture.claim(worker, 10).await;
    assert_eq!(claimed.len(), 2, "the ready one and the one that ran");
    for operation in claimed {
        assert_eq!(operation.row.fence, Fence(8), "the fence goes on growing");
        assert_eq!((operation.row.attempt, operation.row.takeovers), (3, 2));
    }
}

fn every_next() -> [Next; 7] {
    [
        Next::Same,
        Next::Ready(Due::Now),
        Next::Retry(Due::Now),
        Next::Waiting,
        Next::Done(Outcome::Succeeded),
        Next::Done(Outcome::Failed),
        Next::Done(Outcome::Cancelled),
    ]
}
