//! The lines of an export: a head, one line for each resource with its operations, and a count.
//!
//! Bodies are sealed as in the store, so a file gives nothing away, and only a broker with the same
//! keys and the same realm can read it. Pure: bytes in and out are `export.rs` and `import.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use sutler_journal::{
    Fence, Key, Operation, OperationId, OperationRow, Outcome, Queue, State, StoreTime,
};

/// The form that is written; others are not read.
pub(crate) const FORM: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Line {
    /// The first.
    Head { form: u32, realm: String },
    /// A document and the operations it points to.
    Document(Box<DocumentLine>),
    /// The last: how many there were.
    End { documents: u64, operations: u64 },
}

/// A document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentLine {
    pub key: Binary,
    pub body: Binary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationLine>,
}

/// An operation; its lane is the document's key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationLine {
    id: OperationId,
    verb: String,
    state: Word,
    due: i64,
    attempt: u32,
    cancel: bool,
    accepted: i64,
    finished: Option<i64>,
    detail: Binary,
    request: Binary,
    progress: Binary,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Waiting,
    Ready,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// Bytes, in base64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Binary(pub Bytes);

impl TryFrom<String> for Binary {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        STANDARD.decode(text).map(|bytes| Self(bytes.into()))
    }
}

impl From<Binary> for String {
    fn from(binary: Binary) -> Self {
        STANDARD.encode(binary.0)
    }
}

impl OperationLine {
    pub(crate) fn of(operation: &Operation) -> Self {
        let row = &operation.row;
        Self {
            id: row.id,
            verb: row.verb.to_string(),
            state: match row.state {
                State::Waiting => Word::Waiting,
                State::Ready => Word::Ready,
                State::Running => Word::Running,
                State::Done(Outcome::Succeeded) => Word::Succeeded,
                State::Done(Outcome::Failed) => Word::Failed,
                State::Done(Outcome::Cancelled) => Word::Cancelled,
            },
            due: row.due.0,
            attempt: row.attempt,
            cancel: row.cancel,
            accepted: row.accepted.0,
            finished: row.finished.map(|at| at.0),
            detail: Binary(row.detail.clone()),
            request: Binary(operation.request.clone()),
            progress: Binary(operation.progress.clone()),
        }
    }

    /// As it is brought into another store, in the lane of its document.
    pub(crate) fn operation(self, lane: &Key, queue: &Queue) -> Operation {
        Operation {
            row: OperationRow {
                id: self.id,
                lane: lane.clone(),
                verb: Cow::Owned(self.verb),
                queue: queue.clone(),
                state: match self.state {
                    Word::Waiting => State::Waiting,
                    Word::Ready => State::Ready,
                    Word::Running => State::Running,
                    Word::Succeeded => State::Done(Outcome::Succeeded),
                    Word::Failed => State::Done(Outcome::Failed),
                    Word::Cancelled => State::Done(Outcome::Cancelled),
                },
                due: StoreTime(self.due),
                fence: Fence(0),
                attempt: self.attempt,
                takeovers: 0,
                cancel: self.cancel,
                pinned: true,
                accepted: StoreTime(self.accepted),
                finished: self.finished.map(StoreTime),
                detail: self.detail.0,
            },
            request: self.request.0,
            progress: self.progress.0,
        }
    }
}
