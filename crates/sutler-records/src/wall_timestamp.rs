//! The time of day as a timestamp, by the clock that a simulation replaces.

use jiff::{SignedDuration, Timestamp};
use sutler_journal::wall_clock;

/// Time of day. For schedules of operators and for what they are shown.
#[must_use]
pub fn wall_timestamp() -> Timestamp {
    let now = SignedDuration::try_from(wall_clock()).unwrap_or(SignedDuration::MAX);
    Timestamp::from_duration(now).unwrap_or(Timestamp::MAX)
}
