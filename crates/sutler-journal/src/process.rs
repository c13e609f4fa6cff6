//! What a process takes from its surroundings besides its store: fresh ids, the time of day, and the
//! moment at which a task is polled.
//!
//! In production these are the system's. A simulation (feature `testing`) replaces them on its thread
//! with [`simulate`], so that a seed decides them all. The clock of leases is not here, see `clock.rs`;
//! waits use tokio's clock, which a simulation pauses.

#[cfg(any(test, feature = "testing"))]
mod simulated;

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

#[cfg(any(test, feature = "testing"))]
pub use simulated::{Surroundings, simulate};

/// A fresh id that sorts by time.
pub(crate) fn fresh_id() -> Uuid {
    #[cfg(any(test, feature = "testing"))]
    if let Some(id) = simulated::fresh_id() {
        return id;
    }
    Uuid::now_v7()
}

/// Time of day, since 1970 in UTC. Processes disagree about it and it can jump: for logs, ages in
/// days, and schedules of operators.
pub fn wall_clock() -> Duration {
    #[cfg(any(test, feature = "testing"))]
    if let Some(now) = simulated::wall_clock() {
        return now;
    }
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Marks a task whose polls a simulation may delay, as a busy machine does.
pub(crate) fn scheduled<F: Future>(task: F) -> impl Future<Output = F::Output> {
    #[cfg(any(test, feature = "testing"))]
    let task = simulated::Scheduled::new(task);
    task
}
