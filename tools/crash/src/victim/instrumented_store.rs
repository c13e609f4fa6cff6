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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sutler_journal::{
    Changes, Commit, CommitError, Cursor, Document, Expect, IndexedDocument, Key, LeaseError, List,
    LogChunk, Next, Operation, OperationId, OperationList, OperationRow, Page, PolledOperation,
    Position, Queue, Renewal, Stats, Store, StoreError, StoreInfo, StoreTime, Sweep, WorkerId,
    Write,
};
use sutler_store_sqlite::faults::{Fault, FaultPoint, Faults};
use tokio::sync::watch;

/// Maximum delay of a kill in the middle of a call.
const DURING_MAX_MICROS: u64 = 500;

/// How late a flawed store makes the commit that says that a request is about to be sent.
const LATE_BY: Duration = Duration::from_millis(100);

/// A flawed store forgets one in this many acknowledged commits.
const FORGOTTEN_EVERY: u64 = 3;

/// When to die, and what is counted until then.
#[derive(Clone, Debug)]
pub(super) struct KillTrigger {
    planned: Arc<Mutex<Option<PlannedKill>>>,
    counted: CountedCalls,
    calls: Arc<AtomicU64>,
    groups: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug)]
struct PlannedKill {
    number: u64,
    moment: Moment,
}

/// Calls to the store that have a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedCalls {
    /// All that change it.
    Changes,
    /// Commits only, without periodic ones: how often a worker claims and renews depends on time.
    Commits,
}

impl KillTrigger {
    pub(super) fn new(at: Option<u64>, moment: Moment) -> Self {
        Self::counting(CountedCalls::Changes, at, moment)
    }

    /// Counts commits only.
    pub(super) fn at_commit(at: Option<u64>, moment: Moment) -> Self {
        Self::counting(CountedCalls::Commits, at, moment)
    }

    fn counting(counted: CountedCalls, at: Option<u64>, moment: Moment) -> Self {
        let planned = at.map(|number| PlannedKill { number, moment });
        Self {
            planned: Arc::new(Mutex::new(planned)),
            counted,
            calls: Arc::default(),
            groups: Arc::default(),
        }
    }

    /// Dies at the n-th call from now on.
    pub(super) fn arm(&self, calls: u64, moment: Moment) {
        let number = self.count() + calls;
        *self.planned() = Some(PlannedKill { number, moment });
    }

    /// Number of calls so far.
    pub(super) fn count(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn planned(&self) -> MutexGuard<'_, Option<PlannedKill>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_planned(&self, moment: Moment, number: u64) -> bool {
        let planned = *self.planned();
        planned.is_some_and(|it| it.moment == moment && it.number == number)
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
        if self.is_planned(Moment::During, number) {
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
        if self.is_planned(moment, number) {
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

/// A commit that was acknowledged, and is made later.
type LateCommit = (Instant, Commit);

pub(super) struct InstrumentedStore {
    inner: Arc<dyn Store>,
    trigger: KillTrigger,
    event_log: Arc<EventLog>,
    flaw: Option<Flaw>,
    starts: AtomicU64,
    detached: bool,
    lease_factor: u32,
    /// A flaw: the commit that says that a request is about to be sent waits until something else is written or read.
    late_write_ahead: Option<tokio::sync::Mutex<Option<LateCommit>>>,
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
            lease_factor: 1,
            late_write_ahead: None,
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

    /// For a store whose clock runs so many times as fast as that of the workers.
    pub(super) fn lease_factor(mut self, factor: u32) -> Self {
        self.lease_factor = factor;
        self
    }

    /// Adds the flaw that requests are sent before it is durable that they are.
    pub(super) fn with_late_write_ahead(mut self, is_late: bool) -> Self {
        self.late_write_ahead = is_late.then(tokio::sync::Mutex::default);
        self
    }

    /// Makes up for a commit that waits, if there is one.
    async fn catch_up(&self) {
        let Some(late) = &self.late_write_ahead else {
            return;
        };
        if let Some((_, commit)) = late.lock().await.take() {
            let made = self.inner.commit(&commit);
            let _ = self.counted(CountedCalls::Commits, made, |_| ()).await;
        }
    }

    /// Makes up for a commit before something is read: not before its request was sent.
    async fn catch_up_later(&self) {
        let Some(late) = &self.late_write_ahead else {
            return;
        };
        let held = late.lock().await.as_ref().map(|(since, _)| *since);
        if let Some(since) = held {
            tokio::time::sleep_until((since + LATE_BY).into()).await;
            self.catch_up().await;
        }
    }

    async fn counted<T>(
        &self,
        kind: CountedCalls,
        call: impl Future<Output = T>,
        durable: impl FnOnce(&T),
    ) -> T {
        if self.trigger.counted == CountedCalls::Commits && kind == CountedCalls::Changes {
            let answer = call.await;
            durable(&answer);
            return answer;
        }
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

/// Whether a commit is made from time to time, whatever anybody orders: how many there are depends on time.
fn is_periodic(commit: &Commit) -> bool {
    let of_time = ["replica", "singleton", "meta"];
    let mut writes = commit.writes().iter();
    writes.any(|write| match write {
        Write::Put { key, .. } | Write::Remove(key) => of_time.contains(&key.kind()),
        _ => false,
    })
}

/// Whether an operation goes on with new progress: a request was prepared, and is sent next.
fn is_write_ahead(commit: &Commit) -> bool {
    commit.writes().iter().any(|write| {
        matches!(
            write,
            Write::Advance {
                next: Next::Same,
                progress: Some(_),
                ..
            }
        )
    })
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
        self.catch_up().await;
        if let Some(late) = &self.late_write_ahead
            && is_write_ahead(commit)
        {
            *late.lock().await = Some((Instant::now(), commit.clone()));
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
        let kind = match is_periodic(commit) {
            true => CountedCalls::Changes,
            false => CountedCalls::Commits,
        };
        self.counted(kind, made, |_| ()).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        self.catch_up_later().await;
        self.inner.get(key).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.catch_up_later().await;
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
        self.catch_up_later().await;
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
        let ttl = ttl * self.lease_factor;
        self.counted(CountedCalls::Changes, self.inner.renew(worker, ttl), |_| ())
            .await
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.catch_up_later().await;
        self.counted(
            CountedCalls::Changes,
            self.inner.claim(worker, queues),
            |answer| {
                self.event_log
                    .claimed(answer.as_deref().unwrap_or_default());
            },
        )
        .await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.counted(CountedCalls::Changes, self.inner.release(worker), |_| ())
            .await
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
