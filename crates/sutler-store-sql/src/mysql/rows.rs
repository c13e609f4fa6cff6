//! Rows of the server's answers as values of the journal. Not here: columns (`codec.rs`).

use crate::codec;
use crate::trouble::{Trouble, odd};
use bytes::Bytes;
use sqlx::mysql::MySqlRow;
use sqlx::{Decode, MySql, Row, Type};
use std::borrow::Cow;
use sutler_journal::{
    CommitId, Document, Fence, Key, Operation, OperationId, OperationRow, Queue, StoreTime, Version,
};
use uuid::Uuid;

pub(super) fn column<'r, T>(row: &'r MySqlRow, n: usize) -> Result<T, Trouble>
where
    T: Decode<'r, MySql> + Type<MySql>,
{
    row.try_get_unchecked(n).map_err(odd)
}

pub(super) fn id(row: &MySqlRow, n: usize) -> Result<Uuid, Trouble> {
    Uuid::from_slice(column(row, n)?).map_err(odd)
}

/// The only value of an answer.
pub(super) fn one(found: &[MySqlRow]) -> Result<i64, Trouble> {
    match found.first() {
        Some(row) => column(row, 0),
        None => Err(odd("an answer without a row")),
    }
}

pub(super) fn bytes(row: &MySqlRow, n: usize) -> Result<Bytes, Trouble> {
    column::<&[u8]>(row, n).map(Bytes::copy_from_slice)
}

pub(super) fn key(row: &MySqlRow, n: usize) -> Result<Key, Trouble> {
    Key::from_bytes(column(row, n)?).map_err(odd)
}

pub(super) fn word(row: &MySqlRow, n: usize) -> Result<String, Trouble> {
    let word = std::str::from_utf8(column(row, n)?).map_err(odd)?;
    Ok(word.to_owned())
}

pub(super) fn number<T: TryFrom<i64>>(row: &MySqlRow, n: usize) -> Result<T, Trouble> {
    let number: i64 = column(row, n)?;
    T::try_from(number).map_err(|_| odd(format!("{number} is out of range")))
}

/// A document whose version and body stand in this column and the next.
pub(super) fn document(key: Key, row: &MySqlRow, n: usize) -> Result<Document, Trouble> {
    Ok(Document {
        key,
        version: Version(CommitId(id(row, n)?)),
        body: bytes(row, n + 1)?,
    })
}

/// The first fourteen columns of an operation, in the order of `sql.rs`.
pub(super) fn operation_row(row: &MySqlRow) -> Result<OperationRow, Trouble> {
    Ok(OperationRow {
        id: OperationId(id(row, 0)?),
        lane: key(row, 1)?,
        verb: Cow::Owned(word(row, 2)?),
        queue: Queue::of(word(row, 3)?),
        state: codec::state_of(number(row, 4)?)?,
        due: StoreTime(column(row, 5)?),
        fence: Fence(number(row, 6)?),
        attempt: number(row, 7)?,
        takeovers: number(row, 8)?,
        cancel: column::<i64>(row, 9)? != 0,
        pinned: column::<i64>(row, 10)? != 0,
        accepted: StoreTime(column(row, 11)?),
        finished: column::<Option<i64>>(row, 12)?.map(StoreTime),
        detail: bytes(row, 13)?,
    })
}

/// All sixteen.
pub(super) fn operation(row: &MySqlRow) -> Result<Operation, Trouble> {
    Ok(Operation {
        row: operation_row(row)?,
        request: bytes(row, 14)?,
        progress: bytes(row, 15)?,
    })
}
