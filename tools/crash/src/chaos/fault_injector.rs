//! Injects the faults of `fault_plan.rs` at their times, and repairs them.

use super::fault_plan::{Fault, PlannedFault};
use super::replica::Replica;
use crate::victim::now_us;
use crate::violation::{CheckResult, Violation};
use std::sync::Arc;
use std::time::Duration;
use sutler_servers::Server;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Targets of faults.
pub(super) struct FaultTargets {
    pub(super) replicas: Vec<Arc<Mutex<Replica>>>,
    pub(super) server: Arc<Mutex<RestartedServer>>,
}

/// A server, and its outages.
pub(super) struct RestartedServer {
    pub(super) server: Arc<Server>,
    /// Outages, from the kill to the first response, in microseconds of the machine's clock.
    pub(super) away: Vec<(u64, u64)>,
}

impl FaultTargets {
    /// Injects all faults as planned; returns when all are repaired.
    ///
    /// # Errors
    /// A process did not come back, or ended by itself.
    pub(super) async fn inject(&self, plan: &[PlannedFault]) -> CheckResult<()> {
        let begun = Instant::now();
        let mut faults = JoinSet::new();
        for planned in plan {
            tokio::time::sleep_until(begun + Duration::from_millis(planned.at)).await;
            match planned.fault {
                Fault::Restart { down } => {
                    let server = Arc::clone(&self.server);
                    faults.spawn(restart(server, Duration::from_millis(down)));
                }
                Fault::Kill { replica, .. }
                | Fault::Pause { replica, .. }
                | Fault::Cut { replica, .. } => {
                    let replica = Arc::clone(&self.replicas[replica]);
                    faults.spawn(hit(replica, planned.fault));
                }
            }
            while let Some(ended) = faults.try_join_next() {
                ended.map_err(|error| Violation::new(error.to_string()))??;
            }
        }
        while let Some(ended) = faults.join_next().await {
            ended.map_err(|error| Violation::new(error.to_string()))??;
        }
        Ok(())
    }
}

async fn hit(replica: Arc<Mutex<Replica>>, fault: Fault) -> CheckResult<()> {
    let mut replica = replica.lock().await;
    let down = Duration::from_millis(fault.down());
    match fault {
        Fault::Kill { .. } => replica.kill(down).await,
        Fault::Pause { .. } => replica.pause(down).await,
        Fault::Cut { cut, .. } => replica.cut(cut, down).await,
        Fault::Restart { .. } => Ok(()),
    }
}

async fn restart(it: Arc<Mutex<RestartedServer>>, down: Duration) -> CheckResult<()> {
    let mut it = it.lock().await;
    let failed = |error: tokio::task::JoinError| Violation::new(format!("the server: {error}"));
    let from = now_us();
    let server = Arc::clone(&it.server);
    let killing = tokio::task::spawn_blocking(move || server.kill());
    killing.await.map_err(failed)?;
    tokio::time::sleep(down).await;
    let server = Arc::clone(&it.server);
    let starting = tokio::task::spawn_blocking(move || server.start());
    starting.await.map_err(failed)?;
    it.away.push((from, now_us()));
    Ok(())
}
