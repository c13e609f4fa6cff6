//! Fresh ids, time of day and the polling of tasks: sources of nondeterminism that a simulation replaces.
//!
//! In production these are the system's. A simulation (feature `testing`) replaces them on its thread
//! with [`simulate`], so that a seed decides them all. The clock of leases is not here, see `clock.rs`;
//! waits use tokio's clock, which a simulation pauses.

#[cfg(any(test, feature = "testing"))]
mod simulation;

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

#[cfg(any(test, feature = "testing"))]
pub use simulation::{DelayedTask, NondeterminismSource, simulate};

/// A fresh id that sorts by time.
pub(crate) fn fresh_id() -> Uuid {
    #[cfg(any(test, feature = "testing"))]
    if let Some(id) = simulation::fresh_id() {
        return id;
    }
    Uuid::now_v7()
}

/// Time of day, since 1970 in UTC. Processes disagree about it and it can jump: for logs, ages in
/// days, and schedules of operators.
pub fn wall_clock() -> Duration {
    #[cfg(any(test, feature = "testing"))]
    if let Some(now) = simulation::wall_clock() {
        return now;
    }
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Marks a task whose polls a simulation may delay, as a busy machine does.
pub(crate) fn scheduled<F: Future>(task: F) -> impl Future<Output = F::Output> {
    #[cfg(any(test, feature = "testing"))]
    let task = simulation::DelayedTask::new(task);
    task
}
