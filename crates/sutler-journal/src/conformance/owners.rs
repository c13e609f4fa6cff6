//! Two owners of the same data: a second opening is refused, or both see each other's commits, leases and claims.
//!
//! Not here: opening again after a crash of the first owner (`restarts.rs`), one opening with many workers
//! (`claims.rs`, `concurrency.rs`).

use super::Candidate;
use super::fixture::{
    AFTER_BRIEF, BRIEF, Fixture, LASTING, WORK, advance, bytes, insert, key, new_operation,
};
use crate::commit::{Commit, CommitError, Next, StaleItem, Start};
use crate::operation::{Fence, OperationId, WorkerId};
use crate::store::LeaseError;
use std::collections::HashSet;
use tokio::task::JoinSet;

/// Operations that two owners claim at the same time, and the most that one call claims.
const OPERATIONS: usize = 60;
const CLAIM_MAX: usize = 4;
/// Changes of one document by each of two owners.
const CHANGES: usize = 20;

/// Two openings of one store; `None` if the second one was refused. Either way nothing is taken from the first one: its
/// lease stays valid, and it commits and claims. A refusal says why.
async fn two_openings(candidate: &dyn Candidate) -> Option<[Fixture; 2]> {
    let first = Fixture::of(candidate).await;
    let (worker, running, fence) = first.running(LASTING).await;
    let refusal = match candidate.open_again().await {
        Ok(store) => {
            let second = Fixture { store };
            let other = second.worker(LASTING).await;
            assert_eq!(second.claim_ids(other, 10).await, [], "the first has it");
            assert_eq!(held(&second, worker).await, [running]);
            return Some([first, second]);
        }
        Err(refusal) => refusal,
    };
    assert!(refusal.contains("in use"), "it must say why: {refusal}");
    first.commit(insert("after-refusal", "x")).await;
    assert!(first.get("after-refusal").await.is_some());
    first
        .commit(advance(running, Next::Same).fenced(running, fence))
        .await;
    let ready = first.start_ready().await;
    assert_eq!(first.claim_ids(worker, 10).await, [ready], "its lease");
    assert_eq!(held(&first, worker).await, sorted([running, ready]));
    None
}

/// What a renewal through this opening lists for a worker.
async fn held(opening: &Fixture, worker: WorkerId) -> Vec<OperationId> {
    let renewal = opening.store.renew(worker, LASTING).await;
    sorted(renewal.expect("a lease").held)
}

fn sorted(ids: impl IntoIterator<Item = OperationId>) -> Vec<OperationId> {
    let mut ids: Vec<OperationId> = ids.into_iter().collect();
    ids.sort();
    ids
}

/// An operation that was claimed through one opening is not claimed through the other while its lease is valid,
/// also if that was renewed through the other only; a renewal lists it for its worker, through either opening.
pub async fn a_second_opening_is_refused_or_shares_leases(candidate: &dyn Candidate) {
    let Some(openings) = two_openings(candidate).await else {
        return;
    };
    for (mine, theirs) in [(0, 1), (1, 0)] {
        let (mine, theirs) = (&openings[mine], &openings[theirs]);
        let (worker, other) = (mine.worker(BRIEF).await, theirs.worker(LASTING).await);
        let id = mine.start_ready().await;
        assert_eq!(mine.claim_ids(worker, 10).await, [id]);
        for opening in [theirs, mine] {
            assert_eq!(opening.claim_ids(other, 10).await, [], "it is claimed");
            assert_eq!(opening.claim_ids(worker, 10).await, [], "once");
            assert_eq!(held(opening, other).await, [], "it is the worker's");
        }
        assert_eq!(held(theirs, worker).await, [id]);
        candidate.pass(AFTER_BRIEF).await;
        assert_eq!(theirs.claim_ids(other, 10).await, [], "it was renewed");
        assert_eq!(held(mine, worker).await, [id]);
        let (now, old) = (mine.row(id).await.fence, Fence(0));
        let stale = advance(id, Next::Same).fenced(id, old);
        assert_eq!(theirs.stale(stale).await, StaleItem::Expect(0));
        theirs.commit(advance(id, Next::Same).fenced(id, now)).await;

        theirs.store.release(worker).await.expect("a release");
        let lost = mine.store.claim(worker, &[(WORK, 10)]).await;
        assert!(matches!(lost, Err(LeaseError::Lost)), "{lost:?}");
        let late = advance(id, Next::Same).fenced(id, now);
        assert_eq!(mine.stale(late).await, StaleItem::Expect(0));
        assert_eq!(mine.claim_ids(other, 10).await, [id]);
        assert_eq!(held(theirs, other).await, [id]);
    }
}

/// What one opening committed is read by the other at once, and guards its commits: no change is lost.
pub async fn a_second_opening_is_refused_or_shares_commits(candidate: &dyn Candidate) {
    let Some(openings) = two_openings(candidate).await else {
        return;
    };
    for (mine, theirs, id) in [(0, 1, "a"), (1, 0, "b")] {
        let (mine, theirs) = (&openings[mine], &openings[theirs]);
        let operation = new_operation(id, Start::Waiting);
        let started = operation.id;
        let commit = insert(id, "new").start(operation);
        mine.commit(commit.clone()).await;
        assert_eq!(theirs.get(id).await.expect("the document").body, "new");
        assert_eq!(
            theirs.operation(started).await,
            mine.operation(started).await
        );
        theirs.commit(commit).await;
        assert_eq!(
            theirs.stale(insert(id, "again")).await,
            StaleItem::Expect(0)
        );
        let read = theirs.version(id).await;
        let change = Commit::new().replace(key(id), read, Vec::new(), bytes("changed"));
        theirs.commit(change).await;
        let late = Commit::new().replace(key(id), read, Vec::new(), bytes("late"));
        assert_eq!(mine.stale(late).await, StaleItem::Expect(0));
        assert_eq!(mine.get(id).await.expect("the document").body, "changed");
        assert_eq!(mine.snapshot().await, theirs.snapshot().await);
    }
    openings[0].commit(insert("count", "")).await;
    let mut changing = JoinSet::new();
    for opening in openings.clone() {
        changing.spawn(async move {
            for _ in 0..CHANGES {
                grow(&opening, "count").await;
            }
        });
    }
    changing.join_all().await;
    for opening in &openings {
        let count = opening.get("count").await.expect("the document").body;
        assert_eq!(count.len(), 2 * CHANGES, "a change is lost");
    }
}

/// Makes the body of a document one byte longer; repeats while another writer is first.
async fn grow(opening: &Fixture, id: &str) {
    loop {
        let read = opening.get(id).await.expect("the document");
        let body = [&read.body[..], b"x"].concat().into();
        let change = Commit::new().replace(key(id), read.version, Vec::new(), body);
        match opening.store.commit(&change).await {
            Ok(()) => return,
            Err(CommitError::Stale(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error} ({error:?})"),
        }
    }
}

/// Two openings that claim at the same time claim each operation once, and together all of them.
pub async fn a_second_opening_is_refused_or_claims_others(candidate: &dyn Candidate) {
    let Some(openings) = two_openings(candidate).await else {
        return;
    };
    for n in 0..OPERATIONS {
        openings[n % 2].start_ready().await;
    }
    let mut claiming = JoinSet::new();
    for n in 0..4 {
        let opening = openings[n % 2].clone();
        claiming.spawn(async move {
            let worker = opening.worker(LASTING).await;
            let mut all = Vec::new();
            loop {
                let claimed = opening.claim_ids(worker, CLAIM_MAX).await;
                let queues = opening.stats().await.queues;
                if claimed.is_empty() && queues.iter().all(|queue| queue.ready == 0) {
                    assert_eq!(held(&opening, worker).await, sorted(all.clone()));
                    return all;
                }
                all.extend(claimed);
            }
        });
    }
    let claimed: Vec<OperationId> = claiming.join_all().await.concat();
    let different: HashSet<OperationId> = claimed.iter().copied().collect();
    assert_eq!(
        claimed.len(),
        different.len(),
        "an operation is claimed twice"
    );
    assert_eq!(claimed.len(), OPERATIONS, "an operation is not claimed");
}
