//! A store behind a simulated connection that can be cut: lets stores without a connection take part in
//! the cases about broken ones. Also used by tests of code above a store.

use super::{Cut, StalledCommit};
use crate::clock::StoreTime;
use crate::commit::{Commit, CommitError};
use crate::document::{Document, IndexedDocument};
use crate::key::Key;
use crate::operation::{Operation, OperationId, OperationRow, PolledOperation, Queue, WorkerId};
use crate::query::{
    Changes, Cursor, List, LogChunk, OperationList, Page, Position, Renewal, Stats, StoreInfo,
    Sweep,
};
use crate::store::{LeaseError, Store, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A store behind a simulated connection.
pub struct UnreliableStore {
    inner: Arc<dyn Store>,
    cuts: Mutex<Cuts>,
}

#[derive(Default)]
struct Cuts {
    armed: VecDeque<Cut>,
    /// Number of commits cut in the middle: every other one arrives.
    halves: usize,
}

impl UnreliableStore {
    /// An intact connection to a store.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            cuts: Mutex::default(),
        }
    }

    /// Cuts the connection at the next commit that has no cut yet. Of those cut in the middle,
    /// the first is lost, the second arrives, and so on in turn.
    pub fn cut(&self, cut: Cut) {
        self.cuts().armed.push_back(cut);
    }

    /// Holds a commit back on this side until it is finished.
    pub fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        let inner = Arc::clone(&self.inner);
        Box::new(HeldCommit { inner, commit })
    }

    fn cuts(&self) -> MutexGuard<'_, Cuts> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cut for the next commit, and whether a commit cut in the middle arrives.
    fn next_cut(&self) -> Option<(Cut, bool)> {
        let mut cuts = self.cuts();
        let cut = cuts.armed.pop_front()?;
        cuts.halves += usize::from(cut == Cut::DuringCommit);
        Some((cut, cuts.halves.is_multiple_of(2)))
    }
}

struct HeldCommit {
    inner: Arc<dyn Store>,
    commit: Commit,
}

#[async_trait]
impl StalledCommit for HeldCommit {
    async fn finish(self: Box<Self>) -> Result<(), CommitError> {
        self.inner.commit(&self.commit).await
    }
}

#[async_trait]
impl Store for UnreliableStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        let broken = || StoreError::new("the wire was cut");
        match self.next_cut() {
            None => self.inner.commit(commit).await,
            Some((Cut::BeforeCommit, _)) => Err(CommitError::NotWritten(broken())),
            Some((Cut::DuringCommit, false)) => Err(CommitError::Unknown(broken())),
            Some((Cut::DuringCommit, true) | (Cut::AfterCommit, _)) => {
                // The response of the store is lost.
                drop(self.inner.commit(commit).await);
                Err(CommitError::Unknown(broken()))
            }
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.inner.get(key).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.inner.operation(id).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        self.inner.poll(lane, id).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.inner.list(list, after, limit).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        self.inner.scan_documents(from, limit).await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        self.inner.operations(list).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        self.inner.renew(worker, ttl).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.inner.claim(worker, queues).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.inner.release(worker).await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        self.inner.changes(after, limit).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.inner.hints()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.inner.feed_hints()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        self.inner.sweep(sweep).await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.inner.stats().await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        self.inner.info().await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.inner.now().await
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        self.inner.append_log(operation, text).await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        self.inner.read_log(operation, from, limit).await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        self.inner.reseal_log(operation, read, text).await
    }
}
