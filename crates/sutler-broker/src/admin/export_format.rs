//! Format of an export: a head, one line for each resource with its operations, and a count.
//!
//! Bodies are sealed as in the store, so a file reveals nothing, and only a broker with the same keys and the
//! same realm can read it. No I/O: that is in `export.rs` and `import.rs`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use sutler_journal::{
    Fence, Key, Operation, OperationId, OperationRow, Outcome, Queue, State, StoreTime,
};

/// Version of the format; no other version is read.
pub(crate) const FORM: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ExportLine {
    /// The first. `unfinished`: operations that had not ended when the export began.
    Head {
        form: u32,
        realm: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        unfinished: u64,
    },
    /// A document and the operations it refers to.
    Document(Box<DocumentLine>),
    /// The last, with the counts.
    End { documents: u64, operations: u64 },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentLine {
    pub key: Base64Bytes,
    pub body: Base64Bytes,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationLine>,
}

/// An operation; its lane is the document's key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationLine {
    id: OperationId,
    verb: String,
    state: StateWord,
    due: i64,
    attempt: u32,
    cancel: bool,
    accepted: i64,
    finished: Option<i64>,
    detail: Base64Bytes,
    request: Base64Bytes,
    progress: Base64Bytes,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateWord {
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
pub(crate) struct Base64Bytes(pub Bytes);

impl TryFrom<String> for Base64Bytes {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        STANDARD.decode(text).map(|bytes| Self(bytes.into()))
    }
}

impl From<Base64Bytes> for String {
    fn from(binary: Base64Bytes) -> Self {
        STANDARD.encode(binary.0)
    }
}

impl OperationLine {
    /// Whether the operation had not ended, so that its broker may still execute it.
    pub(crate) fn is_unfinished(&self) -> bool {
        match self.state {
            StateWord::Waiting | StateWord::Ready | StateWord::Running => true,
            StateWord::Succeeded | StateWord::Failed | StateWord::Cancelled => false,
        }
    }

    pub(crate) fn of(operation: &Operation) -> Self {
        let row = &operation.row;
        Self {
            id: row.id,
            verb: row.verb.to_string(),
            state: match row.state {
                State::Waiting => StateWord::Waiting,
                State::Ready => StateWord::Ready,
                State::Running => StateWord::Running,
                State::Done(Outcome::Succeeded) => StateWord::Succeeded,
                State::Done(Outcome::Failed) => StateWord::Failed,
                State::Done(Outcome::Cancelled) => StateWord::Cancelled,
            },
            due: row.due.0,
            attempt: row.attempt,
            cancel: row.cancel,
            accepted: row.accepted.0,
            finished: row.finished.map(|at| at.0),
            detail: Base64Bytes(row.detail.clone()),
            request: Base64Bytes(operation.request.clone()),
            progress: Base64Bytes(operation.progress.clone()),
        }
    }

    /// The operation to import into another store, in the lane of its document.
    pub(crate) fn operation(self, lane: &Key, queue: &Queue) -> Operation {
        Operation {
            row: OperationRow {
                id: self.id,
                lane: lane.clone(),
                verb: Cow::Owned(self.verb),
                queue: queue.clone(),
                state: match self.state {
                    StateWord::Waiting => State::Waiting,
                    StateWord::Ready => State::Ready,
                    StateWord::Running => State::Running,
                    StateWord::Succeeded => State::Done(Outcome::Succeeded),
                    StateWord::Failed => State::Done(Outcome::Failed),
                    StateWord::Cancelled => State::Done(Outcome::Cancelled),
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
