//! Time of a store.
//!
//! Lease expiry and due times use the *store's* clock: callers pass durations ("in 5 s"), never moments.
//! Servers use their own clock; the embedded stores take a [`Clock`], which tests move by hand.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment on a store's clock: microseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreTime(pub i64);

impl StoreTime {
    /// Adds a duration.
    #[must_use]
    pub fn plus(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Subtracts a duration.
    #[must_use]
    pub fn minus(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Duration since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Clock of an embedded store. Never goes back while the process runs.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> StoreTime;
}

/// The wall clock at start plus the monotonic clock since then: a jump of the wall clock ends no lease early.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    at: StoreTime,
}

impl Default for SystemClock {
    fn default() -> Self {
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            at: StoreTime::default().plus(at),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> StoreTime {
        self.at.plus(self.started.elapsed())
    }
}

/// A clock that moves only by [`ManualClock::advance`].
#[derive(Debug)]
pub struct ManualClock(Mutex<StoreTime>);

impl Default for ManualClock {
    fn default() -> Self {
        Self(Mutex::new(StoreTime(1_700_000_000_000_000)))
    }
}

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = now.plus(by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> StoreTime {
        *self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
