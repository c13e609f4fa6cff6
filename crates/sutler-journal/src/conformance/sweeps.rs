//! Sweeps of ended operations, and counts of all accepted ones.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, NEVER, bytes, finish, insert, key, new_operation, only,
    realm, things,
};
use crate::clock::StoreTime;
use crate::commit::{Commit, Due, Next, Start, Write};
use crate::key::{Key, Kind};
use crate::operation::{OperationId, Outcome, Queue, State};
use crate::query::{OperationFilter, QueueStats, Sweep};
use bytes::Bytes;
use std::time::Duration;

fn sweep(finished_before: StoreTime) -> Sweep {
    Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before,
        limit: 1000,
    }
}

async fn swept(fixture: &Fixture, sweep: &Sweep) -> u64 {
    fixture.store.sweep(sweep).await.expect("a sweep")
}

/// A moment after everything so far.
async fn later(fixture: &Fixture, candidate: &dyn Candidate) -> StoreTime {
    candidate.pass(Duration::from_secs(1)).await;
    fixture.now().await
}

/// Starts, ends and unpins an operation.
async fn ended(fixture: &Fixture, lane: &str, outcome: Outcome) -> OperationId {
    let new = new_operation(lane, Start::Waiting);
    let id = new.id;
    fixture.commit(Commit::new().start(new)).await;
    let end = finish(id, outcome).write(Write::Unpin(id));
    fixture.commit(end).await;
    id
}

/// Polls twice: a store with a cache serves the second from it.
async fn poll(fixture: &Fixture, id: OperationId) -> Option<(State, Bytes)> {
    let lane = key("lane");
    let ask = || fixture.store.poll(&lane, id);
    let (first, second) = (ask().await.expect("a poll"), ask().await.expect("a poll"));
    assert_eq!(first, second);
    second.map(|polled| (polled.state, polled.detail))
}

/// After any change of an operation the next poll returns it, and a swept one is not found.
pub async fn a_poll_returns_every_change_of_its_operation(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let id = fixture.start(Start::Waiting).await;
    let poll_result = |state, detail| Some((state, bytes(detail)));
    assert_eq!(
        poll(&fixture, id).await,
        poll_result(State::Waiting, "detail")
    );
    fixture.commit(only(Write::Wake(id))).await;
    assert_eq!(
        poll(&fixture, id).await,
        poll_result(State::Ready, "detail")
    );
    assert_eq!(fixture.claim_ids(worker, 1).await, [id]);
    assert_eq!(
        poll(&fixture, id).await,
        poll_result(State::Running, "detail")
    );
    let half = Commit::new().advance(id, Next::Same, Some(bytes("half")), None);
    fixture.commit(half).await;
    assert_eq!(
        poll(&fixture, id).await,
        poll_result(State::Running, "half")
    );
    fixture.store.release(worker).await.expect("a release");
    assert_eq!(poll(&fixture, id).await, poll_result(State::Ready, "half"));
    let reseal = Write::Reseal {
        operation: id,
        read: (bytes("half"), Bytes::new()),
        detail: bytes("sealed anew"),
        request: bytes("request"),
        progress: Bytes::new(),
    };
    fixture.commit(only(reseal)).await;
    assert_eq!(
        poll(&fixture, id).await,
        poll_result(State::Ready, "sealed anew")
    );
    let end = finish(id, Outcome::Failed).write(Write::Unpin(id));
    fixture.commit(end).await;
    let failed = State::Done(Outcome::Failed);
    assert_eq!(poll(&fixture, id).await, poll_result(failed, "sealed anew"));
    let before = later(&fixture, candidate).await;
    assert_eq!(swept(&fixture, &sweep(before)).await, 1);
    assert_eq!(poll(&fixture, id).await, None);
}

/// Pinned and unfinished operations are not swept.
pub async fn a_sweep_leaves_pinned_and_unfinished_operations(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    for start in [
        Start::Waiting,
        Start::Ready(Due::Now),
        Start::Ready(Due::In(NEVER)),
        Start::Claimed(worker),
    ] {
        let id = fixture.start(start).await;
        fixture.commit(only(Write::Unpin(id))).await;
    }
    let pinned = fixture.start(Start::Waiting).await;
    fixture.commit(finish(pinned, Outcome::Succeeded)).await;
    let gone = ended(&fixture, "a", Outcome::Succeeded).await;
    let before = later(&fixture, candidate).await;
    assert_eq!(swept(&fixture, &sweep(before)).await, 1);
    assert_eq!(fixture.store.operation(gone).await.expect("a read"), None);
    assert_eq!(fixture.operations(OperationFilter::All).await.len(), 5);
    assert_eq!(
        fixture.operations(OperationFilter::Lane(key("a"))).await,
        []
    );
    assert_eq!(swept(&fixture, &sweep(before)).await, 0);
    fixture.commit(only(Write::Unpin(pinned))).await;
    assert_eq!(swept(&fixture, &sweep(before)).await, 1, "now it may go");
    let stats = fixture.stats().await;
    assert_eq!((stats.live, stats.terminal, stats.cleaned), (4, 0, 2));
}

/// Age counts from the end: an operation accepted long ago that just ended is not swept.
pub async fn a_sweep_counts_from_the_end(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let slow = fixture.start(Start::Waiting).await;
    let quick = ended(&fixture, "a", Outcome::Succeeded).await;
    let between = later(&fixture, candidate).await;
    candidate.pass(Duration::from_secs(1)).await;
    let end = finish(slow, Outcome::Succeeded).write(Write::Unpin(slow));
    fixture.commit(end).await;
    assert_eq!(swept(&fixture, &sweep(between)).await, 1);
    assert_eq!(fixture.store.operation(quick).await.expect("a read"), None);
    assert!(
        fixture.row(slow).await.accepted < between,
        "though it is old"
    );
    let after = later(&fixture, candidate).await;
    assert_eq!(swept(&fixture, &sweep(after)).await, 1);
}

/// A sweep can be limited to one outcome; `Failed` includes cancelled operations.
pub async fn a_sweep_can_be_for_one_outcome(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for (wanted, left) in [
        (
            Some(Outcome::Succeeded),
            vec![Outcome::Failed, Outcome::Cancelled],
        ),
        (Some(Outcome::Failed), vec![Outcome::Succeeded]),
        (
            Some(Outcome::Cancelled),
            vec![Outcome::Succeeded, Outcome::Failed],
        ),
        (None, vec![]),
    ] {
        let mut expected = Vec::new();
        for outcome in [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled] {
            let id = ended(&fixture, "a", outcome).await;
            if left.contains(&outcome) {
                expected.insert(0, id);
            }
        }
        let finished_before = later(&fixture, candidate).await;
        let of_outcome = Sweep::Operations {
            lanes: Vec::new(),
            outcome: wanted,
            finished_before,
            limit: 1000,
        };
        assert_eq!(swept(&fixture, &of_outcome).await, 3 - left.len() as u64);
        assert_eq!(
            fixture.operations(OperationFilter::All).await,
            expected,
            "{wanted:?}"
        );
        swept(&fixture, &sweep(finished_before)).await;
    }
}

/// A sweep can be limited to lanes with a common prefix: one realm, one kind, one instance.
pub async fn a_sweep_can_be_for_some_lanes(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let other = Kind::new("things");
    for (kind, ids) in [
        (super::fixture::THING, vec!["a", "x"]),
        (super::fixture::THING, vec!["a", "y"]),
        (super::fixture::THING, vec!["A", "x"]),
        (super::fixture::THING, vec!["a ", "x"]),
        (other, vec!["a", "x"]),
    ] {
        let mut new = new_operation("a", Start::Waiting);
        new.lane = Key::new(&realm(), kind, &ids).expect("a key");
        let id = new.id;
        fixture.commit(Commit::new().start(new)).await;
        let end = finish(id, Outcome::Failed).write(Write::Unpin(id));
        fixture.commit(end).await;
    }
    let finished_before = later(&fixture, candidate).await;
    let child = Key::prefix(&realm(), super::fixture::THING, &["a"]).expect("a prefix");
    for (lanes, count) in [(child, 2), (things(), 2), (Vec::new(), 1)] {
        let some = Sweep::Operations {
            lanes,
            outcome: None,
            finished_before,
            limit: 1000,
        };
        assert_eq!(swept(&fixture, &some).await, count);
    }
}

/// A sweep deletes at most its limit; the next one continues.
pub async fn a_sweep_is_limited(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for _ in 0..10 {
        ended(&fixture, "a", Outcome::Succeeded).await;
    }
    let finished_before = later(&fixture, candidate).await;
    let some = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before,
        limit: 4,
    };
    for (taken, cleaned) in [(4, 4), (4, 8), (2, 10), (0, 10)] {
        assert_eq!(swept(&fixture, &some).await, taken);
        let stats = fixture.stats().await;
        assert_eq!((stats.accepted, stats.cleaned), (10, cleaned));
    }
}

/// A swept operation's log is deleted too, and late chunks do not create it again.
pub async fn a_sweep_deletes_the_log(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let kept = fixture.start(Start::Waiting).await;
    let gone = fixture.start(Start::Waiting).await;
    let append = async |id, text| {
        let appended = fixture.store.append_log(id, bytes(text)).await;
        appended.expect("a log");
    };
    append(kept, "kept").await;
    append(gone, "gone").await;
    let end = finish(gone, Outcome::Failed).write(Write::Unpin(gone));
    fixture.commit(end).await;
    append(gone, "last words").await;
    assert_eq!(fixture.log(gone).await.len(), 2);
    let before = later(&fixture, candidate).await;
    assert_eq!(swept(&fixture, &sweep(before)).await, 1);
    assert_eq!(fixture.log(gone).await, []);
    append(gone, "too late").await;
    assert_eq!(fixture.log(gone).await, []);
    assert_eq!(fixture.log(kept).await.len(), 1);
}

/// The counts contain the waiting, ready and running operations of each queue, and the oldest.
pub async fn the_counts_are_by_queue(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let start = async |queue: &Queue, start: Start| {
        let mut new = new_operation("a", start);
        new.queue = queue.clone();
        let id = new.id;
        fixture.commit(Commit::new().start(new)).await;
        id
    };
    let [one, two, done] = ["one", "two", "done"].map(Queue::named);
    let first = start(&one, Start::Waiting).await;
    candidate.pass(Duration::from_secs(1)).await;
    let oldest_of_two = start(&two, Start::Ready(Due::In(NEVER))).await;
    for state in [
        Start::Waiting,
        Start::Ready(Due::Now),
        Start::Claimed(worker),
        Start::Claimed(worker),
    ] {
        start(&one, state).await;
    }
    let over = start(&done, Start::Waiting).await;
    fixture.commit(finish(over, Outcome::Succeeded)).await;
    let stats = fixture.stats().await;
    assert_eq!((stats.accepted, stats.live, stats.terminal), (7, 6, 1));
    let expected_one = QueueStats {
        queue: one,
        waiting: 2,
        ready: 1,
        running: 2,
        oldest: fixture.row(first).await.accepted,
    };
    let expected_two = QueueStats {
        queue: two,
        waiting: 0,
        ready: 1,
        running: 0,
        oldest: fixture.row(oldest_of_two).await.accepted,
    };
    let mut queues = stats.queues;
    queues.sort_by(|a, b| a.queue.cmp(&b.queue));
    assert_eq!(queues, [expected_one, expected_two]);
    let retried = Commit::new().advance(first, Next::Retry(Due::Now), None, None);
    fixture.commit(retried).await;
    assert_eq!(
        fixture.stats().await.accepted,
        7,
        "a retry is not a new one"
    );
}

/// Store information counts valid and expired leases, abandoned operations, and commits of the feed.
pub async fn store_info_counts_leases_logs_and_commits(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let info = async || fixture.store.info().await.expect("facts about the store");
    let empty = info().await;
    assert!(empty.layout.now > 0 && empty.layout.found <= empty.layout.now);
    assert_eq!((empty.leases, empty.feed, empty.abandoned), (0, 0, 0));
    let brief = fixture.worker(BRIEF).await;
    let dead = fixture.start(Start::Claimed(brief)).await;
    candidate.pass(AFTER_BRIEF).await;
    let worker = fixture.worker(LASTING).await;
    let alive = fixture.start(Start::Claimed(worker)).await;
    for id in [dead, alive] {
        let appended = fixture.store.append_log(id, bytes("said")).await;
        appended.expect("a log");
    }
    fixture.commit(insert("a", "1")).await;
    let after = info().await;
    assert_eq!((after.leases, after.leases_over), (1, 1));
    assert_eq!((after.abandoned, after.feed), (1, 3));
    assert_eq!((empty.documents, after.documents), (0, 1));
    assert_eq!(after.stray_logs, 0, "each log has its operation");
    assert_eq!(after.layout, empty.layout);
}
