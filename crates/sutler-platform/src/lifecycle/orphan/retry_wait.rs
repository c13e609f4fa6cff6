//! How often a DELETE of an orphan is tried, and when again. Pure: the moment is passed in.
//!
//! A *try* failed although the broker was reached. A *wait* is an answer that asks to come later; it uses up no try. If the
//! broker was not reached or refuses the credentials, nothing is counted: the breaker watches that.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sutler_client::RetryAfter;

/// Tries of a round, as Cloud Foundry has them.
pub const TRIES_MAX: u32 = 11;
/// Waits of a round: with the pauses between them about a week.
pub const WAITS_MAX: u32 = 168;
/// Longest `Retry-After` of a broker that is honoured.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

const MINUTE: Duration = Duration::from_secs(60);
/// Longest pause after a wait, unless the broker asks for a longer one.
const WAIT_PAUSE_MAX: Duration = Duration::from_secs(60 * 60);
/// Pause if the broker was not reached: the longest one between two probes of an open breaker.
pub(super) const UNREACHED_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Tries and waits since an orphan was found, or since a person asked for another round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteRound {
    /// DELETEs that failed; at most [`TRIES_MAX`].
    pub tries: u32,
    /// Answers that asked to come later; at most [`WAITS_MAX`].
    pub waits: u32,
}

impl DeleteRound {
    /// Counts a try. The pause before the next one, or `None` if there is none.
    pub(super) fn count_try(&mut self) -> Option<Duration> {
        self.tries = self.tries.saturating_add(1).min(TRIES_MAX);
        (self.tries < TRIES_MAX).then(|| doubled_minutes(self.tries))
    }

    /// Counts a wait. The pause before the next DELETE, or `None` if there is none.
    pub(super) fn count_wait(&mut self) -> Option<Duration> {
        self.waits = self.waits.saturating_add(1).min(WAITS_MAX);
        (self.waits < WAITS_MAX).then(|| doubled_minutes(self.waits).min(WAIT_PAUSE_MAX))
    }
}

/// The pause, or longer if the broker asks for that. It cannot ask for less: nothing about an orphan is urgent.
pub(super) fn honoured(pause: Duration, after: Option<RetryAfter>, now: Timestamp) -> Duration {
    let asked = after.map_or(Duration::ZERO, |after| after.from_now(now.into()));
    pause.max(asked.min(RETRY_AFTER_MAX))
}

/// The moment after a pause.
pub(super) fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// The pause until a moment; none if it has passed.
pub(super) fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(at)).unwrap_or_default()
}

fn doubled_minutes(exponent: u32) -> Duration {
    MINUTE.saturating_mul(2_u32.saturating_pow(exponent))
}
