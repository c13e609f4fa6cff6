//! The simulated network between one process and the store: a [`Store`] whose calls are delayed, lost,
//! held back, reordered, or never answered again.
//!
//! A request that left its process arrives even if the process gave it up or died: a commit may be applied
//! long after its caller got `Unknown`. The death of a process is a link that never answers again; nothing
//! that its tasks still do can be seen from outside. The data is a real [`MemoryStore`].

use crate::history::History;
use crate::seeded_sources::SharedRng;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{
    Changes, Commit, CommitError, Cursor, Document, IndexedDocument, Key, LeaseError, List,
    LogChunk, MemoryStore, Operation, OperationId, OperationList, OperationRow, Page,
    PolledOperation, Position, Queue, Renewal, State as OperationState, Stats, Store, StoreError,
    StoreInfo, StoreTime, Sweep, WorkerId,
};
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Up,
    /// Calls take seconds.
    Slow,
    /// Requests and answers get lost.
    Lossy,
    /// Nothing passes.
    Cut,
    /// The store does not answer; nothing gets lost.
    Stalled,
    /// Renewals hang; everything else passes.
    RenewalsHang,
}

/// Name of the call that renews a lease.
const RENEW: &str = "renew";

/// Checks what the store applied, before anybody is answered.
#[async_trait]
pub(crate) trait StoreChecker: Send + Sync {
    /// A commit was applied, perhaps for a second time.
    async fn committed(&self, commit: &Commit);

    /// A worker got these operations.
    async fn claimed(&self, claimed: &[Operation]);

    /// Something else was done that keeps the counts of operations in balance.
    async fn check_counts(&self);
}

/// Parts that all links of a run share.
pub(crate) struct Network {
    pub choices: SharedRng,
    pub history: Arc<History>,
    store: Arc<MemoryStore>,
    checker: Arc<dyn StoreChecker>,
    call_timeout: Duration,
}

impl Network {
    pub(crate) fn new(
        (store, checker): (Arc<MemoryStore>, Arc<dyn StoreChecker>),
        history: Arc<History>,
        choices: SharedRng,
        call_timeout: Duration,
    ) -> Self {
        Self {
            choices,
            history,
            store,
            checker,
            call_timeout,
        }
    }

    /// The store itself, without the network.
    pub(crate) fn store(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.store)
    }
}

/// The link of one process.
pub(crate) struct StoreLink {
    name: String,
    network: Arc<Network>,
    shared: Arc<SharedLinkState>,
    hints: watch::Sender<u64>,
    /// Grows with the commits of this process alone, as in a store that is told of no others.
    feed_hints: watch::Sender<u64>,
    /// Operations of which this process has read that they ended.
    ended: Mutex<BTreeSet<OperationId>>,
}

/// State of a link that calls under way share.
struct SharedLinkState {
    state: Mutex<LinkState>,
    changed: Notify,
    died: CancellationToken,
}

impl SharedLinkState {
    fn state(&self) -> LinkState {
        *lock(&self.state)
    }

    /// Waits until a call can pass.
    async fn until_open(&self, call: &str) {
        loop {
            let changed = self.changed.notified();
            let is_closed = match self.state() {
                LinkState::Up | LinkState::Slow | LinkState::Lossy => false,
                LinkState::Cut | LinkState::Stalled => true,
                LinkState::RenewalsHang => call == RENEW,
            };
            if !is_closed {
                return;
            }
            changed.await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a call has no answer.
enum CallError {
    /// The request certainly did not leave the process.
    NotSent,
    /// The call was given up.
    TimedOut,
}

fn broken(why: &CallError) -> StoreError {
    StoreError::new(match why {
        CallError::NotSent => "the store cannot be reached",
        CallError::TimedOut => "the store did not answer in time",
    })
}

impl StoreLink {
    pub(crate) fn new(name: String, network: Arc<Network>, state: LinkState) -> Self {
        Self {
            name,
            network,
            shared: Arc::new(SharedLinkState {
                state: Mutex::new(state),
                changed: Notify::new(),
                died: CancellationToken::new(),
            }),
            hints: watch::Sender::new(0),
            feed_hints: watch::Sender::new(0),
            ended: Mutex::default(),
        }
    }

    pub(crate) fn set_state(&self, state: LinkState) {
        *lock(&self.shared.state) = state;
        self.shared.changed.notify_waiters();
    }

    /// Ends the process: none of its calls is answered any more.
    pub(crate) fn die(&self) {
        self.shared.died.cancel();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.shared.died.is_cancelled()
    }

    /// Completes when the process dies.
    pub(crate) async fn died(&self) {
        self.shared.died.cancelled().await;
    }

    /// Whether this process has read that an operation ended.
    pub(crate) fn has_read_end(&self, id: OperationId) -> bool {
        lock(&self.ended).contains(&id)
    }

    /// The generator of the run.
    pub(crate) fn choices(&self) -> &SharedRng {
        &self.network.choices
    }

    /// Passes a hint on, if it can.
    pub(crate) fn hint(&self) {
        if self.shared.state() == LinkState::Up && !self.is_dead() {
            self.hints.send_modify(|hints| *hints += 1);
        }
    }

    fn delay(&self) -> Duration {
        let choices = &self.network.choices;
        let (from, to) = match self.shared.state() {
            LinkState::Slow => (Duration::from_millis(50), Duration::from_secs(6)),
            LinkState::Up
            | LinkState::Lossy
            | LinkState::Cut
            | LinkState::Stalled
            | LinkState::RenewalsHang => (Duration::from_micros(100), Duration::from_millis(4)),
        };
        choices.between(from, to)
    }

    fn loses(&self) -> bool {
        let percent = match self.shared.state() {
            LinkState::Lossy => 30,
            LinkState::Cut => 50,
            LinkState::Up | LinkState::Slow | LinkState::Stalled | LinkState::RenewalsHang => 0,
        };
        self.network.choices.percent(percent)
    }

    /// Sends a request and waits for its answer.
    async fn call<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, CallError> {
        if self.is_dead() {
            return std::future::pending().await;
        }
        let choices = &self.network.choices;
        if self.shared.state() == LinkState::Cut && choices.percent(20) {
            tokio::time::sleep(choices.between(Duration::ZERO, Duration::from_millis(300))).await;
            return Err(CallError::NotSent);
        }
        let (request_lost, answer_lost) = (self.loses(), self.loses());
        let (request_delay, answer_delay) = (self.delay(), self.delay());
        let (sender, answer) = oneshot::channel();
        if !request_lost {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                tokio::time::sleep(request_delay).await;
                shared.until_open(name).await;
                let answer = work.await;
                tokio::time::sleep(answer_delay).await;
                shared.until_open(name).await;
                if answer_lost {
                    // The caller waits until it gives up.
                    shared.died.cancelled().await;
                }
                // The caller may have given up.
                let _ = sender.send(answer);
            });
        }
        let answered = async {
            match answer.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shared.died.cancelled() => std::future::pending().await,
            answer = answered => Ok(answer),
            () = tokio::time::sleep(self.network.call_timeout) => {
                self.network.history.record("timeout", || format!("{}: {name} was not answered", self.name));
                Err(CallError::TimedOut)
            }
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.call(name, work).await.map_err(|why| broken(&why))?
    }

    fn store(&self) -> Arc<MemoryStore> {
        self.network.store()
    }
}

#[async_trait]
impl Store for StoreLink {
    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        let (checker, sent) = (Arc::clone(&self.network.checker), commit.clone());
        let store = self.store();
        let work = async move {
            let answer = store.commit(&sent).await;
            if answer.is_ok() {
                checker.committed(&sent).await;
            }
            answer
        };
        let answer = self.call("commit", work).await;
        match answer {
            Ok(answer) => {
                if answer.is_ok() {
                    self.feed_hints.send_modify(|hints| *hints += 1);
                }
                answer
            }
            Err(why @ CallError::NotSent) => Err(CommitError::NotWritten(broken(&why))),
            Err(why @ CallError::TimedOut) => Err(CommitError::Unknown(broken(&why))),
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>, StoreError> {
        let (store, key) = (self.store(), key.clone());
        self.read("get", async move { store.get(&key).await }).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        let store = self.store();
        let read = self
            .read("operation", async move { store.operation(id).await })
            .await;
        if let Ok(Some(operation)) = &read
            && matches!(operation.row.state, OperationState::Done(_))
        {
            lock(&self.ended).insert(id);
        }
        read
    }

    async fn poll(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, StoreError> {
        let (store, lane) = (self.store(), lane.clone());
        self.read("poll", async move { store.poll(&lane, id).await })
            .await
    }

    async fn list(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (store, list, after) = (self.store(), list.clone(), after.cloned());
        self.read("list", async move {
            store.list(&list, after.as_ref(), limit).await
        })
        .await
    }

    async fn scan_documents(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, StoreError> {
        let (store, from) = (self.store(), from.to_vec());
        self.read(
            "scan",
            async move { store.scan_documents(&from, limit).await },
        )
        .await
    }

    async fn operations(&self, list: &OperationList) -> Result<Vec<OperationRow>, StoreError> {
        let (store, list) = (self.store(), list.clone());
        self.read("operations", async move { store.operations(&list).await })
            .await
    }

    async fn renew(&self, worker: WorkerId, ttl: Duration) -> Result<Renewal, LeaseError> {
        let store = self.store();
        let answer = self.call(RENEW, async move { store.renew(worker, ttl).await });
        answer.await.map_err(|why| broken(&why))?
    }

    async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        let (checker, queues) = (Arc::clone(&self.network.checker), queues.to_vec());
        let store = self.store();
        let answer = self.call("claim", async move {
            let claimed = store.claim(worker, &queues).await;
            if let Ok(claimed) = &claimed {
                checker.claimed(claimed).await;
            }
            claimed
        });
        answer.await.map_err(|why| broken(&why))?
    }

    async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        let checker = Arc::clone(&self.network.checker);
        let store = self.store();
        self.read("release", async move {
            let released = store.release(worker).await;
            checker.check_counts().await;
            released
        })
        .await
    }

    async fn changes(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let (store, after) = (self.store(), after.clone());
        self.read("changes", async move { store.changes(&after, limit).await })
            .await
    }

    fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    fn feed_hints(&self) -> watch::Receiver<u64> {
        self.feed_hints.subscribe()
    }

    async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        let (checker, sweep) = (Arc::clone(&self.network.checker), sweep.clone());
        let store = self.store();
        self.read("sweep", async move {
            let swept = store.sweep(&sweep).await;
            checker.check_counts().await;
            swept
        })
        .await
    }

    async fn stats(&self) -> Result<Stats, StoreError> {
        let store = self.store();
        self.read("stats", async move { store.stats().await }).await
    }

    async fn info(&self) -> Result<StoreInfo, StoreError> {
        let store = self.store();
        self.read("info", async move { store.info().await }).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let store = self.store();
        self.read("now", async move { store.now().await }).await
    }

    async fn append_log(&self, operation: OperationId, text: Bytes) -> Result<(), StoreError> {
        let store = self.store();
        self.read("append_log", async move {
            store.append_log(operation, text).await
        })
        .await
    }

    async fn read_log(
        &self,
        operation: OperationId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<LogChunk>, StoreError> {
        let store = self.store();
        self.read("read_log", async move {
            store.read_log(operation, from, limit).await
        })
        .await
    }

    async fn reseal_log(
        &self,
        operation: OperationId,
        read: &LogChunk,
        text: Bytes,
    ) -> Result<bool, StoreError> {
        let (store, read) = (self.store(), read.clone());
        self.read("reseal_log", async move {
            store.reseal_log(operation, &read, text).await
        })
        .await
    }
}
