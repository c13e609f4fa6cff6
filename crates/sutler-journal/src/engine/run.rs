//! One execution of one operation, as an executor uses it.
//!
//! Every write carries the fence. After the claim is lost every write returns [`Lost`].

use super::Engine;
use super::run_table::{RunCounters, RunHandle};
use crate::commit::{
    Commit, CommitError, CommitSizeError, Due, Expect, Next, StaleItem, Start, Write,
};
use crate::metrics;
use crate::operation::{Fence, Operation, OperationId, Queue, State};
use crate::store::{Store, StoreError};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// First wait before a failed commit is tried again; doubles up to the last.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(2);

/// Age of its knowledge from which a run confirms its claim before it has an effect outside.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

/// The claim is lost: stop without reporting anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the claim was lost")]
pub struct Lost;

/// Why a commit under a claim was given up.
#[derive(Debug, thiserror::Error)]
pub enum RunCommitError {
    /// The claim is lost.
    #[error("the claim was lost")]
    Lost,
    /// The store accepted no write within the time limit. Whether the last attempt was written is unknown.
    #[error("the store accepted no write in time")]
    Refused(#[source] StoreError),
}

/// Why a commit under a claim was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitRejectedError {
    /// Another commit came first: read and decide again.
    #[error("a newer write came first ({0:?})")]
    Stale(StaleItem),
    /// It is over the limits of every store.
    #[error("the commit is too large")]
    TooLarge(#[source] CommitSizeError),
}

/// A claimed operation.
pub struct Run {
    operation: Operation,
    engine: Engine,
    store: Arc<dyn Store>,
    cancel: CancellationToken,
    lost: CancellationToken,
    counters: Arc<RunCounters>,
    /// The operation was in its state then or later.
    read_at: Instant,
}

/// Counts a commit until it is answered or given up.
struct CountedCommit<'a>(&'a RunCounters);

impl<'a> CountedCommit<'a> {
    fn begin(counters: &'a RunCounters) -> Self {
        counters.commits.fetch_add(1, Ordering::SeqCst);
        Self(counters)
    }
}

impl Drop for CountedCommit<'_> {
    fn drop(&mut self) {
        self.0.commits.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Run {
    pub(super) fn new(
        (operation, read_at): (Operation, Instant),
        engine: Engine,
        handle: &RunHandle,
    ) -> Self {
        Self {
            operation,
            store: engine.0.store.clone(),
            engine,
            cancel: handle.cancel.clone(),
            lost: handle.lost.clone(),
            counters: handle.counters.clone(),
            read_at,
        }
    }

    /// The engine that runs it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The operation as it was when claimed.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Its id.
    pub fn id(&self) -> OperationId {
        self.operation.row.id
    }

    /// The queue of the operation.
    pub(super) fn queue(&self) -> &Queue {
        &self.operation.row.queue
    }

    /// Whether a commit of this run has given the claim back or ended the operation.
    pub(super) fn has_ended_claim(&self) -> bool {
        self.counters.claim_ended.load(Ordering::SeqCst)
    }

    /// Fencing token of the claim.
    pub fn fence(&self) -> Fence {
        self.operation.row.fence
    }

    /// Fires when the operation is cancelled.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Fires when the claim is lost: nothing can be written any more.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// The store, for reads under the claim.
    ///
    /// # Errors
    /// The claim is lost.
    pub fn checked_store(&self) -> Result<&dyn Store, Lost> {
        if self.lost.is_cancelled() {
            Err(Lost)
        } else {
            Ok(self.store.as_ref())
        }
    }

    /// Commits under the fence. An unknown outcome is resolved by repeating. While the store accepts no
    /// writes, waits for it as long as the claim is held.
    ///
    /// # Errors
    /// `Ok(Err(rejected))`: another commit came first, or the commit is too large; decide again.
    /// `Err(Lost)`: stop.
    pub async fn commit(&self, commit: Commit) -> Result<Result<(), CommitRejectedError>, Lost> {
        match self.commit_until(commit, None).await {
            Ok(committed) => Ok(committed),
            Err(RunCommitError::Lost | RunCommitError::Refused(_)) => Err(Lost),
        }
    }

    /// Commits like [`Run::commit`], but waits at most this long for a store that accepts no writes.
    ///
    /// # Errors
    /// `Ok(Err(rejected))`: another commit came first, or the commit is too large; decide again.
    /// `Err(error)`: stop; `Refused` if the store accepts no writes.
    pub async fn commit_within(
        &self,
        commit: Commit,
        within: Duration,
    ) -> Result<Result<(), CommitRejectedError>, RunCommitError> {
        self.commit_until(commit, Some(Instant::now() + within))
            .await
    }

    async fn commit_until(
        &self,
        commit: Commit,
        until: Option<Instant>,
    ) -> Result<Result<(), CommitRejectedError>, RunCommitError> {
        let commit = commit.fenced(self.id(), self.fence());
        if let Err(why) = commit.check() {
            return Ok(Err(CommitRejectedError::TooLarge(why)));
        }
        let fence_at = commit.expects().len() - 1;
        debug_assert!(matches!(commit.expects()[fence_at], Expect::Fence(..)));
        let mut wait = AGAIN_FIRST;
        let _counted = CountedCommit::begin(&self.counters);
        loop {
            match self.store.commit(&commit).await {
                Ok(()) => {
                    for write in commit.writes() {
                        self.note_write(write);
                    }
                    return Ok(Ok(()));
                }
                Err(CommitError::Stale(StaleItem::Expect(n))) if n == fence_at => {
                    return Err(RunCommitError::Lost);
                }
                Err(CommitError::Stale(which)) => {
                    return Ok(Err(CommitRejectedError::Stale(which)));
                }
                Err(CommitError::NotWritten(cause) | CommitError::Unknown(cause)) => {
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return Err(RunCommitError::Refused(cause));
                    }
                    let waited = self.wait_for_store(&cause, wait).await;
                    waited.map_err(|Lost| RunCommitError::Lost)?;
                }
            }
            wait = (wait * 2).min(AGAIN_LAST);
        }
    }

    /// Acts on a write of this run that is committed.
    fn note_write(&self, write: &Write) {
        match write {
            Write::Advance {
                operation,
                next,
                progress,
                ..
            } if *operation == self.id() => self.note_advance(*next, progress.is_some()),
            // Without waiting for a renewal.
            Write::Cancel(id) => self.engine.notify_cancelled(*id),
            Write::Advance { .. }
            | Write::Start(_)
            | Write::Wake(_)
            | Write::Import(_)
            | Write::Put { .. }
            | Write::Remove(_)
            | Write::Unpin(_)
            | Write::Reseal { .. } => {
                if let Some((queue, wait)) = self.claimable(write) {
                    self.engine.look_within(queue, wait);
                }
            }
        }
    }

    /// Acts on a change of this operation. When its queue is looked at follows from the result of the run.
    fn note_advance(&self, next: Next, progress: bool) {
        if next != Next::Same {
            self.counters.claim_ended.store(true, Ordering::SeqCst);
        } else if progress {
            // New memos set the number of takeovers back: this run is not suspected any more.
            self.counters.suspicion.store(0, Ordering::SeqCst);
        }
        if matches!(next, Next::Retry(_)) {
            metrics::record_retry();
        }
    }

    /// The queue in which a write makes another operation claimable, and after which time. A write that names an
    /// operation only is taken for one in the queue of this run, as most are; for others there are hints.
    fn claimable<'a>(&'a self, write: &'a Write) -> Option<(&'a Queue, Duration)> {
        let wait = |due: &Due| match due {
            Due::Now => Duration::ZERO,
            Due::In(wait) => *wait,
        };
        match write {
            Write::Start(new) => match &new.start {
                Start::Ready(due) => Some((&new.queue, wait(due))),
                Start::Waiting | Start::Claimed(_) => None,
            },
            Write::Advance {
                next: Next::Ready(due) | Next::Retry(due) | Next::PutBack(due),
                ..
            } => Some((self.queue(), wait(due))),
            Write::Wake(_) => Some((self.queue(), Duration::ZERO)),
            Write::Import(operation) => Some((&operation.row.queue, Duration::ZERO)),
            Write::Advance { .. }
            | Write::Put { .. }
            | Write::Remove(_)
            | Write::Cancel(_)
            | Write::Unpin(_)
            | Write::Reseal { .. } => None,
        }
    }

    /// To be called before something begins that has an effect outside. If the claim was made or listed a while ago, the
    /// operation is read again: another commit may have ended or cancelled it meanwhile, which a renewal shows only later.
    /// The answer may have been late as well, so the read is repeated once: a store that is always slow delays a beginning
    /// and does not prevent it.
    ///
    /// # Errors
    /// The operation is not claimed by this run any more.
    pub async fn confirm_claim(&self) -> Result<(), Lost> {
        if self.read_at.elapsed() < CONFIRM_AFTER {
            return Ok(());
        }
        let mut wait = AGAIN_FIRST;
        let mut is_repeated = false;
        loop {
            let sent = Instant::now();
            match self.checked_store()?.operation(self.id()).await {
                Ok(Some(Operation { row, .. }))
                    if row.state == State::Running && row.fence == self.fence() =>
                {
                    if row.cancel {
                        self.cancel.cancel();
                    }
                    if is_repeated || sent.elapsed() < CONFIRM_AFTER {
                        return Ok(());
                    }
                    is_repeated = true;
                }
                Ok(_) => return Err(Lost),
                Err(cause) => self.wait_for_store(&cause, wait).await?,
            }
            wait = (wait * 2).min(AGAIN_LAST);
        }
    }

    /// Writes detail and progress without changing the state of the operation.
    pub async fn save_progress(
        &self,
        detail: Option<Bytes>,
        progress: Option<Bytes>,
    ) -> Result<(), Lost> {
        self.step(Next::Same, detail, progress).await
    }

    pub(super) async fn step(
        &self,
        next: Next,
        detail: Option<Bytes>,
        progress: Option<Bytes>,
    ) -> Result<(), Lost> {
        let commit = Commit::new().advance(self.id(), next, detail, progress);
        // Without other expectations only the end of this operation can make the commit stale.
        self.commit(commit).await?.map_err(|_| Lost)
    }

    /// Waits before the store is tried again, as long as the claim is held.
    pub async fn wait_for_store(&self, cause: &StoreError, wait: Duration) -> Result<(), Lost> {
        tracing::warn!(operation.id = %self.id(), error = %cause, "the store did not serve a call; trying again");
        self.sleep(wait).await
    }

    /// Sleeps, as long as the claim is held.
    pub async fn sleep(&self, wait: Duration) -> Result<(), Lost> {
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => Ok(()),
            () = self.lost.cancelled() => Err(Lost),
        }
    }
}
