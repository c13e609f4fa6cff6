//! The feed of changes, which also remembers commit ids.
//!
//! Commits are numbered under the store's lock when they are applied, so the numbers are in commit
//! order and nothing appears before a cursor later.

use crate::clock::StoreTime;
use crate::commit::CommitId;
use crate::key::Key;
use crate::operation::OperationId;
use crate::query::{Change, Changes, Cursor, Subject};
use crate::store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// One commit in the feed.
struct Record {
    commit: CommitId,
    at: StoreTime,
    subjects: Vec<Subject>,
}

/// Commits by number, from 1.
#[derive(Default)]
pub(super) struct Feed {
    records: BTreeMap<u64, Record>,
    commits: BTreeSet<CommitId>,
    last: u64,
    /// Number of the last commit that was trimmed.
    trimmed: u64,
}

impl Feed {
    pub(super) fn remembers(&self, commit: CommitId) -> bool {
        self.commits.contains(&commit)
    }

    pub(super) fn append(&mut self, commit: CommitId, at: StoreTime, subjects: Vec<Subject>) {
        self.last += 1;
        self.commits.insert(commit);
        let record = Record {
            commit,
            at,
            subjects,
        };
        self.records.insert(self.last, record);
    }

    /// Number of commits.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whole commits after a cursor, until there are `limit` changes; at least one commit.
    pub(super) fn after(
        &self,
        cursor: &Cursor,
        limit: usize,
        lane_of: impl Fn(OperationId) -> Option<Key>,
    ) -> Result<Changes, StoreError> {
        let requested = number(cursor)?;
        let mut reached = requested.max(self.trimmed);
        let mut changes = Vec::new();
        let newer = (Bound::Excluded(reached), Bound::Unbounded);
        for (number, record) in self.records.range(newer) {
            let full = changes.len() + record.subjects.len() > limit;
            if full && !changes.is_empty() {
                break;
            }
            changes.extend(record.subjects.iter().map(|subject| Change {
                commit: record.commit,
                subject: subject.clone(),
                lane: subject.operation().and_then(&lane_of),
            }));
            reached = *number;
        }
        Ok(Changes {
            changes,
            next: Cursor::of_number(reached),
            gap: requested < self.trimmed,
        })
    }

    /// Trims at most `limit` commits from before a moment; returns how many.
    pub(super) fn trim(&mut self, before: StoreTime, limit: usize) -> u64 {
        let mut count = 0;
        while count < limit as u64
            && let Some(entry) = self.records.first_entry()
            && entry.get().at < before
        {
            self.trimmed = *entry.key();
            self.commits.remove(&entry.remove().commit);
            count += 1;
        }
        count
    }
}

fn number(cursor: &Cursor) -> Result<u64, StoreError> {
    let foreign = "the cursor is none of this store's";
    cursor.number().ok_or_else(|| StoreError::new(foreign))
}
