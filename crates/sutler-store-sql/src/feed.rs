//! Reads of the feed: whole commits, in their order, up to a limit; the same for every server.
//!
//! Not here: which commits a server returns (`sql.rs` of each), and decoding changes (`codec.rs`).

use crate::codec;
use crate::error::SqlError;
use sutler_journal::{Change, Changes, CommitId, Cursor, StoreError};
use uuid::Uuid;

/// Maximum commits fetched by one statement.
const COMMITS_MAX: usize = 1000;

/// One row of a result: the number up to which the feed is trimmed, and a commit if there is one.
pub(crate) struct FeedEntry<'r> {
    pub(crate) trimmed: i64,
    pub(crate) commit: Option<(i64, Uuid, &'r [u8])>,
}

/// A page of the feed while it is read.
pub(crate) struct FeedPage {
    /// Whether the numbers have no gaps.
    dense: bool,
    requested: i64,
    limit: usize,
    reached: i64,
    trimmed: i64,
    changes: Vec<Change>,
}

impl FeedPage {
    /// A page that starts after a cursor. `dense`: every number belongs to a commit. If one is missing,
    /// its commit is not visible yet, though later ones are: MariaDB builds its view of finished
    /// transactions step by step, while they end. Otherwise numbers may be missing, and the server
    /// returns none before all below it have ended.
    pub(crate) fn new(cursor: &Cursor, limit: usize, dense: bool) -> Result<Self, StoreError> {
        Ok(Self::of(codec::seq_of(cursor)?, limit, dense))
    }

    fn of(requested: i64, limit: usize, dense: bool) -> Self {
        Self {
            dense,
            requested,
            limit,
            reached: requested,
            trimmed: 0,
            changes: Vec::new(),
        }
    }

    /// Cursor and limit of the next statement.
    pub(crate) fn wanted(&self) -> (i64, i64) {
        (self.reached, codec::limit(self.most()))
    }

    fn most(&self) -> usize {
        self.limit.clamp(1, COMMITS_MAX)
    }

    /// Adds whole commits up to the limit; returns whether the page is complete. Commits without changes
    /// do not end the feed.
    pub(crate) fn add<'r>(
        &mut self,
        entries: impl Iterator<Item = Result<FeedEntry<'r>, SqlError>>,
    ) -> Result<bool, SqlError> {
        let mut commits = 0;
        for entry in entries {
            let entry = entry?;
            self.trimmed = entry.trimmed;
            self.reached = self.reached.max(self.trimmed);
            let Some((seq, commit, subjects)) = entry.commit else {
                break;
            };
            if self.dense && seq != self.reached + 1 {
                return Ok(true);
            }
            let mut changes = codec::changes(CommitId(commit), subjects)?;
            if !self.changes.is_empty() && self.changes.len() + changes.len() > self.limit {
                return Ok(true);
            }
            self.changes.append(&mut changes);
            self.reached = seq;
            commits += 1;
        }
        Ok(commits < self.most() || !self.changes.is_empty())
    }

    pub(crate) fn into_changes(self) -> Changes {
        Changes {
            changes: self.changes,
            next: Cursor::of_number(self.reached.unsigned_abs()),
            gap: self.requested < self.trimmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FeedEntry, FeedPage};
    use crate::codec;
    use sutler_journal::{Cursor, OperationId, Subject};
    use uuid::Uuid;

    /// Reads commits of one change each; returns the number read, and the last position.
    fn read(mut page: FeedPage, trimmed: i64, seqs: &[i64]) -> (usize, Cursor) {
        let subject = codec::subject(&Subject::Operation(OperationId(Uuid::nil())));
        let entry = |seq: &i64| {
            Ok(FeedEntry {
                trimmed,
                commit: Some((*seq, Uuid::from_u128(1), &subject[..])),
            })
        };
        assert!(page.add(seqs.iter().map(entry)).unwrap());
        let read = page.into_changes();
        (read.changes.len(), read.next)
    }

    #[test]
    fn a_dense_feed_is_not_read_past_a_missing_number() {
        let dense = |after| FeedPage::of(after, 10, true);
        let at = Cursor::of_number;
        assert_eq!(read(dense(0), 0, &[1, 2, 3]), (3, at(3)));
        assert_eq!(read(dense(0), 0, &[1, 2, 4]), (2, at(2)));
        assert_eq!(read(dense(4), 0, &[6]), (0, at(4)));
        assert_eq!(read(dense(0), 7, &[8, 9]), (2, at(9)));
        assert_eq!(read(dense(0), 7, &[9]), (0, at(7)));
        let sparse = FeedPage::of(0, 10, false);
        assert_eq!(read(sparse, 0, &[1, 2, 4]), (3, at(4)));
    }
}
