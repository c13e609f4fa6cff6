//! Readiness of the broker, for `/healthz` and `/readyz`.
//!
//! A loop checks the store and the lease once a second and stores the result; a probe only reads it, so that
//! probes put no load on the store. The same loop samples the queues for `metrics.rs`. The paths are in
//! `sutler_server::Probes`.

use crate::metrics;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use sutler_journal::{Commit, Engine, Key, MeteredStore, Store};
use sutler_records::StoreClock;
use sutler_server::metrics::ready_is;
use sutler_server::{Health, Readiness};
use tokio::time::{Instant, timeout};

/// Interval between checks of the store and the lease.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the broker is not ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Interval between readings of the store's clock.
const CLOCK_EVERY: Duration = Duration::from_secs(5);
/// Least wait between counts of the queues, which visit every unfinished operation.
const COUNT_EVERY: Duration = Duration::from_secs(5);
/// Counts take at most this part of the time.
const COUNT_SHARE: u32 = 100;

/// State of the broker at the last check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum BrokerState {
    Ready,
    Draining,
    NoLease,
    StoreSilent,
    StoreReadOnly,
}

impl BrokerState {
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

/// Result of one check.
#[derive(Clone, Copy, Debug)]
struct HealthSample {
    stopping: bool,
    lease: bool,
    reads: bool,
    writes: bool,
}

/// The state that follows from a check.
fn state_of(sample: HealthSample) -> BrokerState {
    match sample {
        HealthSample { stopping: true, .. } => BrokerState::Draining,
        HealthSample { reads: false, .. } => BrokerState::StoreSilent,
        HealthSample { writes: false, .. } => BrokerState::StoreReadOnly,
        HealthSample { lease: false, .. } => BrokerState::NoLease,
        HealthSample { .. } => BrokerState::Ready,
    }
}

/// Last known state. A broker starts ready: its keys were verified against the store.
pub(crate) struct BrokerHealth(AtomicU8);

impl Default for BrokerHealth {
    fn default() -> Self {
        Self(AtomicU8::new(BrokerState::Ready as u8))
    }
}

impl BrokerHealth {
    /// The broker begins to drain. It is not ready again.
    pub(crate) fn draining(&self) {
        self.set_state(BrokerState::Draining);
    }

    fn state(&self) -> BrokerState {
        let kept = self.0.load(Ordering::Relaxed);
        BrokerState::ALL[usize::from(kept).min(BrokerState::ALL.len() - 1)]
    }

    fn set_state(&self, state: BrokerState) {
        let before = self.state();
        if before == state || before == BrokerState::Draining {
            return;
        }
        self.0.store(state as u8, Ordering::Relaxed);
        ready_is(state == BrokerState::Ready);
        match state {
            BrokerState::Ready => tracing::info!("ready again"),
            BrokerState::Draining => tracing::info!("no longer ready: stopping"),
            BrokerState::NoLease | BrokerState::StoreSilent | BrokerState::StoreReadOnly => {
                tracing::warn!(reason = state.sentence().trim_end(), "not ready");
            }
        }
    }
}

impl Health for BrokerHealth {
    fn alive(&self) -> &'static str {
        "The broker lives.\n"
    }

    fn readiness(&self) -> Readiness {
        let state = self.state();
        Readiness {
            ready: state == BrokerState::Ready,
            sentence: state.sentence(),
        }
    }
}

/// Inputs of the check loop.
pub(crate) struct HealthWatch {
    pub health: Arc<BrokerHealth>,
    pub store: Arc<MeteredStore>,
    pub engine: Engine,
    /// A document that exists, to test reads.
    pub read_probe: Key,
    /// A document to test writes with, while writes fail.
    pub probe: Key,
    /// Clock of the store, as this process shows it.
    pub clock: Arc<StoreClock>,
}

/// Checks at every interval until the engine stops.
pub(crate) async fn watch(watch_inputs: HealthWatch) {
    ready_is(true);
    let mut read_clock = Instant::now();
    let mut count = read_clock;
    loop {
        let sample = watch_inputs.sample().await;
        watch_inputs.health.set_state(state_of(sample));
        if sample.stopping {
            return;
        }
        if sample.reads && Instant::now() >= read_clock {
            watch_inputs.read_clock().await;
            read_clock = Instant::now() + CLOCK_EVERY;
        }
        if sample.reads && Instant::now() >= count {
            let took = watch_inputs.count().await;
            count = Instant::now() + wait_after_count(took);
        }
        // Drops the store at once, so that it can be opened again after the broker has stopped.
        tokio::select! {
            biased;
            () = tokio::time::sleep(CHECK_EVERY) => {}
            () = watch_inputs.engine.stopping() => {}
        }
    }
}

/// How long to wait after a count that took so long.
fn wait_after_count(took: Duration) -> Duration {
    COUNT_EVERY.max(took.saturating_mul(COUNT_SHARE - 1))
}

impl HealthWatch {
    async fn sample(&self) -> HealthSample {
        let read = timeout(ANSWER_WITHIN, self.store.get(&self.read_probe)).await;
        let reads = matches!(read, Ok(Ok(_)));
        let writes = !self.store.last_write_failed() || self.write().await;
        HealthSample {
            stopping: self.engine.is_stopping(),
            lease: self.engine.holds_lease(),
            reads,
            writes,
        }
    }

    /// Tests a write of a few bytes; called only while writes fail.
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

    /// Reads the store's clock again: the monotonic clock may have stopped while the machine was suspended.
    async fn read_clock(&self) {
        if let Ok(Ok(now)) = timeout(ANSWER_WITHIN, self.store.now()).await {
            self.clock.set(now);
        }
    }

    /// Counts the queues. Returns how long the store took for it, or how long it was waited for.
    async fn count(&self) -> Duration {
        let begun = Instant::now();
        let counted = timeout(ANSWER_WITHIN, self.store.stats()).await;
        let took = begun.elapsed();
        match counted {
            Ok(Ok(stats)) => metrics::set_queue_gauges(&stats, self.oldest(&stats).await),
            Ok(Err(error)) => tracing::debug!(%error, "the queues could not be counted"),
            Err(_) => tracing::debug!("the queues could not be counted in time"),
        }
        took
    }

    /// Age of the oldest unfinished operation.
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
    use super::{
        ANSWER_WITHIN, BrokerHealth, BrokerState, COUNT_EVERY, HealthSample, state_of,
        wait_after_count,
    };
    use std::time::Duration;
    use sutler_server::Health as _;

    const WELL: HealthSample = HealthSample {
        stopping: false,
        lease: true,
        reads: true,
        writes: true,
    };

    #[test]
    fn ready_means_that_the_store_answers_the_lease_holds_and_nothing_stops() {
        let cases = [
            (WELL, BrokerState::Ready),
            (
                HealthSample {
                    stopping: true,
                    reads: false,
                    ..WELL
                },
                BrokerState::Draining,
            ),
            (
                HealthSample {
                    lease: false,
                    ..WELL
                },
                BrokerState::NoLease,
            ),
            (
                HealthSample {
                    reads: false,
                    lease: false,
                    ..WELL
                },
                BrokerState::StoreSilent,
            ),
            (
                HealthSample {
                    writes: false,
                    ..WELL
                },
                BrokerState::StoreReadOnly,
            ),
        ];
        for (sample, expected) in cases {
            assert_eq!(state_of(sample), expected, "{sample:?}");
        }
    }

    #[test]
    fn counting_takes_at_most_a_hundredth_of_the_time() {
        let (shortest, longest) = (Duration::from_micros(1), ANSWER_WITHIN);
        for took in [shortest, COUNT_EVERY / 99, COUNT_EVERY / 50, longest] {
            let wait = wait_after_count(took);
            assert!(wait >= COUNT_EVERY && took * 100 <= took + wait, "{took:?}");
        }
        assert_eq!(wait_after_count(COUNT_EVERY / 99), COUNT_EVERY);
        assert_eq!(wait_after_count(longest), Duration::from_secs(198));
    }

    #[test]
    fn a_broker_that_stops_is_not_ready_again() {
        let health = BrokerHealth::default();
        assert!(health.readiness().ready);
        health.draining();
        health.set_state(BrokerState::Ready);
        assert!(!health.readiness().ready);
    }
}
