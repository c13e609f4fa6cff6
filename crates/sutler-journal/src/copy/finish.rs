//! The end of a copy, when the source no longer changes: copies the rest and compares both stores.
//!
//! A pass reads both stores from end to end, side by side. Missing, different and extra records of the
//! target are repaired and counted; then another pass follows, at most five in all. A pass without differences is the
//! proof.
//! An interrupted pass restarts from the beginning: the source may have changed in between.

use super::batch_writer::{batches, sizes};
use super::bulk_copy::{PAGE, import, put};
use super::catch_up::CatchUpResult;
use super::compare::{DiffWindow, part};
use super::copy_state::{CopyPosition, CopyState, is_ours};
use super::moved_mark::is_of_mark;
use super::operation_with_log::{OperationWithLog, append, read_with_logs};
use super::repair::{ContentDigest, Repair, find_repair, rest_of_log};
use super::{CHANGES_MAX, CopyError, CopyReport, CopyStep, Side, StoreCopy, bytes_after, every};
use crate::clock::StoreTime;
use crate::commit::{Next, Write};
use crate::document::IndexedDocument;
use crate::key::Key;
use crate::operation::{Operation, OperationId, Outcome};
use crate::query::{Cursor, Sweep};
use crate::store::Store;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Passes before giving up. Three are enough without interference: deleting an extra operation may
/// delete others too, which the next pass restores.
const PASSES_MAX: u32 = 5;
/// Operations swept per call to delete one.
const SWEEP: usize = 100;

/// Result of one pass.
struct Pass {
    documents: u64,
    operations: u64,
    /// Documents and operations that differed.
    repaired: (u64, u64),
    digests: (ContentDigest, ContentDigest),
}

impl StoreCopy {
    /// Copies the rest of a source that is not in use, and compares both stores.
    ///
    /// # Guarantees
    /// After `Ok` both stores are equal: every document with its terms, every operation with its log. The source
    /// is marked as moved, so that no broker uses it.
    ///
    /// # Errors
    /// `InUse` or `Changed` if the source is still in use; see [`CopyError`].
    pub async fn finish(&mut self) -> Result<CopyReport, CopyError> {
        if let Some(finished) = self.finished.clone() {
            return Ok(finished);
        }
        self.check_no_leases().await?;
        loop {
            self.catch_up().await?;
            if self.follow(0).await? == CatchUpResult::CaughtUp {
                break;
            }
        }
        let mut found = (0, 0);
        for _ in 0..PASSES_MAX {
            let pass = self.pass().await?;
            found = pass.repaired;
            if found == (0, 0) {
                return self.end(pass).await;
            }
        }
        self.unchanged().await?;
        Err(CopyError::Different {
            documents: found.0,
            operations: found.1,
        })
    }

    async fn end(&mut self, pass: Pass) -> Result<CopyReport, CopyError> {
        self.check_idle().await?;
        self.mark_source().await?;
        // A broker may have started before the mark: then the source stays in use.
        if let Err(error) = self.check_idle().await {
            self.unmark_source().await?;
            return Err(error);
        }
        let (source, target) = (pass.digests.0.digits(), pass.digests.1.digits());
        debug_assert_eq!(source, target, "nothing differed");
        let next = CopyState {
            place: CopyPosition::Finished { digest: target },
            documents: pass.documents,
            operations: pass.operations,
            ..self.writer.state.clone()
        };
        self.writer.write(Vec::new(), next).await?;
        let finished = CopyReport {
            documents: pass.documents,
            operations: pass.operations,
            digest: source,
        };
        self.finished = Some(finished.clone());
        Ok(finished)
    }

    /// Fails if the source is in use, or was changed since the feed was last followed.
    async fn check_idle(&self) -> Result<(), CopyError> {
        self.unchanged().await?;
        self.check_no_leases().await
    }

    /// Fails if a worker holds a lease in the source.
    async fn check_no_leases(&self) -> Result<(), CopyError> {
        let info = self.source.info().await;
        match info.map_err(CopyError::of(Side::Source))?.leases {
            0 => Ok(()),
            some => Err(CopyError::InUse(some)),
        }
    }

    /// Fails if the feed has grown since it was last followed, except by the mark of the source.
    async fn unchanged(&self) -> Result<(), CopyError> {
        let mut cursor = Cursor(self.writer.state.feed.0.clone());
        loop {
            let part = self.source.changes(&cursor, CHANGES_MAX).await;
            let part = part.map_err(CopyError::of(Side::Source))?;
            if part.gap || !part.changes.iter().all(is_of_mark) {
                return Err(CopyError::Changed);
            }
            if part.changes.is_empty() {
                return Ok(());
            }
            cursor = part.next;
        }
    }

    async fn pass(&mut self) -> Result<Pass, CopyError> {
        self.progress.send_modify(|progress| progress.compared = 0);
        self.report_step(CopyStep::Comparing);
        let mut pass = Pass {
            documents: 0,
            operations: 0,
            repaired: (0, 0),
            digests: (ContentDigest::new(), ContentDigest::new()),
        };
        self.compare_documents(&mut pass).await?;
        self.compare_operations(&mut pass).await?;
        Ok(pass)
    }

    fn compared(&self, count: usize) {
        self.progress
            .send_modify(|progress| progress.compared += count as u64);
    }

    async fn compare_documents(&mut self, pass: &mut Pass) -> Result<(), CopyError> {
        let mut from = Vec::new();
        loop {
            let (ours, source) = documents(&*self.source, &from, Side::Source).await?;
            let (theirs, target) = documents(&*self.target, &from, Side::Target).await?;
            let found = part(&source, &target);
            let mut writes = Vec::new();
            for key in found.both.iter().chain(&found.missing) {
                let (Some(source), there) = (ours.get(key), theirs.get(key)) else {
                    continue;
                };
                let same = |it: &IndexedDocument| {
                    it.document.body == source.document.body && it.terms == source.terms
                };
                pass.digests.0.document(source);
                match there {
                    Some(there) if same(there) => pass.digests.1.document(there),
                    Some(_) | None => writes.extend(put(source.clone())),
                }
            }
            writes.extend(found.extra.into_iter().map(Write::Remove));
            pass.documents += (found.both.len() + found.missing.len()) as u64;
            pass.repaired.0 += writes.len() as u64;
            for range in batches(&sizes(&writes)) {
                let some = writes.get(range).unwrap_or_default().to_vec();
                self.writer.write(some, self.writer.state.clone()).await?;
            }
            self.compared(found.both.len());
            match found.bound {
                Some(key) => from = bytes_after(&key),
                None => return Ok(()),
            }
        }
    }

    async fn compare_operations(&mut self, pass: &mut Pass) -> Result<(), CopyError> {
        let mut before = None;
        loop {
            let source = operations(&*self.source, before, Side::Source).await?;
            let target = operations(&*self.target, before, Side::Target).await?;
            let found = part(&source, &target);
            let both: Vec<OperationId> = found.both.iter().map(|id| id.0).collect();
            self.compare_both(&both, pass).await?;
            let missing: Vec<OperationId> = found.missing.iter().map(|id| id.0).collect();
            let missing = read_with_logs(&self.source, &missing).await;
            for item in missing.map_err(CopyError::of(Side::Source))? {
                self.add(&item).await?;
                pass.repaired.1 += 1;
            }
            let extra: Vec<OperationId> = found.extra.iter().map(|id| id.0).collect();
            let extra = read_with_logs(&self.target, &extra).await;
            for item in extra.map_err(CopyError::of(Side::Target))? {
                self.delete_extra(&item.operation).await?;
                pass.repaired.1 += 1;
            }
            pass.operations += (found.both.len() + found.missing.len()) as u64;
            self.compared(found.both.len());
            match found.bound {
                Some(Reverse(id)) => before = Some(id),
                None => return Ok(()),
            }
        }
    }

    async fn compare_both(
        &mut self,
        ids: &[OperationId],
        pass: &mut Pass,
    ) -> Result<(), CopyError> {
        let ours = read_with_logs(&self.source, ids).await;
        let ours = ours.map_err(CopyError::of(Side::Source))?;
        let theirs = read_with_logs(&self.target, ids).await;
        let theirs = theirs.map_err(CopyError::of(Side::Target))?;
        let theirs: BTreeMap<OperationId, OperationWithLog> = theirs
            .into_iter()
            .map(|item| (item.operation.row.id, item))
            .collect();
        for item in &ours {
            let id = item.operation.row.id;
            let Some(there) = theirs.get(&id) else {
                // Swept together with another one just now: the next pass imports it again.
                pass.repaired.1 += 1;
                continue;
            };
            pass.digests.0.operation(item);
            pass.digests.1.operation(there);
            let log = rest_of_log(&item.log, &there.log);
            match (find_repair(&item.operation, &there.operation), log) {
                (Repair::Nothing, Some([])) => continue,
                (Repair::Replace, _) | (_, None) => {
                    self.delete_extra(&there.operation).await?;
                    self.add(item).await?;
                }
                (Repair::Nothing, Some(rest)) => {
                    let appended = append(&*self.target, id, rest).await;
                    appended.map_err(CopyError::of(Side::Target))?;
                }
                (Repair::Writes(writes), Some(rest)) => {
                    self.writer.write(writes, self.writer.state.clone()).await?;
                    let appended = append(&*self.target, id, rest).await;
                    appended.map_err(CopyError::of(Side::Target))?;
                }
            }
            pass.repaired.1 += 1;
        }
        Ok(())
    }

    async fn add(&mut self, item: &OperationWithLog) -> Result<(), CopyError> {
        let mut next = self.writer.state.clone();
        next.operations += 1;
        self.writer.write(vec![import(item)], next).await?;
        let id = item.operation.row.id;
        let appended = append(&*self.target, id, &item.log).await;
        appended.map_err(CopyError::of(Side::Target))
    }

    /// Deletes an operation that the target should not have: ends, unpins and sweeps it.
    async fn delete_extra(&mut self, operation: &Operation) -> Result<(), CopyError> {
        let id = operation.row.id;
        let at_target = CopyError::of(Side::Target);
        let mut writes = Vec::new();
        if operation.row.finished.is_none() {
            writes.push(Write::Advance {
                operation: id,
                next: Next::Done(Outcome::Cancelled),
                detail: None,
                progress: None,
            });
        }
        if operation.row.pinned {
            writes.push(Write::Unpin(id));
        }
        if !writes.is_empty() {
            self.writer.write(writes, self.writer.state.clone()).await?;
        }
        let finished_before = match operation.row.finished {
            Some(finished) => StoreTime(finished.0.saturating_add(1)),
            None => {
                let now = self.target.now().await.map_err(&at_target)?;
                now.plus(Duration::from_secs(1))
            }
        };
        let sweep = Sweep::Operations {
            lanes: operation.row.lane.as_bytes().to_vec(),
            outcome: None,
            finished_before,
            limit: SWEEP,
        };
        while self
            .target
            .operation(id)
            .await
            .map_err(&at_target)?
            .is_some()
        {
            if self.target.sweep(&sweep).await.map_err(&at_target)? == 0 {
                // It cannot be deleted; the passes end and report a difference.
                return Ok(());
            }
        }
        Ok(())
    }
}

type Documents = (BTreeMap<Key, IndexedDocument>, DiffWindow<Key>);

async fn documents(store: &dyn Store, from: &[u8], side: Side) -> Result<Documents, CopyError> {
    let page = store
        .scan_documents(from, PAGE)
        .await
        .map_err(CopyError::of(side))?;
    let at_end = page.len() < PAGE;
    let indexed: BTreeMap<Key, IndexedDocument> = page
        .into_iter()
        .filter(|indexed| !is_ours(&indexed.document.key))
        .map(|indexed| (indexed.document.key.clone(), indexed))
        .collect();
    let keys = indexed.keys().cloned().collect();
    Ok((indexed, DiffWindow { keys, at_end }))
}

async fn operations(
    store: &dyn Store,
    before: Option<OperationId>,
    side: Side,
) -> Result<DiffWindow<Reverse<OperationId>>, CopyError> {
    let rows = store.operations(&every(before, PAGE)).await;
    let rows = rows.map_err(CopyError::of(side))?;
    Ok(DiffWindow {
        at_end: rows.len() < PAGE,
        keys: rows.into_iter().map(|row| Reverse(row.id)).collect(),
    })
}
