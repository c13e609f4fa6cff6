//! Operation: one change of one lane, with its request, state and outcome.
//!
//! The request never changes. The row is small and is all that a poll reads. Progress (step memos,
//! sent requests, poll keys) is written while the operation runs. Not here: writes
//! (`commit.rs`) and execution (`engine/`).

use crate::clock::StoreTime;
use crate::commit::NewOperation;
use crate::key::Key;
use crate::nondeterminism::fresh_id;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use uuid::Uuid;

/// Id of an operation. Sorted by time of acceptance; printed in unreserved characters only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(pub Uuid);

impl OperationId {
    /// A fresh id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(fresh_id())
    }

    /// Parses the output of `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        // We never issue other spellings of a UUID (braces, upper case).
        let id = Uuid::try_parse(text).ok().map(Self)?;
        (text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase())).then_some(id)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_hyphenated())
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Id of one incarnation of a worker; a worker that lost its lease takes a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub Uuid);

impl WorkerId {
    /// A fresh id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(fresh_id())
    }
}

/// Fencing token: increases with every claim and guards every write of the claiming worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// Queue in which an operation waits for a worker; claims are limited per queue. At most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue(Cow<'static, str>);

impl Queue {
    /// A queue with a name fixed at compile time.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A queue of a broker, a host …; truncated to 128 bytes at a character boundary.
    pub fn of(name: impl Into<String>) -> Self {
        let mut name = name.into();
        name.truncate(name.floor_char_boundary(128));
        Self(Cow::Owned(name))
    }

    /// Name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Coarse state of an operation; the crate above stores finer states in its own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for another operation; cannot be claimed.
    Waiting,
    /// Waits for a worker, claimable from its due time on.
    Ready,
    /// Claimed by a worker. If the worker's lease expires, any worker may claim it.
    Running,
    /// It ended, and never changes again.
    Done(Outcome),
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The request was fulfilled.
    Succeeded,
    /// The request was not fulfilled.
    Failed,
    /// A later request stopped it.
    Cancelled,
}

/// The small part of an operation: all that lists and polls need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRow {
    /// Id.
    pub id: OperationId,
    /// The resource it changes.
    pub lane: Key,
    /// Verb: `provision`, `unbind` …; for lists and counts.
    pub verb: Cow<'static, str>,
    /// Queue in which it waits.
    pub queue: Queue,
    /// State.
    pub state: State,
    /// Not claimable before this moment.
    pub due: StoreTime,
    /// Number of claims so far.
    pub fence: Fence,
    /// Number of the attempt, from 1; increases only when the previous attempt is known to have ended.
    pub attempt: u32,
    /// Number of claims from dead workers since its last progress.
    pub takeovers: u32,
    /// Cancellation was requested.
    pub cancel: bool,
    /// A document points to it, so sweeps leave it.
    pub pinned: bool,
    /// Time of acceptance.
    pub accepted: StoreTime,
    /// Time of its end.
    pub finished: Option<StoreTime>,
    /// Sealed detail that a poll returns.
    pub detail: Bytes,
}

/// The part of an operation that a poll reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolledOperation {
    /// State.
    pub state: State,
    /// Verb: `provision`, `unbind` …
    pub verb: Cow<'static, str>,
    /// Sealed detail that a poll returns.
    pub detail: Bytes,
}

/// A whole operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The small part.
    pub row: OperationRow,
    /// Sealed request: input, caller, and the state it is based on.
    pub request: Bytes,
    /// Sealed memos and other data for later attempts. Empty at first.
    pub progress: Bytes,
}

impl Operation {
    /// The operation as a commit with `Start::Claimed` has just created it for its worker. The time of
    /// acceptance is set by the store and zero here.
    pub fn just_claimed(new: &NewOperation) -> Self {
        let row = OperationRow {
            state: State::Running,
            fence: Fence(1),
            ..OperationRow::start(new, StoreTime::default())
        };
        Self {
            row,
            request: new.request.clone(),
            progress: Bytes::new(),
        }
    }
}
