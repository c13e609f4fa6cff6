//! Whether the broker lives and can work: `/healthz` and `/readyz`.
//!
//! A loop looks at the store and the lease once a second and keeps what it found; a probe only reads
//! that, so nobody can load the store by asking. The same loop samples the queues for `metrics.rs`.
//! The paths are in `sutler_server::Probes`.

use crate::metrics;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use sutler_journal::{Commit, Engine, Key, MeteredStore, Store};
use sutler_server::metrics::ready_is;
use sutler_server::{Health, Readiness};
use tokio::time::{Instant, timeout};

/// How often the store and the lease are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the broker says it is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How often the queues are counted: that reads every unfinished operation.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// What the last look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Finding {
    Ready,
    Draining,
    NoLease,
    StoreSilent,
    StoreReadOnly,
}

impl Finding {
    const ALL: [Self; 5] = [
        Self::Ready,
        Self::Draining,
        Self::NoLease,
        Self::StoreSilent,
        Self::StoreReadOnly,
    ];

    fn sentence(self) -> &'static str {
        match self {
            Self::Ready => "The broker is ready.\n",
            Self::Draining => "The broker is stopping; ask another one.\n",
            Self::NoLease => "The broker has lost its lease and is taking a new one; ask again.\n",
            Self::StoreSilent => "The broker's store does not answer; its operator can see why.\n",
            Self::StoreReadOnly => {
                "The broker's store takes no writes; its operator can see why.\n"
            }
        }
    }
}

/// What a look saw.
#[derive(Clone, Copy, Debug)]
struct Look {
    stopping: bool,
    lease: bool,
    reads: bool,
    writes: bool,
}

/// What follows from a look.
fn judge(look: Look) -> Finding {
    match look {
        Look { stopping: true, .. } => Finding::Draining,
        Look { reads: false, .. } => Finding::StoreSilent,
        Look { writes: false, .. } => Finding::StoreReadOnly,
        Look { lease: false, .. } => Finding::NoLease,
        Look { .. } => Finding::Ready,
    }
}

/// The last thing known. It was ready when it started: its keys were proved against the store.
pub(crate) struct BrokerHealth(AtomicU8);

impl Default for BrokerHealth {
    fn default() -> Self {
        Self(AtomicU8::new(Finding::Ready as u8))
    }
}

impl BrokerHealth {
    /// The broker was told to stop: say so from now on.
    pub(crate) fn draining(&self) {
        self.keep(Finding::Draining);
    }

    fn found(&self) -> Finding {
        let kept = self.0.load(Ordering::Relaxed);
        Finding::ALL[usize::from(kept).min(Finding::ALL.len() - 1)]
    }

    fn keep(&self, found: Finding) {
        let before = self.found();
        if before == found || before == Finding::Draining {
            return;
        }
        self.0.store(found as u8, Ordering::Relaxed);
        ready_is(found == Finding::Ready);
        match found {
            Finding::Ready => tracing::info!("ready again"),
            Finding::Draining => tracing::info!("no longer ready: stopping"),
            Finding::NoLease | Finding::StoreSilent | Finding::StoreReadOnly => {
                tracing::warn!(reason = found.sentence().trim_end(), "not ready");
            }
        }
    }
}

impl Health for BrokerHealth {
    fn alive(&self) -> &'static str {
        "The broker lives.\n"
    }

    fn readiness(&self) -> Readiness {
        let found = self.found();
        Readiness {
            ready: found == Finding::Ready,
            sentence: found.sentence(),
        }
    }
}

/// What the loop looks at.
pub(crate) struct Watched {
    pub health: Arc<BrokerHealth>,
    pub store: Arc<MeteredStore>,
    pub engine: Engine,
    /// A document that is there, to be read.
    pub canary: Key,
    /// One that may be written while writes fail, to see whether they still do.
    pub probe: Key,
}

/// Looks again and again, until the engine is told to stop.
pub(crate) async fn watch(watched: Watched) {
    ready_is(true);
    let mut counted: Option<Instant> = None;
    loop {
        let look = watched.look().await;
        watched.health.keep(judge(look));
        if look.stopping {
            return;
        }
        if counted.is_none_or(|at| at.elapsed() >= COUNT_EVERY) && look.reads {
            watched.count().await;
            counted = Some(Instant::now());
        }
        // Lets go of the store at once: whoever stopped the broker may want to open it again.
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = watched.engine.stopping() => {}
        }
    }
}

impl Watched {
    async fn look(&self) -> Look {
        let read = timeout(ANSWER_WITHIN, self.store.get(&self.canary)).await;
        let reads = matches!(read, Ok(Ok(_)));
        let writes = !self.store.last_write_failed() || self.write().await;
        Look {
            stopping: self.engine.is_stopping(),
            lease: self.engine.holds_lease(),
            reads,
            writes,
        }
    }

    /// Only while writes fail: one more, of a few bytes.
    async fn write(&self) -> bool {
        let commit = match self.store.get(&self.probe).await {
            Ok(None) => Commit::new().insert(self.probe.clone(), Vec::new(), Bytes::new()),
            Ok(Some(there)) => {
                Commit::new().replace(self.probe.clone(), there.version, Vec::new(), Bytes::new())
            }
            Err(_) => return false,
        };
        let _ = timeout(ANSWER_WITHIN, self.store.commit(&commit)).await;
        !self.store.last_write_failed()
    }

    async fn count(&self) {
        match timeout(ANSWER_WITHIN, self.store.stats()).await {
            Ok(Ok(stats)) => metrics::queues_stand(&stats, self.oldest(&stats).await),
            Ok(Err(error)) => tracing::debug!(%error, "the queues could not be counted"),
            Err(_) => tracing::debug!("the queues could not be counted in time"),
        }
    }

    /// The age of the oldest operation that is not done.
    async fn oldest(&self, stats: &sutler_journal::Stats) -> Duration {
        let Some(oldest) = stats.queues.iter().map(|queue| queue.oldest).min() else {
            return Duration::ZERO;
        };
        match self.store.now().await {
            Ok(now) => now.since(oldest),
            Err(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BrokerHealth, Finding, Look, judge};
    use sutler_server::Health as _;

    const WELL: Look = Look {
        stopping: false,
        lease: true,
        reads: true,
        writes: true,
    };

    #[test]
    fn ready_means_that_the_store_answers_the_lease_holds_and_nothing_stops() {
        let cases = [
            (WELL, Finding::Ready),
            (
                Look {
                    stopping: true,
                    reads: false,
                    ..WELL
                },
                Finding::Draining,
            ),
            (
                Look {
                    lease: false,
                    ..WELL
                },
                Finding::NoLease,
            ),
            (
                Look {
                    reads: false,
                    lease: false,
                    ..WELL
                },
                Finding::StoreSilent,
            ),
            (
                Look {
                    writes: false,
                    ..WELL
                },
                Finding::StoreReadOnly,
            ),
        ];
        for (look, expected) in cases {
            assert_eq!(judge(look), expected, "{look:?}");
        }
    }

    #[test]
    fn a_broker_that_stops_is_not_ready_again() {
        let health = BrokerHealth::default();
        assert!(health.readiness().ready);
        health.draining();
        health.keep(Finding::Ready);
        assert!(!health.readiness().ready);
    }
}
