//! Reading: documents, operations, the feed, counts, logs. Each is one statement.

use super::{SqlShared, sql};
use crate::codec;
use crate::error::SqlError;
use crate::feed::FeedPage;
use crate::rows::{self, number, one};
use sqlx::Arguments;
use sqlx::mysql::MySqlRow;
use sutler_journal::{
    Changes, Cursor, Document, Key, List, LogChunk, Operation, OperationFilter, OperationId,
    OperationList, OperationRow, Page, PolledOperation, Position, QueueStats, Stats, StoreError,
    StoreTime,
};
use uuid::Uuid;

/// Most pieces of a log, or documents, that one statement fetches.
const ROWS_MAX: usize = 10_000;

type Read<T> = Result<T, StoreError>;

impl SqlShared {
    pub(super) async fn get(&self, key: &Key) -> Read<Option<Document>> {
        let answer = self.ask(sql::GET, &|a| a.add(key.as_bytes())).await;
        let read = answer.and_then(|found| {
            let document = |row| rows::document(key.clone(), row, 0);
            found.first().map(document).transpose()
        });
        read.map_err(SqlError::into_store_error)
    }

    pub(super) async fn operation(&self, id: OperationId) -> Read<Option<Operation>> {
        let answer = self
            .ask(sql::OPERATION, &|a| a.add(&id.0.as_bytes()[..]))
            .await;
        let read = answer.and_then(|found| found.first().map(rows::operation).transpose());
        read.map_err(SqlError::into_store_error)
    }

    pub(super) async fn poll(&self, lane: &Key, id: OperationId) -> Read<Option<PolledOperation>> {
        let answer = self
            .ask(sql::POLL, &|a| {
                a.add(&id.0.as_bytes()[..])?;
                a.add(lane.as_bytes())
            })
            .await;
        let read = answer.and_then(|found| found.first().map(rows::polled).transpose());
        read.map_err(SqlError::into_store_error)
    }

    pub(super) async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Read<Page> {
        let limit = limit.min(ROWS_MAX);
        // One more, to know whether anything follows.
        let one_more = codec::limit(limit + 1);
        let answer = match list {
            List::Prefix(prefix) => {
                let after = after.filter(|position| position.key.as_bytes() >= prefix.as_slice());
                let from = after.map_or(prefix.clone(), |at| codec::behind(at.key.as_bytes()));
                let end = codec::end_of_prefix(prefix);
                self.ask(sql::LIST_BY_KEY, &|a| {
                    a.add(&from[..])?;
                    a.add(&end[..])?;
                    a.add(one_more)
                })
                .await
            }
            List::Term {
                realm,
                kind,
                name,
                from,
                to,
            } => {
                let scope = codec::scope(realm.as_str(), kind.as_str(), name);
                let after = after.filter(|position| position.value >= *from);
                let (value, key) = match after {
                    Some(at) => (&at.value, codec::behind(at.key.as_bytes())),
                    None => (from, Vec::new()),
                };
                self.ask(sql::LIST_BY_TERM, &|a| {
                    for part in [&scope[..], &value[..], &key[..], &to[..]] {
                        a.add(part)?;
                    }
                    a.add(one_more)?;
                    for part in [&scope[..], &value[..], &to[..]] {
                        a.add(part)?;
                    }
                    a.add(one_more)?;
                    a.add(one_more)
                })
                .await
            }
        };
        let by_term = matches!(list, List::Term { .. });
        answer
            .and_then(|found| rows::page(&found, by_term, limit))
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn operations(&self, list: &OperationList) -> Read<Vec<OperationRow>> {
        let before = list.before.map_or(Uuid::max(), |id| id.0);
        let limit = codec::limit(list.limit.min(ROWS_MAX));
        let (statement, lane) = match &list.filter {
            OperationFilter::All => (sql::OPERATIONS, None),
            OperationFilter::Unfinished => (sql::OPERATIONS_UNFINISHED, None),
            OperationFilter::Lane(lane) => (sql::OPERATIONS_OF_LANE, Some(lane)),
        };
        let answer = self
            .ask(statement, &|a| {
                if let Some(lane) = lane {
                    a.add(lane.as_bytes())?;
                }
                a.add(&before.as_bytes()[..])?;
                a.add(limit)
            })
            .await;
        answer
            .and_then(|found| found.iter().map(rows::operation_row).collect())
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn changes(&self, after: &Cursor, limit: usize) -> Read<Changes> {
        let mut gathered = FeedPage::dense(after, limit)?;
        loop {
            let (from, most) = gathered.wanted();
            let answer = self
                .ask(sql::CHANGES, &|a| {
                    a.add(from)?;
                    a.add(most)
                })
                .await;
            let full = answer.and_then(|found| gathered.add(found.iter().map(rows::entry)));
            if full.map_err(SqlError::into_store_error)? {
                return Ok(gathered.into_changes());
            }
        }
    }

    pub(super) async fn stats(&self) -> Read<Stats> {
        let answer = self.ask(sql::STATS, &|_| Ok(())).await;
        answer
            .and_then(|found| stats(&found))
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn now(&self) -> Read<StoreTime> {
        let answer = self.ask(sql::NOW, &|_| Ok(())).await;
        answer
            .and_then(|found| one(&found))
            .map(StoreTime)
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn read_log(
        &self,
        id: OperationId,
        from: u32,
        limit: usize,
    ) -> Read<Vec<LogChunk>> {
        let from = i64::from(from);
        let answer = self
            .ask(sql::READ_LOG, &|a| {
                a.add(&id.0.as_bytes()[..])?;
                a.add(from)?;
                a.add(codec::limit(limit.min(ROWS_MAX)))
            })
            .await;
        answer
            .and_then(|found| found.iter().map(rows::chunk).collect())
            .map_err(SqlError::into_store_error)
    }
}

fn stats(found: &[MySqlRow]) -> Result<Stats, SqlError> {
    let mut stats = Stats::default();
    for row in found {
        stats.accepted = number(row, 0)?;
        stats.terminal = number(row, 1)?;
        stats.cleaned = number(row, 2)?;
        stats.queues.extend(rows::queue(row)?);
    }
    let live = |queue: &QueueStats| queue.waiting + queue.ready + queue.running;
    stats.live = stats.queues.iter().map(live).sum();
    Ok(stats)
}
