//! Conversion of result rows to values of the journal; the same for every server.
//!
//! Only access to the cells of a row differs between drivers ([`Cells`]). Not here: encoding of a
//! cell (`codec.rs`), and the selected columns (`sql.rs` of each).

use crate::codec;
use crate::error::{SqlError, odd};
use crate::feed::FeedEntry;
use bytes::Bytes;
use std::borrow::Cow;
use sutler_journal::{
    CommitId, Document, Fence, Key, LogChunk, Operation, OperationId, OperationRow, Page,
    PolledOperation, Position, Queue, QueueStats, Renewal, StoreTime, Version,
};
use uuid::Uuid;

/// A row of a result. Cells are accessed by index; `None` is NULL.
pub trait Cells {
    /// A number of any size, or a boolean as 0 or 1.
    fn integer(&self, n: usize) -> Result<Option<i64>, SqlError>;
    /// Bytes, or the sixteen bytes of an id.
    fn blob(&self, n: usize) -> Result<Option<&[u8]>, SqlError>;
}

fn is_null(n: usize) -> SqlError {
    odd(format!("column {n} is NULL"))
}

pub(crate) fn number<T: TryFrom<i64>>(row: &impl Cells, n: usize) -> Result<T, SqlError> {
    let number = row.integer(n)?.ok_or_else(|| is_null(n))?;
    T::try_from(number).map_err(|_| odd(format!("{number} is out of range")))
}

fn flag(row: &impl Cells, n: usize) -> Result<bool, SqlError> {
    Ok(number::<i64>(row, n)? != 0)
}

pub(crate) fn blob(row: &impl Cells, n: usize) -> Result<&[u8], SqlError> {
    row.blob(n)?.ok_or_else(|| is_null(n))
}

fn bytes(row: &impl Cells, n: usize) -> Result<Bytes, SqlError> {
    blob(row, n).map(Bytes::copy_from_slice)
}

fn id(row: &impl Cells, n: usize) -> Result<Uuid, SqlError> {
    Uuid::from_slice(blob(row, n)?).map_err(odd)
}

fn key(row: &impl Cells, n: usize) -> Result<Key, SqlError> {
    Key::from_bytes(blob(row, n)?).map_err(odd)
}

fn utf8_text(row: &impl Cells, n: usize) -> Result<String, SqlError> {
    let utf8_text = std::str::from_utf8(blob(row, n)?).map_err(odd)?;
    Ok(utf8_text.to_owned())
}

/// The only row of a result.
pub(crate) fn only<R: Cells>(found: &[R]) -> Result<&R, SqlError> {
    found.first().ok_or_else(|| odd("an answer without a row"))
}

/// The only value of a result.
pub(crate) fn one<R: Cells>(found: &[R]) -> Result<i64, SqlError> {
    number(only(found)?, 0)
}

/// A document whose version and body are in this column and the next.
pub(crate) fn document(key: Key, row: &impl Cells, n: usize) -> Result<Document, SqlError> {
    Ok(Document {
        key,
        version: Version(CommitId(id(row, n)?)),
        body: bytes(row, n + 1)?,
    })
}

/// A document, with its key in the first column.
pub(crate) fn keyed(row: &impl Cells) -> Result<Document, SqlError> {
    document(key(row, 0)?, row, 1)
}

pub(crate) fn page<R: Cells>(found: &[R], by_term: bool, limit: usize) -> Result<Page, SqlError> {
    let shown = found.iter().take(limit).map(keyed);
    let documents = shown.collect::<Result<Vec<_>, _>>()?;
    let last = found.get(limit.wrapping_sub(1)).zip(documents.last());
    let next = match last.filter(|_| found.len() > limit) {
        Some((row, document)) => Some(Position {
            value: match by_term {
                true => blob(row, 3)?.to_vec(),
                false => Vec::new(),
            },
            key: document.key.clone(),
        }),
        None => None,
    };
    Ok(Page { documents, next })
}

pub(crate) fn polled(row: &impl Cells) -> Result<PolledOperation, SqlError> {
    Ok(PolledOperation {
        state: codec::state_of(number(row, 0)?)?,
        verb: Cow::Owned(utf8_text(row, 1)?),
        detail: bytes(row, 2)?,
    })
}

/// The first fourteen columns of an operation, in the order of `sql.rs`.
pub(crate) fn operation_row(row: &impl Cells) -> Result<OperationRow, SqlError> {
    Ok(OperationRow {
        id: OperationId(id(row, 0)?),
        lane: key(row, 1)?,
        verb: Cow::Owned(utf8_text(row, 2)?),
        queue: Queue::of(utf8_text(row, 3)?),
        state: codec::state_of(number(row, 4)?)?,
        due: StoreTime(number(row, 5)?),
        fence: Fence(number(row, 6)?),
        attempt: number(row, 7)?,
        takeovers: number(row, 8)?,
        cancel: flag(row, 9)?,
        pinned: flag(row, 10)?,
        accepted: StoreTime(number(row, 11)?),
        finished: row.integer(12)?.map(StoreTime),
        detail: bytes(row, 13)?,
    })
}

/// All sixteen columns of an operation.
pub(crate) fn operation(row: &impl Cells) -> Result<Operation, SqlError> {
    Ok(Operation {
        row: operation_row(row)?,
        request: bytes(row, 14)?,
        progress: bytes(row, 15)?,
    })
}

/// The number up to which the feed is trimmed, and a commit with its number, id and subjects if there is one.
pub(crate) fn entry(row: &impl Cells) -> Result<FeedEntry<'_>, SqlError> {
    let commit = match row.integer(1)? {
        Some(seq) => Some((seq, id(row, 2)?, blob(row, 3)?)),
        None => None,
    };
    Ok(FeedEntry {
        trimmed: number(row, 0)?,
        commit,
    })
}

/// Operations that a worker holds, and the cancelled ones; `None` if the lease was lost.
pub(crate) fn renewal<R: Cells>(found: &[R]) -> Result<Option<Renewal>, SqlError> {
    let mut renewal = Renewal::default();
    for row in found {
        if flag(row, 0)? {
            return Ok(None);
        }
        if row.blob(1)?.is_some() {
            let id = OperationId(id(row, 1)?);
            renewal.held.push(id);
            if flag(row, 2)? {
                renewal.cancelled.push(id);
            }
        }
    }
    Ok(Some(renewal))
}

/// Claimed operations; `None` if the worker holds no lease.
pub(crate) fn claimed<R: Cells>(found: &[R]) -> Result<Option<Vec<Operation>>, SqlError> {
    let mut operations = Vec::with_capacity(found.len());
    for row in found {
        if row.blob(0)?.is_none() {
            return Ok(None);
        }
        operations.push(operation(row)?);
    }
    Ok(Some(operations))
}

pub(crate) fn chunk(row: &impl Cells) -> Result<LogChunk, SqlError> {
    Ok(LogChunk {
        number: number(row, 0)?,
        text: bytes(row, 1)?,
    })
}

/// A queue with its name in the fourth column; `None` if there is none.
pub(crate) fn queue(row: &impl Cells) -> Result<Option<QueueStats>, SqlError> {
    if row.blob(3)?.is_none() {
        return Ok(None);
    }
    Ok(Some(QueueStats {
        queue: Queue::of(utf8_text(row, 3)?),
        waiting: number(row, 4)?,
        ready: number(row, 5)?,
        running: number(row, 6)?,
        oldest: StoreTime(number(row, 7)?),
    }))
}
