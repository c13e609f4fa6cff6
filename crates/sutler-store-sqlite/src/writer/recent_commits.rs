//! Ids of applied commits, usually without reading the file.
//!
//! Ids are created in nearly ascending order. The latest are in memory; of all others only the
//! largest is known. An id above that one that is not among the latest was never applied: exact, and
//! without a lookup. Only ids below it are looked up in the feed.

use std::collections::{HashSet, VecDeque};

/// Number of ids in memory: many more than callers can wait at once.
const REMEMBERED: usize = 8192;

/// Result of a lookup without reading the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommitIdLookup {
    /// It was applied.
    Known,
    /// It was not applied.
    New,
    /// Only the file knows.
    CheckFile,
}

/// The latest ids, and the largest of those before them.
#[derive(Default)]
pub(super) struct RecentCommits {
    latest: HashSet<u128>,
    order: VecDeque<u128>,
    largest_before: u128,
}

impl RecentCommits {
    /// Starts with only the largest id in the file.
    pub(super) fn above(largest: u128) -> Self {
        Self {
            largest_before: largest,
            ..Self::default()
        }
    }

    pub(super) fn lookup(&self, id: u128) -> CommitIdLookup {
        if self.latest.contains(&id) {
            CommitIdLookup::Known
        } else if id > self.largest_before {
            CommitIdLookup::New
        } else {
            CommitIdLookup::CheckFile
        }
    }

    pub(super) fn add(&mut self, id: u128) {
        self.latest.insert(id);
        self.order.push_back(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.latest.remove(&oldest);
            self.largest_before = self.largest_before.max(oldest);
        }
    }

    /// Clears the ids after the feed was trimmed.
    pub(super) fn forget(&mut self) {
        let largest = self.latest.iter().copied().max().unwrap_or_default();
        *self = Self::above(self.largest_before.max(largest));
    }
}

#[cfg(test)]
mod tests {
    use super::{CommitIdLookup, REMEMBERED, RecentCommits};

    #[test]
    fn an_id_above_all_is_new_and_one_below_is_looked_up() {
        let mut recent = RecentCommits::above(100);
        recent.add(200);
        assert_eq!(recent.lookup(200), CommitIdLookup::Known);
        assert_eq!(recent.lookup(150), CommitIdLookup::New);
        assert_eq!(recent.lookup(99), CommitIdLookup::CheckFile);
    }

    #[test]
    fn an_evicted_id_is_looked_up_and_never_new() {
        let mut recent = RecentCommits::above(0);
        for id in 1..=REMEMBERED as u128 + 10 {
            recent.add(id);
        }
        assert_eq!(recent.lookup(10), CommitIdLookup::CheckFile);
        assert_eq!(recent.lookup(11), CommitIdLookup::Known);
    }
}
