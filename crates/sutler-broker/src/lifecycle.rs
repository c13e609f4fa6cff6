//! The rules, as pure functions: no clock, no randomness, no I/O.
//!
//! `instance.rs` and `binding.rs` each decide what one event means for one resource. What they are
//! held to is written by hand in `tests/transitions/*.txt`; what operators order is in `admin_command.rs`. Who
//! reads, asks and commits around them: `requests.rs` for requests, `executor.rs` for results.

pub(crate) mod admin_command;
pub(crate) mod binding;
pub(crate) mod instance;
#[cfg(test)]
mod tests;

use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use sutler_journal::OperationId;
pub(crate) use sutler_osb::OperationKind as Verb;
pub(crate) use sutler_records::End;

/// Whether a verb of a plan works asynchronously.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asynchrony {
    /// Always at once; `accepts_incomplete` is ignored.
    Never,
    /// Asynchronously where the platform accepts it.
    #[default]
    Preferred,
    /// Only asynchronously.
    Required,
}

/// How a change is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncRequest {
    /// The id a new operation would have.
    pub operation: OperationId,
    /// Whether the platform sent `accepts_incomplete=true`.
    pub accepts_incomplete: bool,
    /// What the plan says.
    pub rule: Asynchrony,
}

/// How an operation that starts now is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    /// 202, and the platform polls.
    Background,
    /// The request waits for the result.
    Inline,
}

impl AsyncRequest {
    /// How to answer, or that it cannot be (B-082, B-083, B-084, B-085).
    pub(crate) fn response_mode(&self) -> Result<ResponseMode, Refusal> {
        match (self.rule, self.accepts_incomplete) {
            (Asynchrony::Never, _) | (Asynchrony::Preferred, false) => Ok(ResponseMode::Inline),
            (Asynchrony::Preferred | Asynchrony::Required, true) => Ok(ResponseMode::Background),
            (Asynchrony::Required, false) => Err(Refusal::AsyncRequired),
        }
    }

    /// How to answer one who asks for what already runs: never 202 without `accepts_incomplete`.
    fn join(&self, operation: OperationId) -> Result<Reply, Refusal> {
        if self.rule == Asynchrony::Required {
            self.response_mode()?;
        }
        Ok(Reply::Joined(operation))
    }
}

/// Change of an operation that is written in the same commit as the new state.
pub(crate) type Effect = sutler_records::Effect<Verb>;

/// Meaning of one event for one resource.
pub(crate) type Decision<S> = sutler_records::Decision<S, Verb, Reply>;

/// What to tell the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An operation was started.
    Started(OperationId, ResponseMode),
    /// The same was asked before and still runs.
    Joined(OperationId),
    /// It is already so.
    AlreadyDone,
    /// Nobody waits for an answer.
    Nothing,
}

/// Stores a state and starts one operation.
fn started<S>(next: S, verb: Verb, operation: OperationId, mode: ResponseMode) -> Decision<S> {
    Decision::start(next, verb, operation, Reply::Started(operation, mode))
}

/// What an author keeps with an instance or a binding. May hold secrets, so it never prints itself.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuthorState(pub Value);

impl fmt::Debug for AuthorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Reads a state that is there, though it be `null`: an author may have nothing to remember, and
/// that is not the same as no state.
fn state_there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<AuthorState>, D::Error> {
    AuthorState::deserialize(from).map(Some)
}
