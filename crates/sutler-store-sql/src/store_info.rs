//! Reads of the whole store, for copies and inspections. Not here: reads of a broker (`read.rs`).

use crate::codec;
use crate::dialect::{Dialect, Value};
use crate::error::SqlError;
use crate::rows::{self, number, only};
use crate::store::SqlShared;
use sutler_journal::{IndexedDocument, Layout, StoreInfo};

impl<D: Dialect> SqlShared<D> {
    pub(crate) async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, SqlError> {
        let values = [Value::Bytes(from), Value::Number(codec::limit(limit))];
        let found = self.ask(D::SQL.scan_documents, &values).await?;
        let document = |row| Ok(IndexedDocument::new(rows::keyed(row)?, D::terms(row)?));
        found.iter().map(document).collect()
    }

    pub(crate) async fn feed_length(&self) -> Result<u64, SqlError> {
        let found = self.ask(D::SQL.feed_length, &[]).await?;
        number(only(&found)?, 0)
    }

    pub(crate) async fn info(&self, layout: Layout) -> Result<StoreInfo, SqlError> {
        let found = self.ask(D::SQL.info, &[]).await?;
        let row = only(&found)?;
        Ok(StoreInfo {
            layout,
            leases: number(row, 0)?,
            leases_over: number(row, 1)?,
            abandoned: number(row, 2)?,
            feed: number(row, 3)?,
            stray_logs: number(row, 4)?,
            bytes: Some(number(row, 5)?),
            documents: number(row, 6)?,
        })
    }
}
