//! Commits of unknown outcome.
//!
//! The transaction of such a commit may still be in flight. If the commit is repeated and is stale by now,
//! that result must stay true: so a mark is written first that voids every earlier attempt, wherever
//! it is. Without it an attempt could arrive when its expectations happen to hold again.

use crate::client::RequestEffect;
use crate::store::EtcdStore;
use crate::wire::{Compare, RequestOp, Txn};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use sutler_journal::{CommitError, CommitId};

/// Maximum unknown commits that are remembered; beyond that, the oldest are forgotten.
const UNKNOWN_MAX: usize = 10_000;
/// Lifetime of a mark in etcd. No request is in flight for this long.
const MARK_SECONDS: i64 = 3600;

/// Unknown commits, and the revision at which their attempts were voided; 0: they were not.
#[derive(Default)]
pub(crate) struct UnknownCommits(Mutex<BTreeMap<CommitId, i64>>);

impl UnknownCommits {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<CommitId, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an attempt was sent and its outcome is unknown.
    pub(crate) fn add(&self, commit: CommitId) {
        let mut unknown_commits = self.lock();
        unknown_commits.entry(commit).or_default();
        if unknown_commits.len() > UNKNOWN_MAX {
            unknown_commits.pop_first();
        }
    }

    /// Revision at which the attempts of a commit were voided; 0: they were not.
    pub(crate) fn void(&self, commit: CommitId) -> i64 {
        self.lock().get(&commit).copied().unwrap_or_default()
    }

    /// Removes a commit that was applied.
    pub(crate) fn clear(&self, commit: CommitId) {
        self.lock().remove(&commit);
    }

    fn is_open(&self, commit: CommitId) -> bool {
        self.lock().contains_key(&commit)
    }

    fn declared(&self, commit: CommitId, revision: i64) {
        self.lock().insert(commit, revision);
    }
}

impl EtcdStore {
    /// Ensures that no earlier attempt of a commit takes effect from now on; returns whether one already did.
    pub(crate) async fn void_attempts(&self, commit: CommitId) -> Result<bool, CommitError> {
        if !self.unknown_commits.is_open(commit) {
            return Ok(false);
        }
        let unknown = |trouble: crate::client::EtcdError| CommitError::Unknown(trouble.into());
        let lease = self.client.grant(MARK_SECONDS).await.map_err(unknown)?;
        let mark = RequestOp::leased(self.keys.void(commit), Vec::new(), Some(lease));
        let txn = Txn {
            compare: vec![Compare::absent(self.keys.commit(commit))],
            success: vec![mark],
            failure: Vec::new(),
        };
        let answer = self.client.txn(&txn, RequestEffect::Writes).await;
        let answer = answer.map_err(unknown)?;
        if answer.succeeded {
            self.unknown_commits
                .declared(commit, answer.header.revision.0);
        } else {
            self.unknown_commits.clear(commit);
        }
        Ok(!answer.succeeded)
    }
}
