//! A clock that runs several times as fast as the machine's, so that a wait of a minute takes a second.
//!
//! All starts of a victim on one file share the moment from which it runs fast, so time never goes back there.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_journal::{Clock, StoreTime};

/// The clock.
#[derive(Clone, Copy, Debug)]
pub struct FastClock {
    /// The machine's time from which it runs fast, in microseconds since 1970.
    pub from_us: u64,
    /// How many times as fast.
    pub speed: u32,
}

impl FastClock {
    /// A clock that runs fast from now on.
    pub fn from_now(speed: u32) -> Self {
        Self {
            from_us: machine_time_us(),
            speed,
        }
    }
}

impl Clock for FastClock {
    fn now(&self) -> StoreTime {
        let elapsed = Duration::from_micros(machine_time_us().saturating_sub(self.from_us));
        let from = StoreTime(i64::try_from(self.from_us).unwrap_or(i64::MAX));
        from.plus(elapsed * self.speed)
    }
}

fn machine_time_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}
