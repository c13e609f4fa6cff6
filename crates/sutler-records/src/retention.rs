//! Retention: removes finished operations, old documents and the old end of the change feed, in batches.
//!
//! Only the store decides what may be swept: operations that are done and that no document refers to.
//! When a sweep runs is decided by the schedules of the crate above.

use crate::{AUDIT, Documents, name_of_oldest_kept};
use std::time::Duration;
use sutler_journal::{
    Commit, Key, Kind, List, Lost, Outcome, Position, Run, StoreError, StoreTime, Sweep,
};
use tokio::time::Instant;

/// Operations or feed entries removed at a time: short enough not to delay other writes.
const BATCH: usize = 500;
/// Documents removed at a time.
const DOCUMENTS: usize = 50;
/// Pause before the next read of a store that does not answer.
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// Commits of the feed that are younger are never removed: a commit of unknown outcome is resolved by its id, within
/// minutes.
const COMMITS_REMEMBERED: Duration = Duration::from_secs(15 * 60);

/// How much of the change feed is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRetention {
    /// Maximum age of a commit.
    pub age: Duration,
    /// Maximum number of commits; those of the last quarter of an hour are kept in any case.
    pub commits_max: u64,
}

impl Default for FeedRetention {
    fn default() -> Self {
        Self {
            age: Duration::from_secs(24 * 3600),
            commits_max: 500_000,
        }
    }
}

/// Removes data that is past its retention, under the claim of a run. A store that does not answer ends
/// a removal early; the next run continues.
pub struct Retention<'a> {
    /// Documents of the realm.
    pub documents: &'a Documents,
    /// Run of the cleanup.
    pub run: &'a Run,
}

impl Retention<'_> {
    /// Removes operations of a kind of lane that ended at least `age` ago, of one outcome or of all.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn sweep_operations(
        &self,
        kind: Kind,
        outcome: Option<Outcome>,
        age: Duration,
    ) -> Result<u64, Lost> {
        let lanes = Key::prefix(&self.documents.realm, kind, &[]).unwrap_or_default();
        let operations = Sweep::Operations {
            lanes,
            outcome,
            finished_before: self.now().await?.minus(age),
            limit: BATCH,
        };
        self.sweep(&operations, u64::MAX).await
    }

    /// Removes commits of the change feed that are too old or too many, oldest first.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn sweep_feed(&self, kept: FeedRetention) -> Result<u64, Lost> {
        let now = self.now().await?;
        let feed = Sweep::Feed {
            before: now.minus(kept.age.max(COMMITS_REMEMBERED)),
            limit: BATCH,
        };
        let removed = self.sweep(&feed, u64::MAX).await?;
        let length = self.documents.store.feed_length().await;
        let length = self.answered(length).await?.unwrap_or(0);
        let feed = Sweep::Feed {
            before: now.minus(COMMITS_REMEMBERED),
            limit: BATCH,
        };
        let excess = length.saturating_sub(kept.commits_max);
        Ok(removed + self.sweep(&feed, excess).await?)
    }

    /// Removes audit entries that are at least `kept` and [`AUDIT_CLOCK_MARGIN`](crate::AUDIT_CLOCK_MARGIN) old, by the
    /// clock of the store.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn remove_audit(&self, kept: Duration) -> Result<u64, Lost> {
        let realm = &self.documents.realm;
        let list = List::Prefix(Key::prefix(realm, AUDIT, &[]).unwrap_or_default());
        let oldest = name_of_oldest_kept(self.now().await?, kept);
        let after = Position {
            value: Vec::new(),
            key: self.documents.key(AUDIT, &oldest),
        };
        self.remove_listed(&list, Some(&after)).await
    }

    /// Removes all documents of a list after a position.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn remove_listed(&self, list: &List, after: Option<&Position>) -> Result<u64, Lost> {
        let mut removed = 0;
        loop {
            let page = self.documents.store.list(list, after, DOCUMENTS).await;
            let page = self.answered(page).await?;
            let Some(page) = page.filter(|page| !page.documents.is_empty()) else {
                return Ok(removed);
            };
            for document in page.documents {
                let commit = Commit::new().remove(document.key, document.version);
                // Stale: the document was written again and must stay.
                if self.run.commit(commit).await?.is_ok() {
                    removed += 1;
                }
            }
        }
    }

    /// Sweeps at most this number, in batches with pauses for other writers.
    async fn sweep(&self, what: &Sweep, most: u64) -> Result<u64, Lost> {
        let mut removed = 0;
        while removed < most {
            let began = Instant::now();
            let limit = BATCH.min(usize::try_from(most - removed).unwrap_or(BATCH));
            let swept = self.documents.store.sweep(&limited(what, limit)).await;
            let swept = self.answered(swept).await?.unwrap_or(0);
            removed += swept;
            if swept < limit as u64 {
                break;
            }
            self.run.sleep(Sweep::rest_after(began.elapsed())).await?;
        }
        Ok(removed)
    }

    /// The store's time; also sets the clock of the documents. The beginning of time if the store does not answer:
    /// then nothing is old.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn now(&self) -> Result<StoreTime, Lost> {
        let now = self.documents.store.now().await;
        let now = self.answered(now).await?;
        if let Some(now) = now {
            self.documents.clock.set(now);
        }
        Ok(now.unwrap_or_default())
    }

    async fn answered<T>(&self, answer: Result<T, StoreError>) -> Result<Option<T>, Lost> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(cause) => {
                self.run.wait_for_store(&cause, STORE_PAUSE).await?;
                Ok(None)
            }
        }
    }
}

/// The same sweep with another limit.
fn limited(sweep: &Sweep, to: usize) -> Sweep {
    let mut sweep = sweep.clone();
    match &mut sweep {
        Sweep::Operations { limit, .. } | Sweep::Feed { limit, .. } => *limit = to,
    }
    sweep
}
