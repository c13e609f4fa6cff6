//! Adds unindexed documents to the indexes, a few with every group.
//!
//! A run visits all unindexed documents in order of their keys and ends at the last; then all up to
//! the number that was last when it began are indexed, and the file records that. A crash in the middle of
//! a run loses nothing: documents indexed so far are found in the indexes (`unindexed_documents.rs`).

use super::write_session::WriteSession;
use crate::codec;
use rusqlite::Result;

/// Number of unindexed documents that starts a run. More share more pages, and take longer to open.
const UNINDEXED_MAX: usize = 8192;
/// Indexed with a group, in addition to as many as it has writes: always more than the group can add.
const INDEXED_MORE: usize = 64;

/// A run in progress.
pub(super) struct BackfillRun {
    /// Everything up to this key is done.
    reached: Box<[u8]>,
    /// Everything up to this number is done at the end of the run.
    upto: i64,
}

impl WriteSession<'_> {
    /// Starts or continues a run, at the beginning of a group.
    pub(super) fn backfill_some(&mut self, writes: usize) -> Result<()> {
        let run = match self.memory.backfill.take() {
            Some(run) => run,
            None if self.shared.unindexed.len() < UNINDEXED_MAX => return Ok(()),
            None => BackfillRun {
                reached: Box::default(),
                upto: self.memory.last.doc,
            },
        };
        let next = self
            .shared
            .unindexed
            .after(&run.reached, INDEXED_MORE + writes);
        let Some(reached) = next.last().map(|(key, _)| key.clone()) else {
            self.memory.tally.indexed = run.upto;
            return Ok(());
        };
        for (key, doc) in next {
            self.sql.doc_file.execute((&key[..], doc.number))?;
            self.enter_terms(doc.number, &key, &doc.terms)?;
            self.set_unindexed(&key, None);
        }
        self.memory.backfill = Some(BackfillRun {
            reached,
            upto: run.upto,
        });
        Ok(())
    }

    /// Adds all terms of a document to the index.
    pub(super) fn enter_terms(&mut self, number: i64, key: &[u8], terms: &[u8]) -> Result<()> {
        let ids = codec::ids_of(key);
        for (scope, value) in codec::terms(terms) {
            self.sql.term_add.execute((scope, value, ids, number))?;
        }
        Ok(())
    }
}
