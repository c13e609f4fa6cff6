//! One change of one lane: what was asked, how far it is, how it ended.
//!
//! The request never changes. The row is small and is all that a poll reads. Progress (step memos,
//! what was sent, poll keys) is written while the operation runs. Not here: how any of it is
//! written (`commit.rs`) or carried out (`engine/`).

use crate::clock::StoreTime;
use crate::commit::NewOperation;
use crate::key::Key;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use uuid::Uuid;

/// Names an operation. Sortable by time of acceptance; only unreserved characters when printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OperationId(pub Uuid);

impl OperationId {
    /// A fresh id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads back what `Display` printed.
    pub fn parse(text: &str) -> Option<Self> {
        // Other spellings of a UUID (braces, upper case) were never handed out by us.
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

/// Names one incarnation of one worker; a worker that lost its lease takes a new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub Uuid);

impl WorkerId {
    /// A fresh name.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }
}

/// Grows with every claim and guards every write of the claimant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// Where an operation waits for a worker; claims are limited per queue. At most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Queue(Cow<'static, str>);

impl Queue {
    /// A queue known at compile time.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A queue of a broker, a host …; cut to 128 bytes at a character.
    pub fn of(name: impl Into<String>) -> Self {
        let mut name = name.into();
        name.truncate(name.floor_char_boundary(128));
        Self(Cow::Owned(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How far an operation is, coarsely; the crate above keeps finer states in its own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// For another operation; it cannot be claimed.
    Waiting,
    /// For a worker, from its due time on.
    Ready,
    /// A worker has it. If that worker's lease runs out, anyone may claim it.
    Running,
    /// It ended, and never changes again.
    Done(Outcome),
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It did what was asked.
    Succeeded,
    /// It did not.
    Failed,
    /// It was stopped by a later request.
    Cancelled,
}

/// The small part of an operation: all that lists and polls need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRow {
    /// Its name.
    pub id: OperationId,
    /// The resource it changes.
    pub lane: Key,
    /// Verb: `provision`, `unbind` …; for lists and counts.
    pub verb: Cow<'static, str>,
    /// Where it waits.
    pub queue: Queue,
    /// How far it is.
    pub state: State,
    /// Not claimable before this moment.
    pub due: StoreTime,
    /// How often it was claimed.
    pub fence: Fence,
    /// Which attempt this is, from 1; grows only when the one before is known to have ended.
    pub attempt: u32,
    /// How often it was claimed from a dead worker since it last made progress.
    pub takeovers: u32,
    /// Cancellation was requested.
    pub cancel: bool,
    /// A document points to it, so sweeping leaves it.
    pub pinned: bool,
    /// When it was accepted.
    pub accepted: StoreTime,
    /// When it ended.
    pub finished: Option<StoreTime>,
    /// Sealed: what a poll answers.
    pub detail: Bytes,
}

/// The part of an operation that a poll reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolledOperation {
    /// How far it is.
    pub state: State,
    /// Verb: `provision`, `unbind` …
    pub verb: Cow<'static, str>,
    /// Sealed: what a poll answers.
    pub detail: Bytes,
}

/// A whole operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The small part.
    pub row: OperationRow,
    /// Sealed: what was asked, by whom, on top of what.
    pub request: Bytes,
    /// Sealed: memos and whatever else a later attempt must know. Empty at first.
    pub progress: Bytes,
}

impl Operation {
    /// The operation that a commit with `Start::Claimed` has just made, as its worker holds it. The
    /// time of acceptance is set by the store and zero here.
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
