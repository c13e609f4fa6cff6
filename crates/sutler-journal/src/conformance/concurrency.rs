//! Concurrency: independent commits never conflict, and of conflicting ones exactly one wins.

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, WORK, advance, bytes, insert, key, new_operation,
};
use crate::commit::{Commit, CommitError, Due, Next, Start};
use crate::document::Version;
use crate::operation::{Fence, OperationId, Outcome, Queue, State};
use crate::query::{Change, Cursor};
use std::future::Future;
use tokio::task::JoinSet;

/// Runs one task per number and returns their results in the order of the numbers.
async fn at_once<T, F>(count: usize, task: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let task = task(n);
        tasks.spawn(async move { (n, task.await) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Number of applied commits; the rest must be stale.
fn applied(results: &[Result<(), CommitError>]) -> usize {
    let mut count = 0;
    for result in results {
        match result {
            Ok(()) => count += 1,
            Err(CommitError::Stale(_)) => {}
            Err(error) => panic!("neither applied nor stale: {error:?}"),
        }
    }
    count
}

async fn both(fixture: &Fixture, one: Commit, other: Commit) -> usize {
    let pair = [one, other];
    let results = at_once(2, |n| {
        let (fixture, commit) = (fixture.clone(), pair[n].clone());
        async move { fixture.store.commit(&commit).await }
    });
    applied(&results.await)
}

/// 32 lanes that share only a document they all read never conflict.
pub async fn independent_lanes_never_conflict(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let shared = Version(fixture.commit(insert("shared", "read by all")).await);
    let ended = at_once(32, |lane| {
        let fixture = fixture.clone();
        async move {
            let id = format!("lane-{lane}");
            let worker = fixture.worker(LASTING).await;
            let mut read = None;
            for round in 0..15 {
                let new = new_operation(&id, Start::Claimed(worker));
                let operation = new.id;
                let body = bytes(&format!("{round}"));
                let commit = match read {
                    None => Commit::new().insert(key(&id), Vec::new(), body),
                    Some(read) => Commit::new().replace(key(&id), read, Vec::new(), body),
                };
                let commit = commit.unchanged(key("shared"), shared).start(new);
                let accepted = Version(fixture.commit(commit).await);
                let memo = advance(operation, Next::Same).fenced(operation, Fence(1));
                fixture.commit(memo).await;
                let result = Commit::new()
                    .replace(key(&id), accepted, Vec::new(), bytes("done"))
                    .advance(operation, Next::Done(Outcome::Succeeded), None, None)
                    .fenced(operation, Fence(1));
                read = Some(Version(fixture.commit(result).await));
            }
        }
    });
    assert_eq!(ended.await.len(), 32);
    let stats = fixture.stats().await;
    assert_eq!((stats.live, stats.terminal), (0, 32 * 15));
}

/// Two commits that each read what the other writes: one of them is stale, every time.
pub async fn write_skew_is_impossible(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("a", "0")).await;
    fixture.commit(insert("b", "0")).await;
    for round in 0..60 {
        let (a, b) = (fixture.version("a").await, fixture.version("b").await);
        let write_a = Commit::new()
            .replace(key("a"), a, Vec::new(), bytes("x"))
            .unchanged(key("b"), b);
        let write_b = Commit::new()
            .replace(key("b"), b, Vec::new(), bytes("x"))
            .unchanged(key("a"), a);
        assert_eq!(both(&fixture, write_a, write_b).await, 1, "round {round}");
    }
}

/// Two commits that each create what the other expects to be absent: one of them is stale, every time.
pub async fn absence_is_guarded_like_presence(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for round in 0..40 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let make_a = insert(&a, "x").absent(key(&b));
        let make_b = insert(&b, "x").absent(key(&a));
        assert_eq!(both(&fixture, make_a, make_b).await, 1, "round {round}");
        let there = [fixture.get(&a).await, fixture.get(&b).await];
        assert_eq!(there.iter().flatten().count(), 1);
    }
}

/// Of many writers that read the same version, one succeeds.
pub async fn one_of_many_writers_wins(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("a", "start")).await;
    for round in 0..10 {
        let read = fixture.version("a").await;
        let results = at_once(16, |n| {
            let fixture = fixture.clone();
            async move {
                let body = bytes(&format!("{round}-{n}"));
                let commit = Commit::new().replace(key("a"), read, Vec::new(), body);
                fixture.store.commit(&commit).await
            }
        });
        let results = results.await;
        assert_eq!(applied(&results), 1);
        let winner = results.iter().position(Result::is_ok).expect("a winner");
        let body = fixture.get("a").await.expect("a").body;
        assert_eq!(body, format!("{round}-{winner}"));
    }
}

/// Writers that read again after `Stale` lose no update.
pub async fn no_update_is_lost(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("count", "0")).await;
    let ended = at_once(8, |_| {
        let fixture = fixture.clone();
        async move {
            let (mut added, mut tries) = (0, 0);
            while added < 20 {
                tries += 1;
                assert!(tries < 10_000, "somebody must get through");
                let read = fixture.get("count").await.expect("the count");
                let text = std::str::from_utf8(&read.body).expect("a number");
                let next = text.parse::<u32>().expect("a number") + 1;
                let body = bytes(&next.to_string());
                let commit = Commit::new().replace(read.key, read.version, Vec::new(), body);
                added += applied(&[fixture.store.commit(&commit).await]);
            }
        }
    });
    ended.await;
    assert_eq!(fixture.get("count").await.expect("the count").body, "160");
}

/// The same commit sent concurrently many times is applied once, and every call returns `Ok`.
pub async fn a_commit_repeated_at_once_is_applied_once(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    for _ in 0..10 {
        let id = fixture.start_ready().await;
        let commit = advance(id, Next::Retry(Due::Now)).start(new_operation("a", Start::Waiting));
        let results = at_once(8, |_| {
            let (fixture, commit) = (fixture.clone(), commit.clone());
            async move { fixture.store.commit(&commit).await }
        });
        for result in results.await {
            result.expect("it was applied");
        }
        assert_eq!(fixture.row(id).await.attempt, 2);
    }
    assert_eq!(fixture.stats().await.accepted, 20);
}

/// Claims of several workers never overlap, respect their limits and leave nothing.
pub async fn claims_never_overlap(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let other = Queue::named("other");
    let mut started = Vec::new();
    for n in 0..10 {
        let mut commit = Commit::new();
        for m in 0..20 {
            let mut new = new_operation(&format!("{n}-{m}"), Start::Ready(Due::Now));
            new.queue = if m < 10 { WORK } else { other.clone() };
            started.push(new.id);
            commit = commit.start(new);
        }
        fixture.commit(commit).await;
    }
    let claimed = at_once(8, |_| {
        let (fixture, other) = (fixture.clone(), other.clone());
        async move {
            let worker = fixture.worker(LASTING).await;
            let mut mine: Vec<OperationId> = Vec::new();
            loop {
                let queues = [(WORK, 3), (other.clone(), 2)];
                let claimed = fixture.store.claim(worker, &queues).await.expect("a claim");
                let from = |queue: &Queue| claimed.iter().filter(|c| c.row.queue == *queue).count();
                assert!(from(&WORK) <= 3 && from(&other) <= 2, "over the limit");
                if claimed.is_empty() {
                    return mine;
                }
                for operation in claimed {
                    assert_eq!(operation.row.fence, Fence(1), "claimed once");
                    mine.push(operation.row.id);
                }
            }
        }
    });
    let mut claimed: Vec<OperationId> = claimed.await.into_iter().flatten().collect();
    claimed.sort();
    started.sort();
    assert_eq!(claimed, started, "each by exactly one");
}

/// The operation of a dead worker is taken over by exactly one of many workers.
pub async fn exactly_one_of_many_workers_takes_over(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let dead = fixture.worker(BRIEF).await;
    for _ in 0..3 {
        let mut commit = Commit::new();
        for n in 0..10 {
            commit = commit.start(new_operation(&format!("{n}"), Start::Claimed(dead)));
        }
        fixture.commit(commit).await;
    }
    candidate.pass(AFTER_BRIEF).await;
    let claimed = at_once(8, |_| {
        let fixture = fixture.clone();
        async move {
            let worker = fixture.worker(LASTING).await;
            let mut mine = fixture.claim(worker, 4).await;
            mine.extend(fixture.claim(worker, 4).await);
            mine
        }
    });
    let claimed: Vec<_> = claimed.await.into_iter().flatten().collect();
    assert_eq!(claimed.len(), 30);
    for operation in claimed {
        assert_eq!(
            (operation.row.fence, operation.row.takeovers),
            (Fence(2), 1)
        );
        assert_eq!(fixture.state(operation.row.id).await, State::Running);
    }
}

/// A reader that follows the feed during many commits gets each commit once, in the final order.
pub async fn the_feed_is_stable_while_many_commit(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (done, committing) = tokio::sync::watch::channel(());
    let reader = tokio::spawn({
        let fixture = fixture.clone();
        async move {
            let mut received: Vec<Change> = Vec::new();
            let mut cursor = Cursor::default();
            let mut last = false;
            loop {
                let (changes, next) = fixture.feed(&cursor).await;
                received.extend(changes);
                cursor = next;
                if last {
                    return received;
                }
                last = committing.has_changed().is_err();
                tokio::task::yield_now().await;
            }
        }
    });
    let made = at_once(8, |writer| {
        let fixture = fixture.clone();
        async move {
            let mut made = Vec::new();
            for n in 0..40 {
                let commit = insert(&format!("{writer}-{n}"), "x")
                    .insert(key(&format!("{writer}-{n}-too")), Vec::new(), bytes("y"))
                    .start(new_operation("a", Start::Waiting));
                made.push(fixture.commit(commit).await);
            }
            made
        }
    });
    let made = made.await;
    drop(done);
    let received = reader.await.expect("the reader");
    assert_eq!(received.len(), 8 * 40 * 3, "each change once");
    let (again, _) = fixture.feed(&Cursor::default()).await;
    assert_eq!(received, again, "the order never changes");
    for own in made {
        let order = received.iter().map(|change| change.commit);
        let mut order: Vec<_> = order.filter(|commit| own.contains(commit)).collect();
        order.dedup();
        assert_eq!(order, own, "one writer's commits are in its order, whole");
    }
}
