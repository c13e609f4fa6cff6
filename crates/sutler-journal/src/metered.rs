//! A store wrapper that records how long calls take and whether writes succeed.
//!
//! Calls are forwarded unchanged. The metrics are defined in `metrics.rs`.

use crate::clock::StoreTime;
use crate::commit::{Commit, CommitError};
use crate::document::{Document, IndexedDocument};
use crate::key::Key;
use crate::metrics::{StoreCall, record_store_call};
use crate::operation::{Operation, OperationId, OperationRow, PolledOperation, Queue, WorkerId};
use crate::query::{
    Changes, Cursor, List, LogChunk, OperationList, Page, Position, Renewal, Stats, StoreInfo,
    Sweep,
};
use crate::store::{LeaseError, Store, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A store whose calls are measured.
pub struct MeteredStore {
    inner: Arc<dyn Store>,
    /// The last commit failed, or its outcome is unknown.
    write_failed: AtomicBool,
}

impl MeteredStore {
    /// Wraps a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            write_failed: AtomicBool::new(false),
        }
    }

    /// Whether the last commit failed because of the store.
    pub fn last_write_failed(&self) -> bool {
        self.write_failed.load(Ordering::Relaxed)
    }

    fn note_write(&self, failed: bool) {
        // Rarely changes: without a write the cache line stays shared.
        if self.write_failed.load(Ordering::Relaxed) != failed {
            self.write_failed.store(failed, Ordering::Relaxed);
        }
    }
}

async fn timed<T, E>(
    call: StoreCall,
    work: impl Future<Output = Result<T, E>>,
    is_fault: impl FnOnce(&E) -> bool,
) -> Result<T, E> {
    let began = Instant::now();
    let result = work.await;
    let served = !result.as_ref().is_err_and(is_fault);
    record_store_call(call, began.elapsed(), served);
    result
}

fn always(_: &StoreError) -> bool {
    true
}

fn not_lost(error: &LeaseError) -> bool {
    match error {
        LeaseError::Lost => false,
        LeaseError::Store(_) => true,
    }
}

fn not_stale(error: &CommitError) -> bool {
    match error {
        CommitError::Stale(_) => false,
        CommitError::NotWritten(_) | CommitError::Unknown(_) => true,
    }
}

#[async_trait]
impl Store for MeteredStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        let result = timed(StoreCall::Commit, self.inner.commit(commit), not_stale).await;
        self.note_write(result.as_ref().is_err_and(not_stale));
        result
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        timed(StoreCall::Get, self.inner.get(key), always).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        timed(StoreCall::Operation, self.inner.operation(id), always).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        timed(StoreCall::Poll, self.inner.poll(lane, id), always).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let work = self.inner.list(list, after, limit);
        timed(StoreCall::List, work, always).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        timed(
            StoreCall::List,
            self.inner.scan_documents(from, limit),
            always,
        )
        .await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        timed(StoreCall::Operations, self.inner.operations(list), always).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        timed(StoreCall::Renew, self.inner.renew(worker, ttl), not_lost).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        timed(StoreCall::Claim, self.inner.claim(worker, queues), not_lost).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        timed(StoreCall::Other, self.inner.release(worker), always).await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        timed(StoreCall::Changes, self.inner.changes(after, limit), always).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.inner.hints()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.inner.feed_hints()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        timed(StoreCall::Sweep, self.inner.sweep(sweep), always).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        timed(StoreCall::Stats, self.inner.stats(), always).await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        timed(StoreCall::Other, self.inner.info(), always).await
    }

    async fn feed_length(&self) -> Result<u64, StoreError> {
        timed(StoreCall::Other, self.inner.feed_length(), always).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        timed(StoreCall::Other, self.inner.now(), always).await
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        let work = self.inner.append_log(operation, text);
        timed(StoreCall::Other, work, always).await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        let work = self.inner.read_log(operation, from, limit);
        timed(StoreCall::Other, work, always).await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let work = self.inner.reseal_log(operation, read, text);
        timed(StoreCall::Other, work, always).await
    }
}
