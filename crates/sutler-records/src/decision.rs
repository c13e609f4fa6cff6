//! The result of a pure rule: next state, effects and reply. Generic over the crate above.
//!
//! A rule has no clock, no randomness and no I/O. `commit.rs` turns a [`Decision`] into one commit;
//! what a verb or a reply means is not known here.

use sutler_journal::OperationId;

/// Change of an operation, written in the same commit as the new state. `V`: the verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<V> {
    /// Adds an operation that a worker may claim.
    Start(V, OperationId),
    /// Adds an operation that waits for another to end.
    StartWaiting(V, OperationId),
    /// Cancels an operation, and wakes it if it waits for its next attempt.
    Cancel(OperationId),
    /// Wakes an operation that waits for another one or for its next attempt.
    Wake(OperationId),
    /// Ends an operation as failed without waiting for its run.
    End(OperationId),
}

/// The meaning of one event for one resource. `S`: the states, `V`: the verbs, `R`: the replies.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<S, V, R> {
    /// State to store.
    pub next: S,
    /// Changes of operations to write with it.
    pub effects: Vec<Effect<V>>,
    /// Reply to the caller.
    pub reply: R,
}

impl<S, V, R> Decision<S, V, R> {
    /// Stores a state and touches no operation.
    pub fn stay(state: S, reply: R) -> Self {
        Self {
            next: state,
            effects: Vec::new(),
            reply,
        }
    }

    /// Stores a state and starts one operation.
    pub fn start(next: S, verb: V, operation: OperationId, reply: R) -> Self {
        Self {
            next,
            effects: vec![Effect::Start(verb, operation)],
            reply,
        }
    }
}

/// End of a run as the rules see it. `T`: the output of a run that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub enum End<T> {
    /// It did what was requested.
    Succeeded(T),
    /// It failed; something may be left behind.
    Failed,
    /// It refused before it created anything.
    Refused,
}
