//! The engine: claims operations under a lease and runs them.
//!
//! It knows queues, leases, fences and time, but not the meaning of an operation: that is the
//! [`Executor`]'s. Any number of engines share the work through one store. `engine/loops.rs` renews the lease and
//! claims; `engine/run_table.rs` decides whether a claim may run (same lease, once) and which runs a renewal stops;
//! `engine/expected_claim.rs` is a claim made by a commit; `engine/run.rs` is one run, the input of an executor.

mod expected_claim;
mod loops;
mod run;
mod run_table;

pub use expected_claim::ExpectedClaim;
pub use loops::catch_panic;
pub use run::{CommitRejectedError, Lost, Run, RunCommitError};

use crate::nondeterminism::scheduled;
use crate::operation::{OperationId, Queue, WorkerId};
use crate::store::Store;
use async_trait::async_trait;
use bytes::Bytes;
use run_table::{Incarnation, RunTable};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Result of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// The executor committed the operation's end.
    Finished,
    /// The operation is released and claimed again after this time.
    Yield(Duration),
    /// The attempt ended; the next one starts after this time. The progress of the operation is replaced in the same
    /// commit, and takeovers stay as they are.
    Retry(Duration, Option<Bytes>),
}

/// Executes operations.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Executes one operation.
    ///
    /// # Guarantees
    /// Called under a claim; at most one call per operation holds a valid one.
    /// # Assumptions
    /// It may be called again for the same operation after a crash, with the progress committed so
    /// far. It observes [`Run::cancelled`], and commits the end through [`Run::commit`] before it
    /// returns `RunResult::Finished`.
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost>;

    /// An operation is given back without having run, because another suspect runs. Returns the progress to write with that;
    /// `None`: it stays.
    fn put_back(&self, _run: &Run) -> Option<Bytes> {
        None
    }

    /// Ends an operation that was taken over too often without progress as failed, or leaves that to another process
    /// with `RunResult::Yield`.
    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost>;
}

/// One queue and the number of its operations that one engine runs concurrently.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Queue to serve.
    pub queue: Queue,
    /// Maximum concurrent operations.
    pub limit: usize,
}

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Lifetime of a lease without renewal; it is renewed three times within it.
    pub lease: Duration,
    /// Interval between claims when no hint arrives.
    pub look_every: Duration,
    /// Takeovers without new progress (memos; texts do not count) after which an operation fails.
    pub takeovers_max: u32,
    /// Queues to serve.
    pub queues: Vec<QueueSettings>,
    /// Claims nothing until [`Engine::resume`].
    pub paused: bool,
}

impl EngineSettings {
    /// The defaults for one queue.
    pub fn for_queue(queue: Queue, limit: usize) -> Self {
        Self {
            queues: vec![QueueSettings { queue, limit }],
            ..Self::default()
        }
    }
}

impl EngineSettings {
    /// How long before the end of its lease, by its own clock, a worker stops: covers the drift of clocks and the
    /// time until its runs are dropped.
    fn lease_margin(&self) -> Duration {
        (self.lease / 10).min(Duration::from_secs(2))
    }
}

impl Default for EngineSettings {
    /// Without queues.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            look_every: Duration::from_secs(1),
            takeovers_max: 5,
            queues: Vec::new(),
            paused: false,
        }
    }
}

/// Completes when a run of this engine ends, with any result.
#[derive(Clone, Debug)]
pub struct RunCompletion(CancellationToken);

impl RunCompletion {
    /// Waits until the run has ended.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}

/// Permission to start one operation of a queue in this process now.
#[derive(Debug)]
pub struct Permit(OwnedSemaphorePermit);

impl Permit {
    /// Whether no other permit is left: then an operation may have been left unclaimed for lack of one.
    fn is_last_permit(&self) -> bool {
        self.0.semaphore().available_permits() == 0
    }
}

struct QueueSlots {
    queue: Queue,
    permits: Arc<Semaphore>,
    limit: usize,
}

struct Inner {
    store: Arc<dyn Store>,
    executor: Arc<dyn Executor>,
    settings: EngineSettings,
    queues: Vec<QueueSlots>,
    table: Mutex<RunTable>,
    /// Renews the lease now instead of at its time.
    renew: Notify,
    /// Time of the next claim, if before the timer.
    claim_at: Mutex<Option<Instant>>,
    look: Notify,
    stopping: CancellationToken,
    /// Fires when the grace of a shut-down is over.
    closed: CancellationToken,
    /// Claims nothing while set.
    paused: AtomicBool,
    /// Fires when nothing runs here any more, so the lease need not be renewed.
    stopped: CancellationToken,
    tasks: TaskTracker,
    loops: TaskTracker,
}

/// Runs operations. Cheap to clone; stops with [`Engine::shut_down`].
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

impl Engine {
    /// Takes a lease and starts to serve the queues.
    ///
    /// # Errors
    /// The store did not grant the first lease.
    pub async fn start(
        store: Arc<dyn Store>,
        executor: Arc<dyn Executor>,
        settings: EngineSettings,
    ) -> Result<Self, crate::store::LeaseError> {
        let queues = settings.queues.iter().map(QueueSlots::new).collect();
        let incarnation = Incarnation::fresh();
        let sent = Instant::now();
        store.renew(incarnation.worker, settings.lease).await?;
        let held_until = sent + settings.lease - settings.lease_margin();
        let engine = Self(Arc::new(Inner {
            store,
            executor,
            queues,
            table: Mutex::new(RunTable::new(
                incarnation,
                settings.lease,
                settings.takeovers_max,
            )),
            paused: AtomicBool::new(settings.paused),
            settings,
            renew: Notify::new(),
            claim_at: Mutex::default(),
            look: Notify::new(),
            stopping: CancellationToken::new(),
            closed: CancellationToken::new(),
            stopped: CancellationToken::new(),
            tasks: TaskTracker::new(),
            loops: TaskTracker::new(),
        }));
        loops::spawn_loops(&engine, held_until);
        Ok(engine)
    }

    /// The worker id of the present lease.
    pub fn worker(&self) -> WorkerId {
        self.0.incarnation().worker
    }

    /// Announces a commit that claims an operation for this engine, see `Start::Claimed`; with a slot of its queue, if
    /// there is one. `None`: the engine holds no lease, so another worker must claim the operation.
    pub fn expect_claim(&self, id: OperationId, permit: Option<Permit>) -> Option<ExpectedClaim> {
        ExpectedClaim::new(self, id, permit)
    }

    /// Takes a slot of a queue, if one is free: with it an accepted operation can start at once.
    pub fn permit(&self, queue: &Queue) -> Option<Permit> {
        if self.0.stopping.is_cancelled() || self.is_paused() {
            return None;
        }
        let slots = self.0.queues.iter().find(|slots| slots.queue == *queue)?;
        slots.permits.clone().try_acquire_owned().ok().map(Permit)
    }

    /// Completion of an operation that runs here; `None` if it does not run here.
    pub fn finished(&self, id: OperationId) -> Option<RunCompletion> {
        let table = self.0.table();
        let run = table.run(id);
        run.map(|run| RunCompletion(run.finished.clone()))
    }

    /// Cancels the run of an operation whose cancellation is committed, without waiting for a renewal.
    pub fn notify_cancelled(&self, id: OperationId) {
        if let Some(run) = self.0.table().run(id) {
            run.cancel.cancel();
        }
    }

    /// Drops the run of an operation that another commit has ended: the run can write nothing any more.
    pub fn notify_ended(&self, id: OperationId) {
        if let Some(run) = self.0.table().run(id) {
            run.cancel.cancel();
            run.lost.cancel();
        }
    }

    /// Runs work in a task of its own, which goes on if the caller is dropped. A shut-down waits for it as for runs.
    /// `None`: it was dropped after the grace of a shut-down, or it panicked.
    pub async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let closed = self.0.closed.clone();
        let task = async move {
            tokio::select! {
                biased;
                () = closed.cancelled() => None,
                done = work => Some(done),
            }
        };
        self.0.tasks.spawn(scheduled(task)).await.ok().flatten()
    }

    /// Number of operations that run in this process.
    pub fn operations_running(&self) -> usize {
        self.0.table().len()
    }

    /// Whether the lease is held, as far as this process knows.
    pub fn holds_lease(&self) -> bool {
        !self.0.incarnation().lost.is_cancelled()
    }

    /// Claims now instead of at the next tick.
    pub fn poll_now(&self) {
        self.0.look.notify_one();
    }

    /// Stops claiming until [`Engine::resume`]; current runs continue, and the lease is renewed.
    pub fn pause(&self) {
        self.0.paused.store(true, Ordering::SeqCst);
    }

    /// Claims again.
    pub fn resume(&self) {
        self.0.paused.store(false, Ordering::SeqCst);
        self.poll_now();
    }

    /// Whether claiming is paused.
    pub fn is_paused(&self) -> bool {
        self.0.paused.load(Ordering::SeqCst)
    }

    /// Waits until [`Engine::shut_down`] is called.
    pub async fn stopping(&self) {
        self.0.stopping.cancelled().await;
    }

    /// Whether [`Engine::shut_down`] was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    /// Stops claiming, waits for current runs, and after `grace` drops the rest and releases them to the store.
    /// The lease is held until every run is dropped.
    pub async fn shut_down(&self, grace: Duration) {
        let inner = &self.0;
        inner.stopping.cancel();
        inner.tasks.close();
        if !inner.all_end_within(grace).await {
            tracing::warn!(
                left = self.operations_running(),
                "giving unfinished operations back"
            );
        }
        inner.table().close();
        inner.closed.cancel();
        // A run that is being polled ends only after that.
        let all_ended = inner.all_end_within(inner.settings.lease).await;
        inner.stopped.cancel();
        inner.loops.close();
        inner.loops.wait().await;
        let incarnation = inner.incarnation();
        incarnation.lost.cancel();
        if !all_ended {
            tracing::warn!(
                left = self.operations_running(),
                "operations did not stop; their lease runs out by itself"
            );
            return;
        }
        if let Err(error) = inner.store.release(incarnation.worker).await {
            tracing::warn!(%error, "the lease was not given back; it runs out by itself");
        }
    }
}

impl QueueSlots {
    fn new(settings: &QueueSettings) -> Self {
        Self {
            queue: settings.queue.clone(),
            permits: Arc::new(Semaphore::new(settings.limit)),
            limit: settings.limit,
        }
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, RunTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all runs end within this time.
    async fn all_end_within(&self, time: Duration) -> bool {
        let ended = tokio::time::timeout(time, self.tasks.wait()).await;
        ended.is_ok()
    }

    fn incarnation(&self) -> Incarnation {
        self.table().incarnation().clone()
    }

    /// Claims again after this time at the latest.
    fn claim_within(&self, wait: Duration) {
        let at = Instant::now() + wait;
        let mut next = self.claim_at.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_none_or(|planned| at < planned) {
            *next = Some(at);
            self.look.notify_one();
        }
    }
}
