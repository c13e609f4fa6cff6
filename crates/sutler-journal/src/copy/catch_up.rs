//! Follows the feed of the source until few changes are left.
//!
//! The feed names the subject of a change; the current state is read and copied. So repeated changes are
//! harmless, and it does not matter that the feed has no claims.

use super::batch_writer::{batches, sizes};
use super::bulk_copy::{is_done, put};
use super::copy_state::{Base64Bytes, CopyPosition, CopyState, is_ours};
use super::operation_with_log::read_with_logs;
use super::{CHANGES_MAX, CopyError, CopyStep, Side, StoreCopy};
use crate::commit::Write;
use crate::key::Key;
use crate::operation::OperationId;
use crate::query::{Change, Cursor, Subject};
use std::collections::BTreeSet;

/// Result of following the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUpResult {
    /// Few enough changes are left.
    CaughtUp,
    /// The feed was trimmed before it was read.
    FeedGap,
}

/// Documents and operations to copy again.
#[derive(Debug, Default, PartialEq, Eq)]
struct ChangedItems {
    documents: BTreeSet<Key>,
    operations: BTreeSet<OperationId>,
}

fn touched(changes: &[Change]) -> ChangedItems {
    let mut touched = ChangedItems::default();
    for change in changes {
        match &change.subject {
            Subject::Put(key) | Subject::Removed(key) if is_ours(key) => {}
            Subject::Put(key) | Subject::Removed(key) => {
                touched.documents.insert(key.clone());
            }
            Subject::Operation(id) => {
                touched.operations.insert(*id);
            }
        }
    }
    touched
}

impl StoreCopy {
    /// Follows the feed until a read returns at most `enough` changes.
    pub(super) async fn follow(&mut self, enough: usize) -> Result<CatchUpResult, CopyError> {
        self.report_step(CopyStep::Following);
        loop {
            let cursor = Cursor(self.writer.state.feed.0.clone());
            let part = self.source.changes(&cursor, CHANGES_MAX).await;
            let part = part.map_err(CopyError::of(Side::Source))?;
            let feed = Base64Bytes(part.next.0);
            if part.gap {
                let from = Base64Bytes::default();
                let next = CopyState {
                    feed,
                    place: CopyPosition::Documents { from },
                    ..self.writer.state.clone()
                };
                self.writer.write(Vec::new(), next).await?;
                return Ok(CatchUpResult::FeedGap);
            }
            let count = part.changes.len();
            let touched = touched(&part.changes);
            self.copy_ended(&touched.operations).await?;
            let writes = self.present(&touched.documents).await?;
            for range in batches(&sizes(&writes)) {
                let some = writes.get(range).unwrap_or_default().to_vec();
                self.writer.write(some, self.writer.state.clone()).await?;
            }
            if feed != self.writer.state.feed {
                let next = CopyState {
                    feed,
                    ..self.writer.state.clone()
                };
                self.writer.write(Vec::new(), next).await?;
            }
            self.progress
                .send_modify(|progress| progress.changes += count as u64);
            self.report_step(CopyStep::Following);
            if count <= enough {
                return Ok(CatchUpResult::CaughtUp);
            }
        }
    }

    async fn copy_ended(&mut self, ids: &BTreeSet<OperationId>) -> Result<(), CopyError> {
        let ids: Vec<OperationId> = ids.iter().copied().collect();
        let found = read_with_logs(&self.source, &ids).await;
        let found = found.map_err(CopyError::of(Side::Source))?;
        for item in found.iter().filter(|it| is_done(it.operation.row.state)) {
            self.copy_ended_operation(item).await?;
        }
        Ok(())
    }

    /// The writes that make these documents equal to the source's current ones.
    pub(super) async fn present(&self, keys: &BTreeSet<Key>) -> Result<Vec<Write>, CopyError> {
        let mut writes = Vec::with_capacity(keys.len());
        for key in keys {
            let found = self.source.scan_documents(key.as_bytes(), 1).await;
            let found = found.map_err(CopyError::of(Side::Source))?;
            let mut found = found.into_iter();
            let here = found.next().filter(|indexed| indexed.document.key == *key);
            writes.push(match here.and_then(put) {
                Some(write) => write,
                None => Write::Remove(key.clone()),
            });
        }
        Ok(writes)
    }
}

#[cfg(test)]
mod tests {
    use super::touched;
    use crate::commit::CommitId;
    use crate::copy::copy_state;
    use crate::key::{Key, Kind, Realm};
    use crate::operation::OperationId;
    use crate::query::{Change, Subject};
    use uuid::Uuid;

    #[test]
    fn each_changed_record_is_read_once() {
        let realm = Realm::new("r").unwrap();
        let key = |id: &str| Key::new(&realm, Kind::new("thing"), &[id]).unwrap();
        let id = OperationId::fresh();
        let changes = [
            Subject::Put(key("a")),
            Subject::Removed(key("a")),
            Subject::Operation(id),
            Subject::Put(key("b")),
            Subject::Operation(id),
            Subject::Put(copy_state::key()),
        ]
        .map(|subject| Change {
            commit: CommitId(Uuid::nil()),
            subject,
            lane: None,
        });
        let found = touched(&changes);
        assert!(found.documents.iter().eq(&[key("a"), key("b")]));
        assert!(found.operations.iter().eq([&id]));
    }
}
