//! What a replica counts about a broker by itself: exchanges in a row without an answer. Not stored.
//!
//! It only proposes; the document that all replicas share is changed by `decide.rs`.

use crate::lifecycle::breaker::{ExchangeOutcome, OpenCause};
use jiff::Timestamp;

/// Exchanges in a row without an answer that open the breaker.
pub const UNANSWERED_MAX: u32 = 5;

/// Counts the exchanges of one replica with one broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalCount {
    unanswered: u32,
    /// Exchanges that began earlier count no more: they hung while the breaker was open.
    counted_from: Option<Timestamp>,
}

impl LocalCount {
    /// Counts an exchange that began at `begun`. Returns the cause to open the breaker, if there is one: with the fifth
    /// exchange and each further one, so that a proposal that was not committed is made again.
    pub fn count(&mut self, begun: Timestamp, outcome: ExchangeOutcome) -> Option<OpenCause> {
        if self.counted_from.is_some_and(|from| begun < from) {
            return None;
        }
        match outcome {
            ExchangeOutcome::Unanswered => {
                self.unanswered = self.unanswered.saturating_add(1);
                (self.unanswered >= UNANSWERED_MAX).then_some(OpenCause::Silence)
            }
            ExchangeOutcome::Unauthorized => {
                self.unanswered = 0;
                Some(OpenCause::Unauthorized)
            }
            ExchangeOutcome::NotTried => None,
            ExchangeOutcome::Answered | ExchangeOutcome::Overloaded => {
                self.unanswered = 0;
                None
            }
        }
    }

    /// Begins anew: the replica saw the breaker close, or new credentials.
    pub fn restart(&mut self, now: Timestamp) {
        *self = Self {
            unanswered: 0,
            counted_from: Some(now),
        };
    }
}
