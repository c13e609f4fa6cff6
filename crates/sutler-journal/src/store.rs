//! The contract of a database for the journal. The suite in `conformance` verifies it.
//!
//! A store maps and stores; it makes no decisions and reads no bodies. Read [`Store::commit`]
//! first: everything durable goes through it.

use crate::clock::StoreTime;
use crate::commit::{Commit, CommitError};
use crate::document::{Document, IndexedDocument};
use crate::key::Key;
use crate::operation::{Operation, OperationId, OperationRow, PolledOperation, Queue, WorkerId};
use crate::query::{
    Changes, Cursor, List, LogChunk, OperationList, Page, Position, Renewal, Stats, StoreInfo,
    Sweep,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;
use tokio::sync::watch;

/// Longest chunk of a run's log.
pub const LOG_CHUNK_BYTES_MAX: usize = 64 * 1024;
/// Longest log of one operation; later output is dropped.
pub const LOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest time of a call of [`Store::claim`].
pub const CLAIM_TIME_MAX: Duration = Duration::from_secs(15);

/// The store cannot serve the call. The text is for operators and contains no secret and no content.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(
    String,
    #[source] Option<Box<dyn std::error::Error + Send + Sync>>,
);

impl StoreError {
    /// An error with a sentence that describes the failure.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into(), None)
    }

    /// A sentence and its cause.
    pub fn caused(
        sentence: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self(sentence.into(), Some(cause.into()))
    }
}

/// Why a worker must stop.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Its lease expired: it must drop all its work and continue under a new id.
    #[error("the lease ran out")]
    Lost,
    /// The store cannot serve the call.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// For stores: ends a call of [`Store::renew`] or [`Store::claim`] with an error after its time limit, whatever
/// the server does.
///
/// # Errors
/// That of the call, or `Store` if it has not ended in time.
pub async fn lease_call_within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, LeaseError>>,
) -> Result<T, LeaseError> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer,
        Err(_) => Err(LeaseError::Store(StoreError::new(format!(
            "the store did not answer within {limit:?}: see that its server runs and is not overloaded"
        )))),
    }
}

/// Durable storage of documents, operations, leases and changes.
///
/// # Guarantees
/// - Every method sees all commits acknowledged before it was called.
/// - Lease expiry and due times use the store's own clock.
/// - A commit that returns an error other than [`CommitError::Unknown`] changed nothing. Of other methods, the
///   outcome after an error is unknown.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Applies all writes or none, in one round trip.
    ///
    /// # Guarantees
    /// After `Ok`, no crash, power cut or loss of the process loses any of it: the response is
    /// sent after the fsync that covers it. Repeating an applied commit is `Ok` and changes
    /// nothing, as long as the feed remembers it. After `Stale` or `NotWritten` nothing was
    /// written. Commits that touch different keys and operations never make each other stale.
    ///
    /// # Errors
    /// See [`CommitError`]; a commit that [`Commit::check`] refuses is `NotWritten`. `Stale` names
    /// the first expectation that does not hold, else the first write that cannot be applied.
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError>;

    /// Reads one document.
    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError>;

    /// Reads one whole operation.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError>;

    /// Reads the row of an operation of this lane; `None` if there is none in this lane.
    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError>;

    /// Lists documents in index order. Rows visited ≤ `limit` + a constant, at any position. A page shows one
    /// moment: a document is listed under terms that it has in the version that is returned.
    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Documents with their terms, by key, from these bytes on, at most `limit`; for copying or
    /// inspecting a whole store. Covers all realms and kinds.
    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError>;

    /// Lists operations, newest first.
    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError>;

    /// Creates or extends the one lease that covers all claims of a worker: it expires `ttl` from
    /// now. An unknown id gets a new lease; an id whose lease expired can never get one again.
    ///
    /// # Guarantees
    /// Ends within `ttl`, also if the store's server does not respond and does not close its connections. A
    /// response that takes longer is useless: the lease counts from a moment between call and response, and a
    /// worker, which does not know that moment, counts from its call.
    ///
    /// # Errors
    /// `Lost` if the lease had expired, even if its operations are not claimed yet. After `Store` the lease may
    /// be extended or not, now or later.
    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError>;

    /// Claims operations for a worker that holds a lease: from each queue at most its number, those
    /// ready and due, oldest due time first, and those running under an expired lease.
    /// The fence grows by one; `takeovers` grows if the operation was running; the attempt stays.
    /// Returns the operations as they are after the claim.
    ///
    /// # Guarantees
    /// Ends within [`CLAIM_TIME_MAX`], as [`Store::renew`] within its time.
    ///
    /// # Errors
    /// `Lost` if the worker holds no lease. After `Store`, operations may be claimed, now or later; the next
    /// renewal returns them as held.
    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError>;

    /// Ends a worker's lease; operations it still ran become ready and due now, without a takeover. A
    /// no-op if the worker is unknown. The id is not used again.
    async fn release(&self, worker: WorkerId) -> Result<(), StoreError>;

    /// The feed of changes after a cursor, in commit order, at most about `limit` changes: whole
    /// commits, and at least one if there is one. A commit may be held back while another that may get
    /// an earlier position is still open; otherwise the feed is as current as any other read.
    ///
    /// # Guarantees
    /// Cursors are made by [`Cursor::of_number`]: a cursor of the same number reads the same changes, and a later one
    /// has a larger number.
    ///
    /// # Errors
    /// A cursor without a number, and one that the store cannot have made.
    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError>;

    /// A counter that increases when an operation may have become claimable. Only a hint: it may be
    /// late or lost, so callers also poll periodically.
    fn hints(&self) -> watch::Receiver<u64>;

    /// A counter that increases when the feed may have grown: soon after every commit of this process, and after those
    /// of other replicas where the store learns of them anyway. Only a hint, as [`Store::hints`]: it costs no statement
    /// and no notification, so callers also read the feed periodically.
    fn feed_hints(&self) -> watch::Receiver<u64>;

    /// Deletes, and returns how many. Never deletes an unfinished or pinned operation.
    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError>;

    /// Counts. May visit every unfinished operation, so not for a hot path.
    async fn stats(&self) -> Result<Stats, StoreError>;

    /// Facts about the store itself, for operators. May read everything.
    async fn info(&self) -> Result<StoreInfo, StoreError>;

    /// Number of commits in the feed. Overridden where [`Store::info`] reads more than that.
    async fn feed_length(&self) -> Result<u64, StoreError> {
        Ok(self.info().await?.feed)
    }

    /// The store's clock.
    async fn now(&self) -> Result<StoreTime, StoreError>;

    /// Appends to the log of an operation, outside commits. Chunks over the limits are truncated or
    /// dropped, as are all chunks for an operation that does not exist.
    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError>;

    /// Reads a log from a chunk number on, at most `limit` chunks.
    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError>;

    /// Replaces a chunk of a log by the same text under another key, if it is still as read. Returns whether
    /// the chunk has the new text afterwards, so repeating the call is harmless. Nothing is truncated, and the
    /// length of the log counts as before. Outside commits, as the whole log.
    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError>;
}
