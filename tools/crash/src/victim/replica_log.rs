//! Events in the log that all replicas share: one line of JSON each.
//!
//! A line is one append, so the order of `Ran` lines is the order in which the world saw steps. All
//! other lines come after what they tell of, by any time: whoever judges them (`chaos/executions.rs`)
//! relies on numbers, not on places.

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

/// One thing that a replica did. Moments are microseconds of the machine's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum ReplicaEvent {
    /// The store gave it an operation.
    Claimed {
        /// Operation.
        operation: String,
        /// Under which claim.
        fence: u64,
        /// When it knew.
        at: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// A step did its work in the world.
    Ran {
        /// Of which operation.
        operation: String,
        /// On which instance, or which binding of it.
        lane: String,
        /// Verb.
        verb: String,
        /// Step, from 1.
        step: u32,
        /// In which attempt.
        attempt: u32,
        /// Under which claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has taken the memo of a step that ran.
    Kept {
        /// Of which operation.
        operation: String,
        /// Step.
        step: u32,
        /// Under which claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has taken a write under a claim.
    Wrote {
        /// Of which operation.
        operation: String,
        /// Under which claim.
        fence: u64,
        /// When it was first tried.
        began: u64,
        /// Process.
        by: ReplicaBoot,
    },
    /// The store has taken the end of an operation.
    Ended {
        /// Of which operation.
        operation: String,
        /// By which commit.
        commit: String,
        /// Under which claim.
        fence: u64,
        /// Process.
        by: ReplicaBoot,
    },
}

/// Now, in microseconds of the machine's clock, which all processes share.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}
