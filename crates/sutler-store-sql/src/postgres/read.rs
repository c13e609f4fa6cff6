//! Reading: documents, operations, the feed, counts, logs. Each is one statement.

use super::ids::Id;
use super::{SqlShared, sql};
use crate::codec;
use crate::error::SqlError;
use crate::feed::FeedPage;
use crate::rows::{self, number, one};
use sqlx::Arguments;
use sqlx::postgres::PgRow;
use sutler_journal::{
    Changes, Cursor, Document, Key, List, LogChunk, Operation, OperationFilter, OperationId,
    OperationList, OperationRow, Page, PolledOperation, Position, QueueStats, Stats, StoreError,
    StoreTime,
};
use uuid::Uuid;

/// Most pieces of a log, or documents, that one statement fetches.
const ROWS_MAX: usize = 10_000;
/// So many commits behind, the counts are brought up to date.
const FOLD_AFTER: i64 = 5000;

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
        let answer = self.ask(sql::OPERATION, &|a| a.add(Id(id.0))).await;
        let read = answer.and_then(|found| found.first().map(rows::operation).transpose());
        read.map_err(SqlError::into_store_error)
    }

    pub(super) async fn poll(&self, lane: &Key, id: OperationId) -> Read<Option<PolledOperation>> {
        let answer = self
            .ask(sql::POLL, &|a| {
                a.add(Id(id.0))?;
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
                    a.add(&scope[..])?;
                    a.add(&value[..])?;
                    a.add(&key[..])?;
                    a.add(&to[..])?;
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
        let before = Id(list.before.map_or(Uuid::max(), |id| id.0));
        let limit = codec::limit(list.limit.min(ROWS_MAX));
        let (statement, lane) = match &list.filter {
            OperationFilter::All => (sql::OPERATIONS, None),
            OperationFilter::Unfinished => (sql::OPERATIONS_UNFINISHED, None),
            OperationFilter::Lane(lane) => (sql::OPERATIONS_OF_LANE, Some(lane)),
        };
        let answer = self
            .ask(statement, &|a| {
                a.add(before)?;
                a.add(limit)?;
                match lane {
                    Some(lane) => a.add(lane.as_bytes()),
                    None => Ok(()),
                }
            })
            .await;
        answer
            .and_then(|found| found.iter().map(rows::operation_row).collect())
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn changes(&self, after: &Cursor, limit: usize) -> Read<Changes> {
        let mut gathered = FeedPage::sparse(after, limit)?;
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
        let found = answer.map_err(SqlError::into_store_error)?;
        let (stats, behind) = stats(&found).map_err(SqlError::into_store_error)?;
        if behind > FOLD_AFTER {
            // Only makes the next count cheaper.
            drop(self.ask(sql::FOLD, &|_| Ok(())).await);
        }
        Ok(stats)
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
        let from = i32::try_from(from).unwrap_or(i32::MAX);
        let answer = self
            .ask(sql::READ_LOG, &|a| {
                a.add(Id(id.0))?;
                a.add(from)?;
                a.add(codec::limit(limit.min(ROWS_MAX)))
            })
            .await;
        answer
            .and_then(|found| found.iter().map(rows::chunk).collect())
            .map_err(SqlError::into_store_error)
    }
}

/// The counts, and by how many commits the tally is behind.
fn stats(found: &[PgRow]) -> Result<(Stats, i64), SqlError> {
    let mut stats = Stats::default();
    let (mut ended, mut behind) = (0, 0);
    for row in found {
        ended = number(row, 0)?;
        stats.cleaned = number(row, 1)?;
        behind = number(row, 2)?;
        stats.queues.extend(rows::queue(row)?);
    }
    let live = |queue: &QueueStats| queue.waiting + queue.ready + queue.running;
    stats.live = stats.queues.iter().map(live).sum();
    stats.terminal = u64::saturating_sub(ended, stats.cleaned);
    stats.accepted = stats.live + ended;
    Ok((stats, behind))
}
