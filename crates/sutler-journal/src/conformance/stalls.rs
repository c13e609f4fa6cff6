//! Stalls: a server that does not respond and closes nothing, a disk that completes no write.
//!
//! Not here: connections that break (`faults.rs`).

use super::Candidate;
use super::fixture::{Fixture, LASTING, WORK};
use super::samples::until;
use crate::store::CLAIM_TIME_MAX;
use std::time::{Duration, Instant};

/// A lease that is shorter than the time limits of most stores.
const SHORT: Duration = Duration::from_secs(1);
/// Delay of a busy machine.
const DELAY_MAX: Duration = Duration::from_millis(1500);
/// Time in which a store serves again after a stall.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// During a stall a renewal ends within the duration of the lease that it asks for, and a claim within its limit.
pub async fn renewals_and_claims_end_in_time_during_a_stall(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let renewing = fixture.worker(SHORT).await;
    let changing = fixture.worker(LASTING).await;
    let claiming = fixture.worker(LASTING).await;
    fixture.start_ready().await;
    candidate.set_stalled(true).await;
    let calls = [
        (Some(renewing), SHORT),
        (Some(changing), SHORT),
        (None, CLAIM_TIME_MAX),
    ];
    for (renews, limit) in calls {
        let began = Instant::now();
        // Whether it succeeds depends on the store.
        match renews {
            Some(worker) => drop(fixture.store.renew(worker, SHORT).await),
            None => drop(fixture.store.claim(claiming, &[(WORK, 1)]).await),
        }
        let took = began.elapsed();
        assert!(
            took < limit + DELAY_MAX,
            "{took:?} for a limit of {limit:?}"
        );
    }
    candidate.set_stalled(false).await;
}

/// After a stall a store serves again, and an operation that a stalled call claimed is held by its worker.
pub async fn a_store_serves_after_a_stall(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let stalled = fixture.worker(LASTING).await;
    let id = fixture.start_ready().await;
    candidate.set_stalled(true).await;
    // Whether it is claimed is known after the stall only.
    drop(fixture.store.claim(stalled, &[(WORK, 1)]).await);
    candidate.set_stalled(false).await;
    until("an operation is claimed", RECOVERY_MAX, || async {
        let Ok(renewal) = fixture.store.renew(stalled, LASTING).await else {
            return false;
        };
        if renewal.held == [id] {
            return true;
        }
        let claim = fixture.store.claim(stalled, &[(WORK, 1)]).await;
        claim.is_ok_and(|claimed| claimed.iter().any(|it| it.row.id == id))
    })
    .await;
    let row = fixture.row(id).await;
    assert_eq!((row.fence.0, row.takeovers), (1, 0), "it was claimed once");
}
