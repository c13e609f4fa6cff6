//! Carries the plan out: breaks what `schedule.rs` says, when it says so, and mends it again.

use super::replica::Replica;
use super::schedule::{Blow, Planned};
use crate::victim::now_us;
use crate::violation::{Checked, Violation};
use std::sync::Arc;
use std::time::Duration;
use sutler_servers::Server;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What can be broken.
pub(super) struct Prey {
    pub(super) replicas: Vec<Arc<Mutex<Replica>>>,
    pub(super) server: Arc<Mutex<Restarted>>,
}

/// A server, and when it was away.
pub(super) struct Restarted {
    pub(super) server: Arc<Server>,
    /// From its end to its first answer, in microseconds of the machine's clock.
    pub(super) away: Vec<(u64, u64)>,
}

impl Prey {
    /// Breaks everything as planned; ends when all is whole again.
    ///
    /// # Errors
    /// Something did not come back, or ended by itself.
    pub(super) async fn strike(&self, plan: &[Planned]) -> Checked<()> {
        let begun = Instant::now();
        let mut blows = JoinSet::new();
        for planned in plan {
            tokio::time::sleep_until(begun + Duration::from_millis(planned.at)).await;
            match planned.blow {
                Blow::Restart { down } => {
                    let server = Arc::clone(&self.server);
                    blows.spawn(restart(server, Duration::from_millis(down)));
                }
                Blow::Kill { replica, .. }
                | Blow::Pause { replica, .. }
                | Blow::Cut { replica, .. } => {
                    let replica = Arc::clone(&self.replicas[replica]);
                    blows.spawn(hit(replica, planned.blow));
                }
            }
            while let Some(ended) = blows.try_join_next() {
                ended.map_err(|error| Violation::new(error.to_string()))??;
            }
        }
        while let Some(ended) = blows.join_next().await {
            ended.map_err(|error| Violation::new(error.to_string()))??;
        }
        Ok(())
    }
}

async fn hit(replica: Arc<Mutex<Replica>>, blow: Blow) -> Checked<()> {
    let mut replica = replica.lock().await;
    let down = Duration::from_millis(blow.down());
    match blow {
        Blow::Kill { .. } => replica.kill(down).await,
        Blow::Pause { .. } => replica.pause(down).await,
        Blow::Cut { cut, .. } => replica.cut(cut, down).await,
        Blow::Restart { .. } => Ok(()),
    }
}

async fn restart(it: Arc<Mutex<Restarted>>, down: Duration) -> Checked<()> {
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
