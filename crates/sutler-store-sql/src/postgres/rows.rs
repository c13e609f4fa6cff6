//! Rows of the server's answers as values of the journal. Not here: columns (`codec.rs`).

use super::ids::Id;
use crate::codec;
use crate::trouble::{Trouble, odd};
use bytes::Bytes;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type};
use std::borrow::Cow;
use sutler_journal::{
    CommitId, Document, Fence, Key, Operation, OperationId, OperationRow, Queue, StoreTime, Version,
};

pub(super) fn column<'r, T>(row: &'r PgRow, n: usize) -> Result<T, Trouble>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(n).map_err(odd)
}

pub(super) fn bytes(row: &PgRow, n: usize) -> Result<Bytes, Trouble> {
    column::<&[u8]>(row, n).map(Bytes::copy_from_slice)
}

pub(super) fn key(row: &PgRow, n: usize) -> Result<Key, Trouble> {
    Key::from_bytes(column(row, n)?).map_err(odd)
}

pub(super) fn word(row: &PgRow, n: usize) -> Result<String, Trouble> {
    let word = std::str::from_utf8(column(row, n)?).map_err(odd)?;
    Ok(word.to_owned())
}

pub(super) fn number<T: TryFrom<i64>>(row: &PgRow, n: usize) -> Result<T, Trouble> {
    let number: i64 = column(row, n)?;
    T::try_from(number).map_err(|_| odd(format!("{number} is out of range")))
}

/// A document whose version and body stand in this column and the next.
pub(super) fn document(key: Key, row: &PgRow, n: usize) -> Result<Document, Trouble> {
    let Id(version) = column(row, n)?;
    Ok(Document {
        key,
        version: Version(CommitId(version)),
        body: bytes(row, n + 1)?,
    })
}

/// The first fourteen columns of an operation, in the order of `sql.rs`.
pub(super) fn operation_row(row: &PgRow) -> Result<OperationRow, Trouble> {
    let Id(id) = column(row, 0)?;
    let count = |n: usize| {
        let count: i32 = column(row, n)?;
        u32::try_from(count).map_err(odd)
    };
    Ok(OperationRow {
        id: OperationId(id),
        lane: key(row, 1)?,
        verb: Cow::Owned(word(row, 2)?),
        queue: Queue::of(word(row, 3)?),
        state: codec::state_of(column(row, 4)?)?,
        due: StoreTime(column(row, 5)?),
        fence: Fence(number(row, 6)?),
        attempt: count(7)?,
        takeovers: count(8)?,
        cancel: column(row, 9)?,
        pinned: column(row, 10)?,
        accepted: StoreTime(column(row, 11)?),
        finished: column::<Option<i64>>(row, 12)?.map(StoreTime),
        detail: bytes(row, 13)?,
    })
}

/// All sixteen.
pub(super) fn operation(row: &PgRow) -> Result<Operation, Trouble> {
    Ok(Operation {
        row: operation_row(row)?,
        request: bytes(row, 14)?,
        progress: bytes(row, 15)?,
    })
}
