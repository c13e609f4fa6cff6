//! The engine: claims operations under a lease and runs them.
//!
//! It knows queues, leases, fences and time, but not the meaning of an operation: that is the
//! [`Executor`]'s. Any number of engines share the work through one store. `engine/loops.rs` renews the lease and
//! runs operations; `engine/run_table.rs` decides whether a claim may run (same lease, once) and which runs a renewal
//! stops; `engine/claim_loop.rs` claims from the queues of `engine/served_queues.rs`: `engine/queue_schedule.rs` decides
//! which of them are asked when, `engine/queue_slots.rs` counts against their limits; `engine/expected_claim.rs` is a claim
//! made by a commit; `engine/run.rs` is one run, the input of an executor.

mod claim_loop;
mod expected_claim;
mod loops;
mod queue_schedule;
mod queue_slots;
mod run;
mod run_table;
mod served_queues;

pub use expected_claim::ExpectedClaim;
pub use loops::catch_panic;
pub use run::{CommitRejectedError, Lost, Run, RunCommitError};
pub use served_queues::Permit;

use crate::nondeterminism::scheduled;
use crate::operation::{OperationId, Queue, WorkerId};
use crate::store::Store;
use async_trait::async_trait;
use bytes::Bytes;
use run_table::{Incarnation, RunTable};
use served_queues::ServedQueues;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Operations that one process runs at once, if its settings do not say otherwise.
const TOTAL_LIMIT: usize = 512;

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
    /// A commit of the executor through [`Run::commit`] gave the claim back: it advanced the operation to
    /// [`Next::Ready`](crate::Next::Ready), [`Next::Retry`](crate::Next::Retry) or another state without a worker. The
    /// engine writes nothing, and looks at the queue after this time, at most [`EngineSettings::look_every`] later;
    /// `None`: when it would anyway.
    ///
    /// Return soon after the commit: if the operation is claimed again here, it runs after this run has ended; a run
    /// that goes on for longer than a third of a lease is stopped. Nobody wakes an operation that was cancelled
    /// while the commit was decided, so the commit must expect what a cancel changes.
    Released(Option<Duration>),
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

/// One queue and the number of its operations that one engine runs concurrently. Two kinds of runs exceed it: those that
/// were claimed before their slots were taken otherwise or the limit was lowered, which count; and those that a caller
/// waits for (see [`ExpectedClaim::run`]) without a permit, which do not count.
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
    /// Interval between two looks at a queue when no hint arrives and nothing was planned.
    pub look_every: Duration,
    /// Takeovers without new progress (memos; texts do not count) after which an operation fails.
    pub takeovers_max: u32,
    /// Queues to serve from the start; see [`Engine::set_queue`].
    pub queues: Vec<QueueSettings>,
    /// Maximum concurrent operations of all queues together, in this process. The runs that exceed the limit of a queue
    /// exceed this one, too; so do suspects while they are put back.
    pub total_limit: usize,
    /// A queue whose slots, as many as its limit, are kept of `total_limit` for it alone: however much runs in others, its
    /// operations start.
    pub reserved: Option<Queue>,
    /// Claims nothing until [`Engine::resume`].
    pub paused: bool,
}

impl EngineSettings {
    /// The defaults for one queue.
    pub fn for_queue(queue: Queue, limit: usize) -> Self {
        Self {
            queues: vec![QueueSettings { queue, limit }],
            total_limit: limit.max(TOTAL_LIMIT),
            ..Self::default()
        }
    }

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
            total_limit: TOTAL_LIMIT,
            reserved: None,
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

struct Inner {
    store: Arc<dyn Store>,
    executor: Arc<dyn Executor>,
    settings: EngineSettings,
    queues: Arc<ServedQueues>,
    table: Mutex<RunTable>,
    /// Renews the lease now instead of at its time.
    renew: Notify,
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
        let queues = ServedQueues::new(&settings);
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

    /// Serves a queue from now on, or changes its limit. A lowered limit takes effect as runs end; with a limit of zero
    /// nothing of the queue is claimed, while current runs continue. What is claimed at the moment still runs.
    pub fn set_queue(&self, queue: &Queue, limit: usize) {
        self.0.queues.set(queue, limit);
    }

    /// Serves a queue no more, as with a limit of zero. A no-op if it is not served.
    pub fn forget_queue(&self, queue: &Queue) {
        self.0.queues.forget(queue);
    }

    /// Takes a slot of a queue, if one is free in it and in all queues together: with it an accepted operation can start
    /// at once.
    pub fn permit(&self, queue: &Queue) -> Option<Permit> {
        if self.0.stopping.is_cancelled() || self.is_paused() {
            return None;
        }
        self.0.queues.permit(queue)
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

    /// Looks at all queues now instead of when they are due; claim by claim if they are more than one claim asks.
    pub fn poll_now(&self) {
        self.0.queues.look_at_all();
    }

    /// Looks at a queue after this time, at most [`EngineSettings::look_every`] later: for a commit outside of a run that
    /// makes an operation of the queue claimable then. A hint of the store does not name the queue.
    pub fn look_within(&self, queue: &Queue, wait: Duration) {
        self.0.queues.look_within(queue, wait);
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
}
