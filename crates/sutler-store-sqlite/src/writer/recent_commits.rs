//! Which commit ids were seen, mostly without asking the file.
//!
//! Ids are made in nearly rising order. The latest are remembered here; of all others only the
//! largest is known. An id above that one that is not among the latest was never seen: exact, and no
//! look-up. Only ids below it are looked up in the feed.

use std::collections::{HashSet, VecDeque};

/// How many are remembered: far more than the callers that can wait at once.
const REMEMBERED: usize = 8192;

/// Result of a lookup without reading the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommitIdLookup {
    /// It was seen.
    Seen,
    /// It was not.
    New,
    /// The file knows.
    AskTheFile,
}

/// The latest ids, and the largest of those before them.
#[derive(Default)]
pub(super) struct RecentCommits {
    latest: HashSet<u128>,
    order: VecDeque<u128>,
    largest_before: u128,
}

impl RecentCommits {
    /// Remembers nothing but the largest id in the file.
    pub(super) fn above(largest: u128) -> Self {
        Self {
            largest_before: largest,
            ..Self::default()
        }
    }

    pub(super) fn knows(&self, id: u128) -> CommitIdLookup {
        if self.latest.contains(&id) {
            CommitIdLookup::Seen
        } else if id > self.largest_before {
            CommitIdLookup::New
        } else {
            CommitIdLookup::AskTheFile
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

    /// The feed was trimmed, and with it the memory of some commits.
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
        assert_eq!(recent.knows(200), CommitIdLookup::Seen);
        assert_eq!(recent.knows(150), CommitIdLookup::New);
        assert_eq!(recent.knows(99), CommitIdLookup::AskTheFile);
    }

    #[test]
    fn what_falls_out_of_the_memory_is_looked_up_and_never_called_new() {
        let mut recent = RecentCommits::above(0);
        for id in 1..=REMEMBERED as u128 + 10 {
            recent.add(id);
        }
        assert_eq!(recent.knows(10), CommitIdLookup::AskTheFile);
        assert_eq!(recent.knows(11), CommitIdLookup::Seen);
    }
}
