//! Conversion of rows to values of the journal.
//!
//! The column order is that of the `OP_…` and `LIST_…` statements in `sql.rs`. Not here: encodings
//! inside a column (`codec.rs`).

use crate::codec;
use crate::interned_strings::Interner;
use crate::sql;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use std::borrow::Cow;
use std::sync::Arc;
use sutler_journal::{
    CommitId, Document, Fence, Key, Operation, OperationId, OperationRow, Queue, StoreError,
    StoreTime, Version,
};

/// Error for a failed read of the database, with its cause.
pub(crate) fn unreadable(cause: rusqlite::Error) -> StoreError {
    StoreError::caused("the store's file cannot be read", cause)
}

/// A document: version and body are in the row from `first` on.
pub(crate) fn document(key: Key, row: &Row<'_>, first: usize) -> Result<Document, StoreError> {
    Ok(Document {
        key,
        version: version(blob(row, first)?)?,
        body: bytes(row, first + 1)?,
    })
}

pub(crate) fn version(id: &[u8]) -> Result<Version, StoreError> {
    Ok(Version(CommitId(codec::uuid(id)?)))
}

/// The row of an operation: columns 0 to 13.
pub(crate) fn operation_row(
    row: &Row<'_>,
    words: &Interner,
    db: &Connection,
) -> Result<OperationRow, StoreError> {
    let int = |column: usize| row.get::<_, i64>(column).map_err(unreadable);
    let finished: Option<i64> = row.get(11).map_err(unreadable)?;
    Ok(OperationRow {
        id: OperationId(codec::uuid(blob(row, 0)?)?),
        state: codec::state_of(int(1)?)?,
        queue: Queue::of(&*text(int(2)?, words, db)?),
        verb: Cow::Owned(text(int(3)?, words, db)?.to_string()),
        due: StoreTime(int(4)?),
        fence: Fence(int(5)? as u64),
        attempt: int(6)? as u32,
        takeovers: int(7)? as u32,
        cancel: int(8)? != 0,
        pinned: int(9)? != 0,
        accepted: StoreTime(int(10)?),
        finished: finished.map(StoreTime),
        lane: codec::key(blob(row, 12)?)?,
        detail: bytes(row, 13)?,
    })
}

/// A whole operation: columns 0 to 15.
pub(crate) fn operation(
    row: &Row<'_>,
    words: &Interner,
    db: &Connection,
) -> Result<Operation, StoreError> {
    Ok(Operation {
        row: operation_row(row, words, db)?,
        request: bytes(row, 14)?,
        progress: bytes(row, 15)?,
    })
}

/// The text of a queue or verb; reads it from the file if it is not cached.
pub(crate) fn text(number: i64, words: &Interner, db: &Connection) -> Result<Arc<str>, StoreError> {
    if let Some(text) = words.text(number) {
        return Ok(text);
    }
    let mut statement = db.prepare_cached(sql::WORD_TEXT).map_err(unreadable)?;
    let word: Option<Vec<u8>> = statement
        .query_row([number], |row| row.get(0))
        .optional()
        .map_err(unreadable)?;
    words.learn(
        word.ok_or_else(|| codec::damaged("a word is missing"))?,
        number,
    );
    words
        .text(number)
        .ok_or_else(|| codec::damaged("a word is missing"))
}

pub(crate) fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], StoreError> {
    row.get_ref(column)
        .map_err(unreadable)?
        .as_blob()
        .map_err(|cause| StoreError::caused("a column of the store's file cannot be read", cause))
}

pub(crate) fn bytes(row: &Row<'_>, column: usize) -> Result<Bytes, StoreError> {
    Ok(Bytes::copy_from_slice(blob(row, column)?))
}
