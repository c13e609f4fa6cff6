//! The rules, as pure functions: no clock, no randomness, no I/O.
//!
//! `instance.rs` and `binding.rs` each decide what one event means for one resource. Their specification is
//! written by hand in `tests/transitions/*.txt`; commands of operators are in `admin_command.rs`. Reading and
//! committing around them is done by `requests.rs` for requests and by `executor.rs` for results.

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

/// Asynchrony of one request: what the platform accepts and what the plan requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncRequest {
    /// Id of the operation that the request starts, if it starts one.
    pub operation: OperationId,
    /// Whether the platform sent `accepts_incomplete=true`.
    pub accepts_incomplete: bool,
    /// Asynchrony of the plan for this verb.
    pub rule: Asynchrony,
}

/// How the request that starts an operation is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    /// 202, and the platform polls.
    Background,
    /// The request waits for the result.
    Inline,
}

impl AsyncRequest {
    /// Chooses the response mode, or refuses with `AsyncRequired` (B-082, B-083, B-084, B-085).
    pub(crate) fn response_mode(&self) -> Result<ResponseMode, Refusal> {
        match (self.rule, self.accepts_incomplete) {
            (Asynchrony::Never, _) | (Asynchrony::Preferred, false) => Ok(ResponseMode::Inline),
            (Asynchrony::Preferred | Asynchrony::Required, true) => Ok(ResponseMode::Background),
            (Asynchrony::Required, false) => Err(Refusal::AsyncRequired),
        }
    }

    /// Reply to a repeat of a request whose operation runs: never 202 without `accepts_incomplete`.
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

/// Reply to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An operation was started.
    Started(OperationId, ResponseMode),
    /// An earlier, identical request still runs.
    Joined(OperationId),
    /// The resource is already in the requested state.
    AlreadyDone,
    /// No caller waits for a reply.
    Nothing,
}

/// Stores a state and starts one operation.
fn started<S>(next: S, verb: Verb, operation: OperationId, mode: ResponseMode) -> Decision<S> {
    Decision::start(next, verb, operation, Reply::Started(operation, mode))
}

/// State that an author keeps with an instance or a binding. May hold secrets, so `Debug` prints nothing of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuthorState(pub Value);

impl fmt::Debug for AuthorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Reads a state that is present, even if it is `null`: an author may have nothing to remember, which
/// differs from having no state.
fn state_there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<AuthorState>, D::Error> {
    AuthorState::deserialize(from).map(Some)
}
