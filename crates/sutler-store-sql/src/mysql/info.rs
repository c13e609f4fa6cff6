//! What only those ask for who copy or examine the whole store. Not here: what a broker asks (`read.rs`).

use super::{SqlShared, procedure_args, sql};
use crate::codec;
use crate::error::{SqlError, odd};
use crate::rows::{self, blob, number, only};
use sqlx::Arguments;
use sqlx::mysql::MySqlRow;
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

fn filed(row: &MySqlRow) -> Result<IndexedDocument, SqlError> {
    let terms = procedure_args::unpack_terms(blob(row, 3)?)
        .ok_or_else(|| odd("the terms of a document are damaged"))?;
    let terms = terms
        .into_iter()
        .map(|(scope, value)| codec::term(scope, value));
    Ok(IndexedDocument::new(
        rows::keyed(row)?,
        terms.collect::<Result<_, _>>()?,
    ))
}

fn survey(layout: Layout, found: &[MySqlRow]) -> Result<StoreInfo, SqlError> {
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
