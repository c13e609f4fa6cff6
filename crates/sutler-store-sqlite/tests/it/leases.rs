//! Leases of the one process that owns the file, while its disk stalls.
//!
//! Not here: the behaviours of every store (the conformance suite).

use crate::conformance::Sqlite;
use std::time::Duration;
use sutler_journal::conformance::Candidate as _;
use sutler_journal::conformance::samples::{WORK, new_operation, worker};
use sutler_journal::{Commit, Due, Fence, Next, Start};
use tokio::time::timeout;

const LEASE: Duration = Duration::from_secs(30);
/// Longer than anything here takes on a busy machine, and shorter than the lease.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_disk_ends_no_lease() {
    let candidate = Sqlite::fresh().await;
    let store = candidate.store().await;
    let owner = worker(&*store, LEASE).await;
    let other = worker(&*store, LEASE * 100).await;
    let new = new_operation("a", Start::Claimed(owner));
    let id = new.id;
    let started = store.commit(&Commit::new().start(new)).await;
    started.expect("a commit");
    candidate.set_stalled(true).await;
    let claim = tokio::spawn({
        let store = candidate.store().await;
        async move { store.claim(other, &[(WORK, 1)]).await }
    });
    for _ in 0..6 {
        candidate.pass(LEASE / 3).await;
        let renewal = timeout(SOON, store.renew(owner, LEASE)).await;
        let renewal = renewal.expect("it does not wait for the disk");
        assert_eq!(renewal.expect("a lease").held, [id]);
    }
    candidate.set_stalled(false).await;
    let claimed = claim.await.expect("no panic").expect("a claim");
    assert_eq!(claimed, [], "the lease of its worker is valid");
    let memo = Commit::new().advance(id, Next::Same, None, None);
    let written = store.commit(&memo.fenced(id, Fence(1))).await;
    written.expect("a commit under the lease");
}

/// A group that is not durable yet changes nothing that a renewal returns.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_during_a_stall_returns_durable_claims_only() {
    let candidate = Sqlite::fresh().await;
    let store = candidate.store().await;
    let owner = worker(&*store, LEASE).await;
    candidate.set_stalled(true).await;
    let new = new_operation("a", Start::Claimed(owner));
    let id = new.id;
    let start = tokio::spawn({
        let store = candidate.store().await;
        async move { store.commit(&Commit::new().start(new)).await }
    });
    let renewal = timeout(SOON, store.renew(owner, LEASE)).await;
    let renewal = renewal.expect("it does not wait for the disk");
    assert_eq!(renewal.expect("a lease").held, []);
    candidate.set_stalled(false).await;
    start.await.expect("no panic").expect("a commit");
    let renewal = store.renew(owner, LEASE).await.expect("a lease");
    assert_eq!(renewal.held, [id]);
}

/// Claims wait behind a stalled disk; those whose caller has gone must not take operations afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_given_up_during_a_stall_takes_nothing() {
    let candidate = Sqlite::fresh().await;
    let store = candidate.store().await;
    let owner = worker(&*store, LEASE).await;
    for name in ["a", "b", "c"] {
        let new = new_operation(name, Start::Ready(Due::Now));
        let started = store.commit(&Commit::new().start(new)).await;
        started.expect("a commit");
    }
    candidate.set_stalled(true).await;
    let stalled = tokio::spawn({
        let store = candidate.store().await;
        let new = new_operation("d", Start::Waiting);
        async move { store.commit(&Commit::new().start(new)).await }
    });
    for _ in 0..2 {
        let claim = async { store.claim(owner, &[(WORK, 1)]).await };
        let given_up = timeout(Duration::from_millis(50), claim).await;
        given_up.expect_err("the disk stalls");
    }
    candidate.set_stalled(false).await;
    stalled.await.expect("no panic").expect("a commit");
    let claimed = store.claim(owner, &[(WORK, 1)]).await.expect("a claim");
    let renewal = store.renew(owner, LEASE).await.expect("a lease");
    assert_eq!(renewal.held, [claimed[0].row.id]);
}
