//! Events in the log that all replicas share: one line of JSON each.
//!
//! A line is one append, so the order of `Ran` lines is the order of external effects. All
//! other lines come after their event, by any delay: their check (`chaos/executions.rs`)
//! relies on numbers, not on positions.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Process: a replica and the number of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReplicaBoot {
    /// Replica.
    pub replica: usize,
    /// Number of its start.
    pub boot: u64,
}

/// One event of a replica. Times are microseconds of the machine's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum ReplicaEvent {
    /// The store returned an operation from a claim.
    Claimed {
        /// Operation.
        operation: String,
        /// Fencing number of the claim.
        fence: u64,
        /// Time of the response.
        at: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// A step had its external effect.
    Ran {
        /// Operation.
        operation: String,
        /// Lane: an instance, or a binding of it.
        lane: String,
        /// Verb.
        verb: String,
        /// Step, from 1.
        step: u32,
        /// Attempt.
        attempt: u32,
        /// Fencing number of the claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has stored the memo of a step.
    Kept {
        /// Operation.
        operation: String,
        /// Step.
        step: u32,
        /// Fencing number of the claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has applied a write under a claim.
    Wrote {
        /// Operation.
        operation: String,
        /// Fencing number of the claim.
        fence: u64,
        /// Time of the first attempt.
        began: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has taken an operation back that its holder released before its end.
    Released {
        /// Operation.
        operation: String,
        /// Fencing number of the claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has stored the end of an operation.
    Ended {
        /// Operation.
        operation: String,
        /// Commit.
        commit: String,
        /// Fencing number of the claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
}

/// The current time, in microseconds of the machine's clock, which all processes share.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}
