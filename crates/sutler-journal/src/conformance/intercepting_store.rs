//! A store wrapper with a hook that receives every call and decides what to do with it.
//!
//! [`super::UnreliableStore`] breaks commits as a connection does. This one breaks any call, once:
//! tests use it to make code above a store fail, repeat and crash at each of its steps.

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
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// A call of a store, as passed to a hook.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// [`Store::commit`].
    Commit(&'a Commit),
    /// [`Store::renew`].
    Renew(WorkerId),
    /// [`Store::claim`].
    Claim(WorkerId),
    /// [`Store::release`].
    Release(WorkerId),
    /// [`Store::sweep`].
    Sweep(&'a Sweep),
    /// Any read, by the method's name.
    Read(&'static str),
}

/// Decision about an intercepted call.
#[derive(Clone, Debug)]
pub enum Intercept {
    /// Forward the call.
    Pass,
    /// Forward the call; other tasks run before its answer returns.
    PassSlowly,
    /// Forward the call once notified.
    Hold(Arc<Notify>),
    /// Do nothing and return an error: for a commit `NotWritten`.
    Refuse,
    /// Do nothing and return an error: for a commit `Unknown`.
    LoseRequest,
    /// Forward a commit and return `Unknown`; refuse any other call.
    LoseReply,
    /// Do nothing and never answer, as if the process died before the call.
    CrashBefore,
    /// Forward the call and never answer, as if the process died after the call.
    CrashAfter,
}

type InterceptHook = Box<dyn Fn(&Call<'_>) -> Intercept + Send + Sync>;

/// A store whose calls are intercepted by a hook.
pub struct InterceptingStore {
    inner: Arc<dyn Store>,
    hook: InterceptHook,
}

impl InterceptingStore {
    /// Wraps a store.
    pub fn new(
        inner: Arc<dyn Store>,
        hook: impl Fn(&Call<'_>) -> Intercept + Send + Sync + 'static,
    ) -> Self {
        let hook = Box::new(hook);
        Self { inner, hook }
    }

    /// Applies the hook's decision to a call other than a commit.
    async fn intercept<T, E: From<StoreError>>(
        &self,
        call: Call<'_>,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        match (self.hook)(&call) {
            Intercept::Pass => work.await,
            Intercept::PassSlowly => {
                let answer = work.await;
                yield_to_others().await;
                answer
            }
            Intercept::Hold(until) => {
                until.notified().await;
                work.await
            }
            Intercept::Refuse | Intercept::LoseRequest | Intercept::LoseReply => {
                Err(broken().into())
            }
            Intercept::CrashBefore => std::future::pending().await,
            Intercept::CrashAfter => {
                drop(work.await);
                std::future::pending().await
            }
        }
    }

    async fn read<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.intercept(Call::Read(name), work).await
    }
}

impl fmt::Debug for InterceptingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterceptingStore").finish_non_exhaustive()
    }
}

fn broken() -> StoreError {
    StoreError::new("the tap was closed")
}

async fn yield_to_others() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Store for InterceptingStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        match (self.hook)(&Call::Commit(commit)) {
            Intercept::Pass => self.inner.commit(commit).await,
            Intercept::PassSlowly => {
                let answer = self.inner.commit(commit).await;
                yield_to_others().await;
                answer
            }
            Intercept::Hold(until) => {
                until.notified().await;
                self.inner.commit(commit).await
            }
            Intercept::Refuse => Err(CommitError::NotWritten(broken())),
            Intercept::LoseRequest => Err(CommitError::Unknown(broken())),
            Intercept::LoseReply => {
                drop(self.inner.commit(commit).await);
                Err(CommitError::Unknown(broken()))
            }
            Intercept::CrashBefore => std::future::pending().await,
            Intercept::CrashAfter => {
                drop(self.inner.commit(commit).await);
                std::future::pending().await
            }
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.read("get", self.inner.get(key)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read("operation", self.inner.operation(id)).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        self.read("poll", self.inner.poll(lane, id)).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.read("list", self.inner.list(list, after, limit)).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        self.read("scan_documents", self.inner.scan_documents(from, limit))
            .await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        self.read("operations", self.inner.operations(list)).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        self.intercept(Call::Renew(worker), self.inner.renew(worker, ttl))
            .await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.intercept(Call::Claim(worker), self.inner.claim(worker, queues))
            .await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.intercept(Call::Release(worker), self.inner.release(worker))
            .await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        self.read("changes", self.inner.changes(after, limit)).await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.inner.hints()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.inner.feed_hints()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        self.intercept(Call::Sweep(sweep), self.inner.sweep(sweep))
            .await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        self.read("stats", self.inner.stats()).await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        self.read("info", self.inner.info()).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.read("now", self.inner.now()).await
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        self.read("append_log", self.inner.append_log(operation, text))
            .await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        self.read("read_log", self.inner.read_log(operation, from, limit))
            .await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let resealed = self.inner.reseal_log(operation, read, text);
        self.read("reseal_log", resealed).await
    }
}
