//! The circuit breaker of a broker: whether anything but probes is sent to it. Shared by all replicas, in one document.
//!
//! It opens if exchanges stay unanswered or the broker refuses the credentials, and closes when a probe, a read of the
//! catalog, is answered. An open breaker ends nothing (I-11): operations keep their state, and nothing of the broker's
//! queue is claimed. A person may pause a broker; then it gets no probe either.
//!
//! `event.rs` (what can happen, and what follows), `decide.rs` (which event leads where), `probe.rs` (what the answer to a
//! probe means, and when the next one is sent), `local_count.rs` (what a replica counts by itself), `queue_limit.rs` (how
//! much is sent while it is closed), `queue_share.rs` (how much of a replica one broker may occupy). The table is `tests/transitions/breaker.txt`.

mod decide;
mod event;
mod exchange_outcome;
mod local_count;
mod probe;
mod queue_limit;
mod queue_share;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use event::{
    BreakerDecision, BreakerEffect, BreakerEvent, BreakerEventError, BreakerNotice, BreakerReply,
};
pub use exchange_outcome::ExchangeOutcome;
pub use local_count::{LocalCount, UNANSWERED_MAX};
pub use probe::{PROBE_PAUSE_MAX, PROBE_PAUSE_MIN, ProbeResult, RELAPSE_WITHIN};
pub use queue_limit::{HALVED_FOR, MAX_IN_FLIGHT, QueueLimit};
pub use queue_share::{RUNS_MAX, queue_share};

use crate::author::Author;
use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// State of a broker's breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Breaker {
    /// Requests are sent.
    Closed {
        /// How it closed last, if it was ever open.
        recovery: Option<Recovery>,
    },
    /// Only probes are sent.
    Open(OpenBreaker),
    /// Nothing is sent.
    Paused {
        /// Since when.
        since: Timestamp,
        /// The person.
        by: Author,
        /// What it was, if it was open: it is probed when the pause ends.
        open: Option<OpenBreaker>,
    },
}

/// A breaker that is open. One probe is planned as long as it is not paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// Since when.
    pub since: Timestamp,
    /// Why, as the last probe showed it.
    pub cause: OpenCause,
    /// Probes that failed.
    pub failed_probes: u32,
    /// The next one is not sent before then.
    pub next_probe: Timestamp,
    /// Words of the broker, or of the fault, at the last probe.
    pub last: Option<BrokerStatement>,
}

/// How a breaker closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// When.
    pub at: Timestamp,
    /// Probes that had failed before. If it opens again soon, they are counted on.
    pub failed_probes: u32,
}

/// Why a breaker is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenCause {
    /// The broker did not answer several times in a row.
    Silence,
    /// The broker refuses the credentials (D-37).
    Unauthorized,
}

/// Why nothing is sent to a broker, for everything that waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendingStop {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub reason: StopReason,
}

/// Why nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The breaker is open.
    Open(OpenCause),
    /// This person paused it.
    Paused(Author),
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { recovery: None }
    }
}

impl Breaker {
    /// Why nothing is sent; `None` if requests are sent. Every replica that sees the document sets its queue by it.
    pub fn stop(&self) -> Option<SendingStop> {
        match self {
            Self::Closed { .. } => None,
            Self::Open(open) => Some(SendingStop {
                since: open.since,
                reason: StopReason::Open(open.cause),
            }),
            Self::Paused { since, by, .. } => Some(SendingStop {
                since: *since,
                reason: StopReason::Paused(by.clone()),
            }),
        }
    }
}
