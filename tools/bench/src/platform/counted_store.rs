//! A store that counts its calls and what they write. The figures are read through the platform's page of metrics.

use crate::load::BoxError;
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sutler_journal::{
    Changes, Commit, CommitError, Cursor, Document, IndexedDocument, Key, LeaseError, List,
    LogChunk, Operation, OperationId, OperationList, OperationRow, Page, PolledOperation, Position,
    Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime, Sweep, WorkerId, Write,
};
use sutler_servers::http::HttpConnection;
use tokio::sync::watch;

/// Counters.
#[derive(Default)]
pub(super) struct StoreCounters {
    commits: AtomicU64,
    documents: AtomicU64,
    operations: AtomicU64,
    claims: AtomicU64,
    queues_asked: AtomicU64,
    claimed: AtomicU64,
    renewals: AtomicU64,
    reads: AtomicU64,
    lists: AtomicU64,
    feed_reads: AtomicU64,
}

impl StoreCounters {
    /// The page that [`StoreFigures::read`] reads.
    pub(super) fn page(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "commits": of(&self.commits),
            "documents": of(&self.documents),
            "operations": of(&self.operations),
            "claims": of(&self.claims),
            "queues_asked": of(&self.queues_asked),
            "claimed": of(&self.claimed),
            "renewals": of(&self.renewals),
            "reads": of(&self.reads),
            "lists": of(&self.lists),
            "feed_reads": of(&self.feed_reads),
        })
        .to_string()
    }

    fn count_commit(&self, commit: &Commit) {
        add(&self.commits, 1);
        for write in commit.writes() {
            match write {
                Write::Put { .. } | Write::Remove(_) => add(&self.documents, 1),
                Write::Start(_)
                | Write::Advance { .. }
                | Write::Cancel(_)
                | Write::Wake(_)
                | Write::Unpin(_)
                | Write::Reseal { .. }
                | Write::Import(_) => add(&self.operations, 1),
            }
        }
    }
}

fn add(counter: &AtomicU64, number: usize) {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    counter.fetch_add(number, Ordering::Relaxed);
}

/// What the store of a platform has done since its start, or between two moments.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreFigures(BTreeMap<String, u64>);

impl StoreFigures {
    /// Asks the platform on a port.
    pub(super) async fn read(port: u16) -> Result<Self, BoxError> {
        let mut connection = HttpConnection::connect(("127.0.0.1", port)).await?;
        let request = b"GET /metrics HTTP/1.1\r\nHost: bench\r\n\r\n";
        let response = connection.send(request).await?;
        Ok(Self(serde_json::from_slice(response.body)?))
    }

    /// What happened after earlier figures.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let difference = |(name, value): (&String, &u64)| {
            let before = earlier.0.get(name).copied().unwrap_or(0);
            (name.clone(), value.saturating_sub(before))
        };
        Self(self.0.iter().map(difference).collect())
    }

    /// One figure.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0) as f64
    }

    /// Rows of documents and operations that were written: by commits, and by claims.
    pub(super) fn rows(&self) -> f64 {
        self.get("documents") + self.get("operations") + self.get("claimed")
    }

    /// Writes: commits, claims that claimed something counted by operation, and renewals of the lease.
    pub(super) fn writes(&self) -> f64 {
        self.get("commits") + self.get("claimed") + self.get("renewals")
    }

    /// All figures for each of a number of things, on one line.
    pub(super) fn per(&self, number: f64) -> String {
        let one = |(name, value): (&String, &u64)| format!("{name} {:.2}", *value as f64 / number);
        let all: Vec<String> = self.0.iter().map(one).collect();
        all.join(", ")
    }
}

/// A store whose calls are counted.
pub(super) struct CountedStore {
    inner: Arc<dyn Store>,
    counters: Arc<StoreCounters>,
}

impl CountedStore {
    /// Wraps a store.
    pub(super) fn new(inner: Arc<dyn Store>, counters: Arc<StoreCounters>) -> Self {
        Self { inner, counters }
    }

    fn read(&self) -> &dyn Store {
        add(&self.counters.reads, 1);
        self.inner.as_ref()
    }

    fn listing(&self) -> &dyn Store {
        add(&self.counters.lists, 1);
        self.inner.as_ref()
    }
}

#[async_trait]
impl Store for CountedStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        self.counters.count_commit(commit);
        self.inner.commit(commit).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.read().get(key).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read().operation(id).await
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        self.read().poll(lane, id).await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.listing().list(list, after, limit).await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        self.listing().scan_documents(from, limit).await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        self.listing().operations(list).await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        add(&self.counters.renewals, 1);
        self.inner.renew(worker, ttl).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        add(&self.counters.claims, 1);
        add(&self.counters.queues_asked, queues.len());
        let claimed = self.inner.claim(worker, queues).await?;
        add(&self.counters.claimed, claimed.len());
        Ok(claimed)
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.inner.release(worker).await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        add(&self.counters.feed_reads, 1);
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

    async fn feed_length(&self) -> Result<u64, StoreError> {
        self.inner.feed_length().await
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
