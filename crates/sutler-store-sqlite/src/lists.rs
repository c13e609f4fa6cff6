//! Reading: single rows on the caller's thread, lists on a thread that may block.
//!
//! Every list walks one index from one place and stops at its limit, wherever the page is; the two
//! exceptions are the unfinished operations and their counts, which visit what is unfinished. All
//! functions take a reader and nothing else, so a test can ask the database how each was done.

use crate::codec;
use crate::rows::{self, unreadable};
use crate::sql;
use crate::words::{self, Words};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use std::borrow::Cow;
use sutler_journal::{
    Changes, CommitId, Cursor, Document, Key, List, LogChunk, Operation, OperationFilter,
    OperationId, OperationList, OperationRow, Page, Polled, Position, Queue, QueueStats, Stats,
    StoreError, StoreTime,
};

type Read<T> = Result<T, StoreError>;

pub(crate) fn get(db: &Connection, key: &Key) -> Read<Option<Document>> {
    let mut statement = db.prepare_cached(sql::DOC_GET).map_err(unreadable)?;
    let mut found = statement.query([key.as_bytes()]).map_err(unreadable)?;
    match found.next().map_err(unreadable)? {
        Some(row) => Ok(Some(rows::document(key.clone(), row, 0)?)),
        None => Ok(None),
    }
}

pub(crate) fn operation(
    db: &Connection,
    words: &Words,
    id: OperationId,
) -> Read<Option<Operation>> {
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
    words: &Words,
    lane: &Key,
    id: OperationId,
) -> Read<Option<Polled>> {
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
    Ok(Some(Polled {
        state: codec::state_of(row.get(0).map_err(unreadable)?)?,
        verb: Cow::Owned(rows::text(verb, words, db)?.to_string()),
        detail: rows::bytes(row, 3)?,
    }))
}

pub(crate) fn list(
    db: &Connection,
    words: &Words,
    list: &List,
    after: Option<&Position>,
    limit: usize,
) -> Read<Page> {
    match list {
        List::Prefix(prefix) => list_by_key(db, prefix, after, limit),
        List::Term {
            realm,
            kind,
            name,
            from,
            to,
        } => {
            let word = words::scope(realm.as_str(), kind.as_str(), name);
            match scope_number(db, words, word)? {
                Some(scope) => list_by_term(db, scope, (from, to), after, limit),
                // A term without a number is on no document.
                None => Ok(Page {
                    documents: Vec::new(),
                    next: None,
                }),
            }
        }
    }
}

fn scope_number(db: &Connection, words: &Words, word: Vec<u8>) -> Read<Option<i64>> {
    if let Some(number) = words.number(&word) {
        return Ok(Some(number));
    }
    let mut statement = db.prepare_cached(sql::WORD_NUMBER).map_err(unreadable)?;
    let found = statement
        .query_row([&word], |row| row.get(0))
        .optional()
        .map_err(unreadable)?;
    if let Some(number) = found {
        words.learn(word, number);
    }
    Ok(found)
}

fn list_by_key(
    db: &Connection,
    prefix: &[u8],
    after: Option<&Position>,
    limit: usize,
) -> Read<Page> {
    let most = one_more(limit);
    let (text, start) = match after {
        Some(position) if position.key.as_bytes() >= prefix => {
            (sql::LIST_BY_KEY_AFTER, position.key.as_bytes())
        }
        Some(_) | None => (sql::LIST_BY_KEY_FROM, prefix),
    };
    let mut statement = db.prepare_cached(text).map_err(unreadable)?;
    let mut found = statement.query((start, most)).map_err(unreadable)?;
    let mut page = PageSoFar::of(limit);
    while let Some(row) = found.next().map_err(unreadable)? {
        let key = rows::blob(row, 0)?;
        if !key.starts_with(prefix) || page.is_full() {
            break;
        }
        page.documents
            .push(rows::document(codec::key(key)?, row, 1)?);
    }
    Ok(page.end(Vec::new()))
}

fn list_by_term(
    db: &Connection,
    scope: i64,
    (from, to): (&[u8], &[u8]),
    after: Option<&Position>,
    limit: usize,
) -> Read<Page> {
    let most = one_more(limit);
    let begins_after = after.filter(|position| position.value.as_slice() >= from);
    let text = match begins_after {
        Some(_) => sql::LIST_BY_TERM_AFTER,
        None => sql::LIST_BY_TERM_FROM,
    };
    let mut statement = db.prepare_cached(text).map_err(unreadable)?;
    let mut found = match begins_after {
        Some(position) => {
            let ids = codec::ids_of(position.key.as_bytes());
            statement.query((scope, &position.value[..], to, most, ids))
        }
        None => statement.query((scope, from, to, most)),
    }
    .map_err(unreadable)?;
    let mut page = PageSoFar::of(limit);
    let mut value = Vec::new();
    while let Some(row) = found.next().map_err(unreadable)? {
        if page.is_full() {
            break;
        }
        let key = codec::key(rows::blob(row, 0)?)?;
        value = rows::blob(row, 3)?.to_vec();
        page.documents.push(rows::document(key, row, 1)?);
    }
    Ok(page.end(value))
}

/// One more than fits tells whether anything follows.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

struct PageSoFar {
    documents: Vec<Document>,
    limit: usize,
    more: bool,
}

impl PageSoFar {
    fn of(limit: usize) -> Self {
        Self {
            documents: Vec::new(),
            limit,
            more: false,
        }
    }

    /// Asked once for every row found.
    fn is_full(&mut self) -> bool {
        self.more = self.documents.len() >= self.limit;
        self.more
    }

    fn end(self, value: Vec<u8>) -> Page {
        let last = self.documents.last().filter(|_| self.more);
        let next = last.map(|document| Position {
            value,
            key: document.key.clone(),
        });
        Page {
            next,
            documents: self.documents,
        }
    }
}

pub(crate) fn operations(
    db: &Connection,
    words: &Words,
    list: &OperationList,
) -> Read<Vec<OperationRow>> {
    let most = i64::try_from(list.limit).unwrap_or(i64::MAX);
    // Longer than any id, and so behind all of them.
    let before = list
        .before
        .map_or(vec![u8::MAX; 17], |id| id.0.as_bytes().to_vec());
    let (text, lane) = match &list.filter {
        OperationFilter::All => (sql::OPS_ALL, None),
        OperationFilter::Unfinished => (sql::OPS_UNFINISHED, None),
        OperationFilter::Lane(lane) => {
            let mut statement = db.prepare_cached(sql::LANE_NUMBER).map_err(unreadable)?;
            let number: Option<i64> = statement
                .query_row([lane.as_bytes()], |row| row.get(0))
                .optional()
                .map_err(unreadable)?;
            let Some(number) = number else {
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

pub(crate) fn changes(db: &Connection, after: &Cursor, limit: usize) -> Read<Changes> {
    let asked = codec::seq_of(after)?;
    let view = db.unchecked_transaction().map_err(unreadable)?;
    let trimmed: i64 = view
        .query_row(sql::TALLY_READ, [], |row| row.get(4))
        .map_err(unreadable)?;
    let mut reached = asked.max(trimmed);
    let mut changes = Vec::new();
    let mut statement = view.prepare_cached(sql::FEED_AFTER).map_err(unreadable)?;
    let mut found = statement.query([reached]).map_err(unreadable)?;
    while let Some(row) = found.next().map_err(unreadable)? {
        let commit = CommitId(codec::uuid(rows::blob(row, 1)?)?);
        let mut of_commit = codec::changes(commit, rows::blob(row, 2)?)?;
        if !changes.is_empty() && changes.len() + of_commit.len() > limit {
            break;
        }
        changes.append(&mut of_commit);
        reached = row.get(0).map_err(unreadable)?;
    }
    Ok(Changes {
        changes,
        next: codec::cursor_at(reached),
        gap: asked < trimmed,
    })
}

pub(crate) fn stats(db: &Connection, words: &Words) -> Read<Stats> {
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

fn counted(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or_default())
}

pub(crate) fn read_log(
    db: &Connection,
    id: OperationId,
    from: u32,
    limit: usize,
) -> Read<Vec<LogChunk>> {
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
