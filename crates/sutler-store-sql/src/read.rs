//! Reads: documents, operations, the feed, counts. Each is one statement.

use crate::codec;
use crate::dialect::{Dialect, Value};
use crate::error::SqlError;
use crate::feed::FeedPage;
use crate::rows::{self, one};
use crate::store::SqlShared;
use sutler_journal::{
    Changes, Document, Key, List, Operation, OperationFilter, OperationId, OperationList,
    OperationRow, Page, PolledOperation, Position, QueueStats, Stats, StoreTime,
};
use uuid::Uuid;

/// Maximum log chunks, operations or documents fetched by one statement.
pub(crate) const ROWS_MAX: usize = 10_000;

type Read<T> = Result<T, SqlError>;

impl<D: Dialect> SqlShared<D> {
    pub(crate) async fn get(&self, key: &Key) -> Read<Option<Document>> {
        let found = self
            .ask(D::SQL.get, &[Value::Bytes(key.as_bytes())])
            .await?;
        let document = |row| rows::document(key.clone(), row, 0);
        found.first().map(document).transpose()
    }

    pub(crate) async fn operation(&self, id: OperationId) -> Read<Option<Operation>> {
        let found = self.ask(D::SQL.operation, &[Value::Id(id.0)]).await?;
        found.first().map(rows::operation).transpose()
    }

    pub(crate) async fn poll(&self, lane: &Key, id: OperationId) -> Read<Option<PolledOperation>> {
        let values = [Value::Id(id.0), Value::Bytes(lane.as_bytes())];
        let found = self.ask(D::SQL.poll, &values).await?;
        found.first().map(rows::polled).transpose()
    }

    pub(crate) async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Read<Page> {
        let limit = limit.min(ROWS_MAX);
        // One more than the page shows whether more follow.
        let one_more = Value::Number(codec::limit(limit + 1));
        let found = match list {
            List::Prefix(prefix) => {
                let after = after.filter(|position| position.key.as_bytes() >= prefix.as_slice());
                let from = after.map_or(prefix.clone(), |at| codec::behind(at.key.as_bytes()));
                let end = codec::end_of_prefix(prefix);
                let values = [Value::Bytes(&from), Value::Bytes(&end), one_more];
                self.ask(D::SQL.list_by_key, &values).await?
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
                let [scope, value, key, to] = [&scope, value, &key, to].map(|it| Value::Bytes(it));
                let values = [scope, value, key, to, one_more];
                let ordered = D::LIST_BY_TERM_ORDER.iter().filter_map(|n| values.get(*n));
                let ordered: Vec<Value<'_>> = ordered.copied().collect();
                self.ask(D::SQL.list_by_term, &ordered).await?
            }
        };
        rows::page(&found, matches!(list, List::Term { .. }), limit)
    }

    pub(crate) async fn operations(&self, list: &OperationList) -> Read<Vec<OperationRow>> {
        let before = Value::Id(list.before.map_or(Uuid::max(), |id| id.0));
        let limit = Value::Number(codec::limit(list.limit.min(ROWS_MAX)));
        let found = match &list.filter {
            OperationFilter::All => self.ask(D::SQL.operations, &[before, limit]).await?,
            OperationFilter::Unfinished => {
                let statement = D::SQL.operations_unfinished;
                self.ask(statement, &[before, limit]).await?
            }
            OperationFilter::Lane(lane) => {
                let values = [Value::Bytes(lane.as_bytes()), before, limit];
                self.ask(D::SQL.operations_of_lane, &values).await?
            }
        };
        found.iter().map(rows::operation_row).collect()
    }

    /// Reads the feed. `page` is empty and starts at the cursor.
    pub(crate) async fn changes(&self, mut page: FeedPage) -> Read<Changes> {
        loop {
            let (from, most) = page.wanted();
            let values = [Value::Number(from), Value::Number(most)];
            let found = self.ask(D::SQL.changes, &values).await?;
            if page.add(found.iter().map(rows::entry))? {
                return Ok(page.into_changes());
            }
        }
    }

    pub(crate) async fn stats(&self) -> Read<Stats> {
        let found = self.ask(D::SQL.stats, &[]).await?;
        let mut stats = Stats::default();
        for row in &found {
            stats.queues.extend(rows::queue(row)?);
        }
        let live = |queue: &QueueStats| queue.waiting + queue.ready + queue.running;
        stats.live = stats.queues.iter().map(live).sum();
        let folds = match found.last() {
            Some(row) => D::totals(row, &mut stats)?,
            None => false,
        };
        if let Some(fold) = D::FOLD.filter(|_| folds) {
            // Only makes the next count cheaper, so errors are ignored.
            drop(self.ask(fold, &[]).await);
        }
        Ok(stats)
    }

    pub(crate) async fn now(&self) -> Read<StoreTime> {
        let found = self.ask(D::SQL.now, &[]).await?;
        one(&found).map(StoreTime)
    }
}
