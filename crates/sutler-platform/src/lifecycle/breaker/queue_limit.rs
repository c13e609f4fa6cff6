//! How many requests a replica may have in flight to one broker while the breaker is closed. Pure, not stored.
//!
//! A soft limit: replicas do not agree on it, they share it by their number. The exact one is the broker's 429.

use crate::lifecycle::breaker::ExchangeOutcome;
use jiff::Timestamp;
use std::num::NonZeroU32;
use std::time::Duration;

/// Requests in flight to a broker from all replicas, unless the broker's settings say otherwise.
pub const MAX_IN_FLIGHT: NonZeroU32 = NonZeroU32::MIN.saturating_add(31);
/// The limit is halved for so long after the broker said that it is too much.
pub const HALVED_FOR: Duration = Duration::from_secs(60);

/// The limit of one replica for one broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    max_in_flight: NonZeroU32,
    halved_until: Option<Timestamp>,
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::new(MAX_IN_FLIGHT)
    }
}

impl QueueLimit {
    /// With the limit of the broker's settings, for all replicas together.
    pub fn new(max_in_flight: NonZeroU32) -> Self {
        Self {
            max_in_flight,
            halved_until: None,
        }
    }

    /// Takes note of an exchange.
    pub fn count(&mut self, outcome: ExchangeOutcome, now: Timestamp) {
        match outcome {
            ExchangeOutcome::Overloaded => {
                let until = now.checked_add(HALVED_FOR).unwrap_or(Timestamp::MAX);
                self.halved_until = Some(until);
            }
            ExchangeOutcome::Answered
            | ExchangeOutcome::Unauthorized
            | ExchangeOutcome::NotTried
            | ExchangeOutcome::Unanswered => {}
        }
    }

    /// The limit now, if so many replicas live. At least 1: a broker is never cut off by it.
    pub fn at(&self, live_replicas: u32, now: Timestamp) -> NonZeroU32 {
        let share = self.max_in_flight.get().div_ceil(live_replicas.max(1));
        let limit = match self.halved_until(now) {
            Some(_) => share.div_ceil(2),
            None => share,
        };
        NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN)
    }

    /// Until when the limit is halved, if it is.
    pub fn halved_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.halved_until.filter(|until| now < *until)
    }
}
