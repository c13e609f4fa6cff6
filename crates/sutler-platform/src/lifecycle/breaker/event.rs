//! What can happen to a breaker, and what follows from it. Types only; `decide.rs` chooses.

use crate::author::Author;
use crate::lifecycle::breaker::{Breaker, OpenCause, ProbeResult};
use std::time::Duration;

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum BreakerEvent {
    /// A replica found a cause to open it, see [`LocalCount`](super::LocalCount).
    Trip(OpenCause),
    /// The operation of the probe is claimed.
    ProbeTurn,
    /// A probe has ended.
    Probed(ProbeResult),
    /// The credentials of the broker were replaced.
    NewCredentials,
    /// An operator asks for a probe now.
    Probe,
    /// An operator stops all requests.
    Pause(Author),
    /// An operator ends the pause.
    Resume,
}

/// What follows from a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEffect {
    /// Nothing of the broker's queue is claimed any more: here now, on other replicas when they see the document.
    CloseQueue,
    /// As much of the queue is claimed as the limit of the replica allows, see [`QueueLimit`](super::QueueLimit).
    OpenQueue,
    /// The operation of the probe begins, to be claimed after this time. It is not in the queue that is closed.
    StartProbe(Duration),
    /// The catalog is read with its ETag, without an originating identity.
    SendProbe,
    /// The operation of the probe is claimed again after this time.
    ProbeAfter(Duration),
    /// The operation of the probe ends.
    EndProbe,
    /// Operators are informed.
    Announce(BreakerNotice),
}

/// What operators are informed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerNotice {
    /// It opened, or it is open for another cause now.
    Open(OpenCause),
    /// A probe closed it.
    Closed,
    /// A person paused it.
    Paused,
    /// A person ended the pause. If it was open before, it still is.
    Resumed,
}

/// The next state, what follows from it, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerDecision {
    /// State to store.
    pub next: Breaker,
    /// To be carried out with or after its commit, in this order.
    pub effects: Vec<BreakerEffect>,
    /// Answer to the caller.
    pub reply: BreakerReply,
}

/// Answer to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerReply {
    /// The command takes effect.
    Accepted,
    /// Nothing is different.
    Unchanged,
    /// No caller waits.
    Nothing,
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakerEventError {
    /// A paused broker gets nothing, not even a probe.
    #[error("the broker is paused; resume it first")]
    Paused,
    /// The event does not belong to the present state: another replica was first, or an answer is late.
    #[error("the event does not belong to the present state")]
    OutOfDate,
}
