//! What only those ask for who copy or examine the whole store. Not here: what a broker asks (`read.rs`).

use super::{SqlShared, sql};
use crate::codec;
use crate::error::{SqlError, odd};
use crate::rows::{self, number, only};
use sqlx::postgres::PgRow;
use sqlx::{Arguments, Row as _};
use sutler_journal::{IndexedDocument, Layout, StoreError, StoreInfo};

impl SqlShared {
    pub(super) async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        let answer = self
            .ask(sql::FILED, &|a| {
                a.add(from)?;
                a.add(codec::limit(limit))
            })
            .await;
        answer
            .and_then(|found| found.iter().map(filed).collect())
            .map_err(SqlError::into_store_error)
    }

    pub(super) async fn info(&self, layout: Layout) -> Result<StoreInfo, StoreError> {
        let answer = self.ask(sql::SURVEY, &|_| Ok(())).await;
        answer
            .and_then(|found| survey(layout, &found))
            .map_err(SqlError::into_store_error)
    }
}

fn filed(row: &PgRow) -> Result<IndexedDocument, SqlError> {
    let scopes: Vec<Vec<u8>> = row.try_get(3).map_err(odd)?;
    let values: Vec<Vec<u8>> = row.try_get(4).map_err(odd)?;
    let terms = scopes.iter().zip(&values);
    let terms = terms.map(|(scope, value)| codec::term(scope, value));
    Ok(IndexedDocument::new(
        rows::keyed(row)?,
        terms.collect::<Result<_, _>>()?,
    ))
}

fn survey(layout: Layout, found: &[PgRow]) -> Result<StoreInfo, SqlError> {
    let row = only(found)?;
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
