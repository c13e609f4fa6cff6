//! A store in the memory of this process: for trials and tests.
//!
//! A real store, not a mock: it passes the same suite as the databases, and differs from them
//! only in that its data ends with the process. One lock guards one plain [`Tables`]; no code
//! waits while holding it. Read `memory/tables.rs` next for the data, `memory/apply.rs` for how
//! a commit changes it.

mod apply;
mod feed;
mod leases;
mod lists;
mod tables;

use crate::clock::{Clock, StoreTime, SystemClock};
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
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tables::Tables;
use tokio::sync::watch;

/// A store in memory. Cheap to create; its data ends with the process.
pub struct MemoryStore {
    tables: Mutex<Tables>,
    clock: Arc<dyn Clock>,
    hints: watch::Sender<u64>,
    feed_hints: watch::Sender<u64>,
}

impl MemoryStore {
    /// An empty store with the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::default()))
    }

    /// An empty store with this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            tables: Mutex::new(Tables::default()),
            clock,
            hints: watch::Sender::new(0),
            feed_hints: watch::Sender::new(0),
        }
    }

    /// Locks the tables; also returns the time, read after the lock, so that records have times in the
    /// order in which they are made.
    fn lock(&self) -> Result<(MutexGuard<'_, Tables>, StoreTime), StoreError> {
        match self.tables.lock() {
            Ok(tables) => Ok((tables, self.clock.now())),
            // A panic may have left half a commit behind: an error is better than wrong data.
            Err(_) => Err(StoreError::new(
                "the memory store was left in the middle of a change and answers no more",
            )),
        }
    }

    fn hint(&self) {
        self.hints.send_modify(|hints| *hints += 1);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        commit.check().map_err(|reason| {
            CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
        })?;
        let claimable = {
            let (mut tables, now) = self.lock().map_err(CommitError::NotWritten)?;
            if tables.feed.remembers(commit.id()) {
                return Ok(());
            }
            tables.verify(commit, now).map_err(CommitError::Stale)?;
            tables.apply(commit, now)
        };
        self.feed_hints.send_modify(|hints| *hints += 1);
        if claimable {
            self.hint();
        }
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.document(key).cloned())
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.operation(id).cloned())
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        let (tables, _) = self.lock()?;
        let row = tables.operation(id).map(|operation| &operation.row);
        Ok(row
            .filter(|row| row.lane == *lane)
            .map(|row| PolledOperation {
                state: row.state,
                verb: row.verb.clone(),
                detail: row.detail.clone(),
            }))
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.list(list, after, limit))
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.scan_documents(from, limit))
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.list_operations(list))
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        let (mut tables, now) = self.lock()?;
        tables.renew(worker, ttl, now).ok_or(LeaseError::Lost)
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        let (mut tables, now) = self.lock()?;
        tables.claim(worker, queues, now).ok_or(LeaseError::Lost)
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        let claimable = {
            let (mut tables, now) = self.lock()?;
            tables.release(worker, now)
        };
        if claimable {
            self.hint();
        }
        Ok(())
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let (tables, _) = self.lock()?;
        let lane_of = |id| tables.operation(id).map(|found| found.row.lane.clone());
        tables.feed.after(after, limit, lane_of)
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.feed_hints.subscribe()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        let (mut tables, _) = self.lock()?;
        Ok(tables.sweep(sweep))
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.stats())
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        let (tables, now) = self.lock()?;
        Ok(tables.info(now))
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        Ok(self.clock.now())
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        let (mut tables, _) = self.lock()?;
        tables.append_log(operation, text);
        Ok(())
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        let (tables, _) = self.lock()?;
        Ok(tables.read_log(operation, from, limit))
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let (mut tables, _) = self.lock()?;
        Ok(tables.reseal_log(operation, read, text))
    }
}
