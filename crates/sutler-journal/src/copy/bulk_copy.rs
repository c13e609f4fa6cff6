//! The first pass: all documents by key, then all ended operations, newest first.
//!
//! Concurrent changes are in the feed after the cursor that was taken before, and are copied again.
//! Operations that have not ended are skipped: see `finish.rs`.

use super::batch_writer::{BatchResult, batches, sizes};
use super::copy_state::{Base64Bytes, CopyPosition, CopyState, is_ours};
use super::operation_with_log::{OperationWithLog, append, read_with_logs};
use super::repair::{Repair, find_repair};
use super::{CopyError, CopyStep, Side, StoreCopy, bytes_after, every};
use crate::commit::Write;
use crate::document::IndexedDocument;
use crate::operation::{OperationId, State};

/// Documents, and operations, per read.
pub(super) const PAGE: usize = 100;

impl StoreCopy {
    pub(super) async fn copy_documents(&mut self, mut from: Vec<u8>) -> Result<(), CopyError> {
        self.report_step(CopyStep::Documents);
        loop {
            let page = self.source.scan_documents(&from, PAGE).await;
            let page = page.map_err(CopyError::of(Side::Source))?;
            let last = page.len() < PAGE;
            let end = page
                .last()
                .map(|indexed| bytes_after(&indexed.document.key));
            let writes: Vec<Write> = page.into_iter().filter_map(put).collect();
            for range in batches(&sizes(&writes)) {
                let some = writes.get(range).unwrap_or_default().to_vec();
                let mut next = self.writer.state.clone();
                next.documents += some.len() as u64;
                if let Some(Write::Put { key, .. }) = some.last() {
                    let from = Base64Bytes(bytes_after(key));
                    next.place = CopyPosition::Documents { from };
                }
                // A put always applies.
                self.writer.write(some, next).await?;
                self.report_step(CopyStep::Documents);
            }
            match end {
                Some(end) if !last => from = end,
                Some(_) | None => break,
            }
        }
        let next = CopyState {
            place: CopyPosition::Operations { before: None },
            ..self.writer.state.clone()
        };
        self.writer.write(Vec::new(), next).await?;
        Ok(())
    }

    pub(super) async fn copy_operations(
        &mut self,
        mut before: Option<OperationId>,
    ) -> Result<(), CopyError> {
        self.report_step(CopyStep::Operations);
        loop {
            let rows = self.source.operations(&every(before, PAGE)).await;
            let rows = rows.map_err(CopyError::of(Side::Source))?;
            let last = rows.len() < PAGE;
            let ended = rows.iter().filter(|row| is_done(row.state));
            let ids: Vec<OperationId> = ended.map(|row| row.id).collect();
            let found = read_with_logs(&self.source, &ids).await;
            let found = found.map_err(CopyError::of(Side::Source))?;
            self.import(found).await?;
            match rows.last() {
                Some(row) if !last => before = Some(row.id),
                Some(_) | None => break,
            }
            let next = CopyState {
                place: CopyPosition::Operations { before },
                ..self.writer.state.clone()
            };
            self.writer.write(Vec::new(), next).await?;
        }
        let next = CopyState {
            place: CopyPosition::Following,
            ..self.writer.state.clone()
        };
        self.writer.write(Vec::new(), next).await?;
        Ok(())
    }

    /// Adds operations, newest first, and their logs; existing ones are made equal.
    async fn import(&mut self, found: Vec<OperationWithLog>) -> Result<(), CopyError> {
        let writes: Vec<Write> = found.iter().map(import).collect();
        for range in batches(&sizes(&writes)) {
            let some = writes.get(range.clone()).unwrap_or_default().to_vec();
            let batch = found.get(range).unwrap_or_default();
            let mut next = self.writer.state.clone();
            next.operations += some.len() as u64;
            if let (CopyPosition::Operations { .. }, Some(last)) = (&next.place, batch.last()) {
                let before = Some(last.operation.row.id);
                next.place = CopyPosition::Operations { before };
            }
            if self.writer.write(some, next).await? == BatchResult::Unfit {
                // Some exist already: after a gap in the feed, everything is scanned again.
                for item in batch {
                    self.copy_ended_operation(item).await?;
                }
                continue;
            }
            for item in batch {
                let appended = append(&*self.target, item.operation.row.id, &item.log).await;
                appended.map_err(CopyError::of(Side::Target))?;
            }
            self.report_step(CopyStep::Operations);
        }
        Ok(())
    }

    /// Makes an ended operation of the target equal to the source's. Differences that cannot be repaired in
    /// place, and incomplete logs, are left for `finish`.
    pub(super) async fn copy_ended_operation(
        &mut self,
        item: &OperationWithLog,
    ) -> Result<(), CopyError> {
        let id = item.operation.row.id;
        let found = self.target.operation(id).await;
        let found = found.map_err(CopyError::of(Side::Target))?;
        let mut next = self.writer.state.clone();
        let writes = match &found {
            None => {
                next.operations += 1;
                vec![import(item)]
            }
            Some(there) => match find_repair(&item.operation, there) {
                Repair::Nothing | Repair::Replace => return Ok(()),
                Repair::Writes(writes) => writes,
            },
        };
        let fit = self.writer.write(writes, next).await?;
        if found.is_none() && fit == BatchResult::Written {
            let appended = append(&*self.target, id, &item.log).await;
            appended.map_err(CopyError::of(Side::Target))?;
        }
        Ok(())
    }
}

pub(super) fn is_done(state: State) -> bool {
    matches!(state, State::Done(_))
}

/// The write that puts a document into the target; `None` for one of an earlier copy.
pub(super) fn put(indexed: IndexedDocument) -> Option<Write> {
    (!is_ours(&indexed.document.key)).then_some(Write::Put {
        key: indexed.document.key,
        terms: indexed.terms,
        body: indexed.document.body,
    })
}

pub(super) fn import(item: &OperationWithLog) -> Write {
    Write::Import(Box::new(item.operation.clone()))
}
