//! The store of the victim: forwards all calls, logs durable changes, and kills the process at a given moment.
//!
//! All calls that change the store (commit, claim, renew, release) are counted. The harness kills the
//! victim by the number and a moment of a call, see `Moment`.

use super::event_log::EventLog;
use super::{Flaw, Moment};
use async_trait::async_trait;
use bytes::Bytes;
use rustix::process::{Signal, getpid, kill_process};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{
    Changes, Commit, CommitError, Cursor, Document, Expect, IndexedDocument, Key, LeaseError, List,
    LogChunk, Operation, OperationId, OperationList, OperationRow, Page, PolledOperation, Position,
    Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime, Sweep, WorkerId, Write,
};
use sutler_store_sqlite::faults::{Fault, FaultPoint, Faults};
use tokio::sync::watch;

/// Maximum delay of a kill in the middle of a call.
const DURING_MAX_MICROS: u64 = 500;

/// A flawed store forgets one in this many acknowledged commits.
const FORGOTTEN_EVERY: u64 = 3;

/// When to die.
#[derive(Clone, Debug)]
pub(super) struct KillTrigger {
    at: Option<u64>,
    moment: Moment,
    calls: Arc<AtomicU64>,
    groups: Arc<AtomicU64>,
}

impl KillTrigger {
    pub(super) fn new(at: Option<u64>, moment: Moment) -> Self {
        Self {
            at,
            moment,
            calls: Arc::default(),
            groups: Arc::default(),
        }
    }

    /// Faults at the moments inside the store's writer.
    pub(super) fn faults(&self) -> Faults {
        let trigger = self.clone();
        Faults::with(move |point| {
            match point {
                FaultPoint::BeforeCommit => {
                    let number = trigger.groups.fetch_add(1, Ordering::Relaxed) + 1;
                    trigger.die_if(Moment::Written, number);
                }
                FaultPoint::DuringCommit => {}
                FaultPoint::AfterCommit => {
                    trigger.die_if(Moment::Synced, trigger.groups.load(Ordering::Relaxed));
                }
            }
            Fault::None
        })
    }

    fn begin(&self) -> u64 {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.die_if(Moment::Before, number);
        if self.moment == Moment::During && self.at == Some(number) {
            std::thread::spawn(move || {
                let wait = Duration::from_micros(number * 61 % DURING_MAX_MICROS);
                let begun = Instant::now();
                while begun.elapsed() < wait {
                    std::hint::spin_loop();
                }
                die();
            });
        }
        number
    }

    fn die_if(&self, moment: Moment, number: u64) {
        if self.moment == moment && self.at == Some(number) {
            die();
        }
    }
}

/// Sends SIGKILL to this process: nothing is flushed, no response is sent.
fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

pub(super) struct InstrumentedStore {
    inner: Arc<dyn Store>,
    trigger: KillTrigger,
    event_log: Arc<EventLog>,
    flaw: Option<Flaw>,
    starts: AtomicU64,
    detached: bool,
}

impl InstrumentedStore {
    pub(super) fn new(
        inner: Arc<dyn Store>,
        trigger: KillTrigger,
        event_log: Arc<EventLog>,
    ) -> Self {
        Self {
            inner,
            trigger,
            event_log,
            flaw: None,
            starts: AtomicU64::new(0),
            detached: false,
        }
    }

    /// Adds a deliberate flaw.
    pub(super) fn with(mut self, flaw: Option<Flaw>) -> Self {
        self.flaw = flaw;
        self
    }

    /// For one of several replicas: commits continue when their caller stops waiting, so
    /// that the log contains all of them. Not for every replica, because no broker does that.
    pub(super) fn detached(mut self, detached: bool) -> Self {
        self.detached = detached;
        self
    }

    async fn counted<T>(&self, call: impl Future<Output = T>, durable: impl FnOnce(&T)) -> T {
        let number = self.trigger.begin();
        let answer = call.await;
        durable(&answer);
        self.trigger.die_if(Moment::After, number);
        answer
    }

    /// Whether this commit is acknowledged and forgotten.
    fn forgets(&self, commit: &Commit) -> bool {
        let starts = |write: &Write| matches!(write, Write::Start(_));
        self.flaw == Some(Flaw::AcknowledgeUnwritten)
            && commit.writes().iter().any(starts)
            && self.starts.fetch_add(1, Ordering::Relaxed) % FORGOTTEN_EVERY == 1
    }
}

/// Commits, with or without a flaw, and logs the outcome.
async fn commit_noted(
    store: Arc<dyn Store>,
    event_log: Arc<EventLog>,
    commit: Commit,
    flaw: Option<Flaw>,
) -> Result<(), CommitError> {
    let answer = match flaw {
        Some(Flaw::IgnoreFence) => store.commit(&unfenced(&commit)).await,
        Some(Flaw::AcknowledgeUnwritten) | None => store.commit(&commit).await,
    };
    match answer {
        Ok(()) => event_log.committed(&commit),
        Err(CommitError::Stale(_)) => event_log.refused(&commit),
        Err(CommitError::NotWritten(_) | CommitError::Unknown(_)) => {}
    }
    answer
}

/// The same commit without its fences.
fn unfenced(commit: &Commit) -> Commit {
    let mut other = Commit::new().with_id(commit.id());
    for expect in commit.expects() {
        other = match expect {
            Expect::Fence(..) => other,
            Expect::Absent(key) => other.absent(key.clone()),
            Expect::Version(key, version) | Expect::Unchanged(key, version) => {
                other.unchanged(key.clone(), *version)
            }
        };
    }
    commit.writes().iter().cloned().fold(other, Commit::write)
}

#[async_trait]
impl Store for InstrumentedStore {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        if self.forgets(commit) {
            return Ok(());
        }
        self.event_log.tries(commit);
        let (store, event_log) = (Arc::clone(&self.inner), Arc::clone(&self.event_log));
        let made = commit_noted(store, event_log, commit.clone(), self.flaw);
        let made = async {
            match self.detached {
                false => made.await,
                true => tokio::spawn(made).await.expect("a commit does not panic"),
            }
        };
        self.counted(made, |_| ()).await
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
        self.counted(self.inner.renew(worker, ttl), |_| ()).await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.counted(self.inner.claim(worker, queues), |answer| {
            self.event_log
                .claimed(answer.as_deref().unwrap_or_default());
        })
        .await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.counted(self.inner.release(worker), |_| ()).await
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
