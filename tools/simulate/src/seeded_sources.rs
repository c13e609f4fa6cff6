//! Everything random or timed in a simulated run, drawn from its seed: random numbers, ids, the time of day of
//! the processes, the clock of the store, and delays of tasks.
//!
//! The store's clock drifts against the processes' and may jump forward. Each reading of the time of
//! day is off by up to the skew of the seed, which covers replicas that disagree.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{Clock, NondeterminismSource, StoreTime, simulate};
use sutler_servers::SeededRng;
use tokio::time::Instant;
use uuid::Uuid;

/// Time of day at the start: any fixed moment will do.
const START: Duration = Duration::from_secs(1_700_000_000);

/// A generator that all parts of a run share.
#[derive(Clone)]
pub(crate) struct SharedRng(Arc<Mutex<SeededRng>>);

impl SharedRng {
    pub(crate) fn new(rng: SeededRng) -> Self {
        Self(Arc::new(Mutex::new(rng)))
    }

    fn rng(&self) -> MutexGuard<'_, SeededRng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.rng().below(bound.max(1))
    }

    pub(crate) fn index(&self, length: usize) -> usize {
        self.rng().index(length)
    }

    /// True in this many of a hundred cases.
    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&self, from: &[T]) -> T {
        *self.rng().pick(from)
    }

    /// A time in a range, in microseconds; short times are as likely as long ones.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> Duration {
        let span = u64::try_from(to.saturating_sub(from).as_micros()).unwrap_or(u64::MAX);
        from + Duration::from_micros(self.below(span.saturating_add(1)))
    }
}

/// Clock of the simulated store.
pub(crate) struct SimulatedStoreClock {
    began: Instant,
    /// Parts per thousand by which it is too fast or too slow.
    drift: i64,
    jumped: Mutex<Duration>,
}

impl SimulatedStoreClock {
    pub(crate) fn new(drift: i64) -> Self {
        Self {
            began: Instant::now(),
            drift,
            jumped: Mutex::default(),
        }
    }

    /// Moves the clock forward at once.
    pub(crate) fn jump(&self, by: Duration) {
        *self.jumped.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for SimulatedStoreClock {
    fn now(&self) -> StoreTime {
        let passed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let drifted = passed + passed / 1000 * self.drift;
        let jumped = *self.jumped.lock().unwrap_or_else(PoisonError::into_inner);
        StoreTime::default()
            .plus(START)
            .plus(Duration::from_micros(u64::try_from(drifted).unwrap_or(0)))
            .plus(jumped)
    }
}

/// Ids, time of day and task delays of the simulated processes.
pub(crate) struct SimulatedProcesses {
    began: Instant,
    choices: SharedRng,
    skew: Duration,
    /// Percentage of polls of engine tasks that are delayed.
    delayed_polls: u64,
    issued: Mutex<u64>,
}

impl SimulatedProcesses {
    /// Replaces the sources of this thread until the guard is dropped.
    pub(crate) fn install(
        choices: SharedRng,
        skew: Duration,
        delayed_polls: u64,
    ) -> SimulationGuard {
        simulate(Some(Rc::new(Self {
            began: Instant::now(),
            choices,
            skew,
            delayed_polls,
            issued: Mutex::default(),
        })));
        SimulationGuard
    }
}

/// Restores the system's sources when dropped.
pub(crate) struct SimulationGuard;

impl Drop for SimulationGuard {
    fn drop(&mut self) {
        simulate(None);
    }
}

impl NondeterminismSource for SimulatedProcesses {
    fn fresh_id(&self) -> Uuid {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        *issued += 1;
        let at = START + self.began.elapsed();
        let milliseconds = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        let mut random = [0; 10];
        random[2..].copy_from_slice(&issued.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid()
    }

    fn wall_clock(&self) -> Duration {
        let at = START + self.began.elapsed();
        at.saturating_sub(self.skew) + self.choices.between(Duration::ZERO, self.skew * 2)
    }

    fn poll_delay(&self) -> Option<Duration> {
        let delayed = self.choices.percent(self.delayed_polls);
        delayed.then(|| {
            self.choices
                .between(Duration::from_micros(100), Duration::from_millis(60))
        })
    }
}
