//! Reads of operations, the feed, counts and logs.
//!
//! Every list scans one index from one position to its limit; the two exceptions are the unfinished
//! operations and their counts, which visit all unfinished ones. Not here: documents (`documents.rs`).

use crate::codec;
use crate::documents::{ReadResult, View};
use crate::interned_strings::Interner;
use crate::rows::{self, unreadable};
use crate::sql;
use crate::writer::LeaseCounts;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Statement};
use std::borrow::Cow;
use sutler_journal::{
    Changes, CommitId, Cursor, Key, Layout, LogChunk, Operation, OperationFilter, OperationId,
    OperationList, OperationRow, PolledOperation, Queue, QueueStats, Stats, StoreInfo, StoreTime,
};

pub(crate) fn operation(
    db: &Connection,
    words: &Interner,
    id: OperationId,
) -> ReadResult<Option<Operation>> {
    let mut statement = db.prepare_cached(sql::OP_WHOLE).map_err(unreadable)?;
    let id: &[u8] = id.0.as_bytes();
    let mut found = statement.query([id]).map_err(unreadable)?;
    match found.next().map_err(unreadable)? {
        Some(row) => Ok(Some(rows::operation(row, words, db)?)),
        None => Ok(None),
    }
}

pub(crate) fn poll(
    db: &Connection,
    words: &Interner,
    lane: &Key,
    id: OperationId,
) -> ReadResult<Option<PolledOperation>> {
    let mut statement = db.prepare_cached(sql::OP_POLL).map_err(unreadable)?;
    let id: &[u8] = id.0.as_bytes();
    let mut found = statement.query([id]).map_err(unreadable)?;
    let Some(row) = found.next().map_err(unreadable)? else {
        return Ok(None);
    };
    if rows::blob(row, 2)? != lane.as_bytes() {
        return Ok(None);
    }
    let verb = row.get(1).map_err(unreadable)?;
    Ok(Some(PolledOperation {
        state: codec::state_of(row.get(0).map_err(unreadable)?)?,
        verb: Cow::Owned(rows::text(verb, words, db)?.to_string()),
        detail: rows::bytes(row, 3)?,
    }))
}

pub(crate) fn operations(view: &View<'_>, list: &OperationList) -> ReadResult<Vec<OperationRow>> {
    let (db, words) = (view.db, view.words);
    let most = i64::try_from(list.limit).unwrap_or(i64::MAX);
    // Longer than any id, so it sorts after all of them.
    let before = list
        .before
        .map_or(vec![u8::MAX; 17], |id| id.0.as_bytes().to_vec());
    let (text, lane) = match &list.filter {
        OperationFilter::All => (sql::OPS_ALL, None),
        OperationFilter::Unfinished => (sql::OPS_UNFINISHED, None),
        OperationFilter::Lane(lane) => {
            let Some(number) = lane_number(view, lane)? else {
                return Ok(Vec::new());
            };
            (sql::OPS_OF_LANE, Some(number))
        }
    };
    let mut statement = db.prepare_cached(text).map_err(unreadable)?;
    let mut found = match lane {
        Some(lane) => statement.query((before, most, lane)),
        None => statement.query((before, most)),
    }
    .map_err(unreadable)?;
    let mut operations = Vec::new();
    while let Some(row) = found.next().map_err(unreadable)? {
        operations.push(rows::operation_row(row, words, db)?);
    }
    Ok(operations)
}

fn lane_number(view: &View<'_>, lane: &Key) -> ReadResult<Option<i64>> {
    if let Some(number) = view.unindexed.number(lane.as_bytes()) {
        return Ok(Some(number));
    }
    let mut statement = view
        .db
        .prepare_cached(sql::LANE_NUMBER)
        .map_err(unreadable)?;
    statement
        .query_row([lane.as_bytes()], |row| row.get(0))
        .optional()
        .map_err(unreadable)
}

pub(crate) fn changes(db: &Connection, after: &Cursor, limit: usize) -> ReadResult<Changes> {
    let requested = codec::seq_of(after)?;
    let view = db.unchecked_transaction().map_err(unreadable)?;
    let trimmed: i64 = view
        .query_row(sql::TALLY_READ, [], |row| row.get(4))
        .map_err(unreadable)?;
    let mut reached = requested.max(trimmed);
    let mut changes = Vec::new();
    let mut statement = view.prepare_cached(sql::FEED_AFTER).map_err(unreadable)?;
    let mut lane = view.prepare_cached(sql::OP_LANE).map_err(unreadable)?;
    let mut found = statement.query([reached]).map_err(unreadable)?;
    while let Some(row) = found.next().map_err(unreadable)? {
        let commit = CommitId(codec::uuid(rows::blob(row, 1)?)?);
        let lane_of = |id| lane_of(&mut lane, id);
        let mut of_commit = codec::changes(commit, rows::blob(row, 2)?, lane_of)?;
        if !changes.is_empty() && changes.len() + of_commit.len() > limit {
            break;
        }
        changes.append(&mut of_commit);
        reached = row.get(0).map_err(unreadable)?;
    }
    Ok(Changes {
        changes,
        next: Cursor::of_number(reached.unsigned_abs()),
        gap: requested < trimmed,
    })
}

/// The lane of an operation; `None` if it was swept.
fn lane_of(statement: &mut Statement<'_>, id: OperationId) -> ReadResult<Option<Key>> {
    let id: &[u8] = id.0.as_bytes();
    let mut found = statement.query([id]).map_err(unreadable)?;
    match found.next().map_err(unreadable)? {
        Some(row) => codec::key(rows::blob(row, 0)?).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn stats(db: &Connection, words: &Interner) -> ReadResult<Stats> {
    let view = db.unchecked_transaction().map_err(unreadable)?;
    let (accepted, terminal, cleaned) = view
        .query_row(sql::TALLY_READ, [], |row| {
            Ok((counted(row, 1)?, counted(row, 2)?, counted(row, 3)?))
        })
        .map_err(unreadable)?;
    let mut statement = view.prepare_cached(sql::QUEUES).map_err(unreadable)?;
    let mut found = statement.query([]).map_err(unreadable)?;
    let mut queues = Vec::new();
    while let Some(row) = found.next().map_err(unreadable)? {
        let queue = row.get(0).map_err(unreadable)?;
        let count = |column: usize| counted(row, column).map_err(unreadable);
        queues.push(QueueStats {
            queue: Queue::of(&*rows::text(queue, words, &view)?),
            waiting: count(1)?,
            ready: count(2)?,
            running: count(3)?,
            oldest: StoreTime(row.get(4).map_err(unreadable)?),
        });
    }
    queues.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
    Ok(Stats {
        accepted,
        live: queues.iter().map(|q| q.waiting + q.ready + q.running).sum(),
        terminal,
        cleaned,
        queues,
    })
}

/// Facts about the store except its layout.
pub(crate) fn info(db: &Connection, leases: LeaseCounts) -> ReadResult<StoreInfo> {
    let read = db.query_row(sql::STORE_INFO, [], |row| {
        Ok(StoreInfo {
            layout: Layout::default(),
            leases: leases.live,
            leases_over: leases.over,
            abandoned: leases.abandoned + counted(row, 0)?,
            feed: counted(row, 1)?,
            stray_logs: counted(row, 2)?,
            bytes: Some(counted(row, 3)?),
            documents: counted(row, 4)?,
        })
    });
    read.map_err(unreadable)
}

pub(crate) fn feed_length(db: &Connection) -> ReadResult<u64> {
    let read = db.query_row(sql::FEED_LENGTH, [], |row| counted(row, 0));
    read.map_err(unreadable)
}

fn counted(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}

pub(crate) fn read_log(
    db: &Connection,
    id: OperationId,
    from: u32,
    limit: usize,
) -> ReadResult<Vec<LogChunk>> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let view = db.unchecked_transaction().map_err(unreadable)?;
    let id: &[u8] = id.0.as_bytes();
    let number: Option<i64> = view
        .prepare_cached(sql::OP_NUMBER)
        .and_then(|mut statement| statement.query_row([id], |row| row.get(0)).optional())
        .map_err(unreadable)?;
    let Some(number) = number else {
        return Ok(Vec::new());
    };
    let mut statement = view.prepare_cached(sql::LOG_READ).map_err(unreadable)?;
    let mut found = statement.query((number, from, most)).map_err(unreadable)?;
    let mut chunks = Vec::new();
    while let Some(row) = found.next().map_err(unreadable)? {
        chunks.push(LogChunk {
            number: row.get(0).map_err(unreadable)?,
            text: Bytes::copy_from_slice(rows::blob(row, 1)?),
        });
    }
    Ok(chunks)
}
