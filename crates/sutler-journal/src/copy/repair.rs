//! Compares an operation of source and target, and computes the writes that make them equal. Pure.
//!
//! A running operation is imported as ready and due (`Write::Import`), because no worker of the target
//! holds a claim to it; all other fields must be equal.

use super::operation_with_log::OperationWithLog;
use crate::commit::Write;
use crate::document::IndexedDocument;
use crate::operation::{Operation, OperationRow, Outcome, State};
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;

/// How to repair an operation that both stores have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// They are equal.
    Nothing,
    /// These writes make them equal.
    Writes(Vec<Write>),
    /// It must be deleted and imported again.
    Replace,
}

/// Compares an operation of both stores.
pub(super) fn find_repair(source: &Operation, target: &Operation) -> Repair {
    let wanted = as_imported(source, target);
    if wanted == *target {
        return Repair::Nothing;
    }
    // An ended operation changes only by being unpinned or sealed with another key.
    let amended = Operation {
        row: OperationRow {
            pinned: wanted.row.pinned,
            detail: wanted.row.detail.clone(),
            ..target.row.clone()
        },
        request: wanted.request.clone(),
        progress: wanted.progress.clone(),
    };
    let unpins = target.row.pinned && !wanted.row.pinned;
    let ended = matches!(wanted.row.state, State::Done(_));
    if !ended || amended != wanted || (!unpins && target.row.pinned != wanted.row.pinned) {
        return Repair::Replace;
    }
    let mut writes = Vec::new();
    if (&wanted.row.detail, &wanted.request, &wanted.progress)
        != (&target.row.detail, &target.request, &target.progress)
    {
        writes.push(Write::Reseal {
            operation: wanted.row.id,
            read: (target.row.detail.clone(), target.progress.clone()),
            detail: wanted.row.detail,
            request: wanted.request,
            progress: wanted.progress,
        });
    }
    if unpins {
        writes.push(Write::Unpin(wanted.row.id));
    }
    Repair::Writes(writes)
}

/// The source's operation as an import stores it in the target.
fn as_imported(source: &Operation, target: &Operation) -> Operation {
    let mut operation = source.clone();
    if operation.row.state == State::Running {
        operation.row.state = State::Ready;
        operation.row.due = target.row.due;
    }
    operation
}

/// The chunks missing from the target's log; `None` if its chunks are not a prefix of the source's.
pub(super) fn rest_of_log<'s>(source: &'s [Bytes], target: &[Bytes]) -> Option<&'s [Bytes]> {
    source.strip_prefix(target)
}

/// Digest over all contents of one side.
pub(super) struct ContentDigest(Context);

impl ContentDigest {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Adds a document without its version, which differs between stores.
    pub(super) fn document(&mut self, indexed: &IndexedDocument) {
        self.bytes(indexed.document.key.as_bytes());
        self.bytes(&indexed.document.body);
        self.number(indexed.terms.len() as u64);
        for term in &indexed.terms {
            self.bytes(term.name.as_bytes());
            self.bytes(&term.value);
        }
    }

    /// Adds an operation; a running one counts as ready, and the due time is left out.
    pub(super) fn operation(&mut self, item: &OperationWithLog) {
        let Operation {
            row,
            request,
            progress,
        } = &item.operation;
        self.bytes(row.id.0.as_bytes());
        for part in [
            row.lane.as_bytes(),
            row.verb.as_bytes(),
            row.queue.as_str().as_bytes(),
            &row.detail,
            request,
            progress,
        ] {
            self.bytes(part);
        }
        for number in [
            state_number(row.state),
            row.fence.0,
            u64::from(row.attempt),
            u64::from(row.takeovers),
            u64::from(row.cancel),
            u64::from(row.pinned),
            row.accepted.0.cast_unsigned(),
            row.finished.map_or(0, |at| at.0.cast_unsigned()),
            item.log.len() as u64,
        ] {
            self.number(number);
        }
        for piece in &item.log {
            self.bytes(piece);
        }
    }

    /// The digest, in hexadecimal digits.
    pub(super) fn digits(self) -> String {
        let digest = self.0.finish();
        let bytes = digest.as_ref().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

fn state_number(state: State) -> u64 {
    match state {
        State::Waiting => 0,
        State::Ready | State::Running => 1,
        State::Done(Outcome::Succeeded) => 2,
        State::Done(Outcome::Failed) => 3,
        State::Done(Outcome::Cancelled) => 4,
    }
}

#[cfg(test)]
mod tests;
