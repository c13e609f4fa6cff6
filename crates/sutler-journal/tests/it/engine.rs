//! Fixture of the engine's tests: a memory store whose clock is tokio's paused one.
//!
//! Not tested here: stores (`memory.rs` and the public suite), and the meaning of operations.
//! Read `engine/claims.rs` first.

mod claims;
mod expected_claims;
mod faults;
mod leases;
mod many_queues;
mod queues;
mod released_claims;
mod served_queues;
mod shut_down;

use async_trait::async_trait;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{
    Clock, Commit, Due, Engine, EngineSettings, Executor, ExpectedClaim, Key, Kind, Lost,
    MemoryStore, NewOperation, Next, Operation, OperationId, OperationRow, Outcome, Permit, Queue,
    QueueSettings, Realm, Run, RunResult, Start, State, Store, StoreTime, WorkerId,
};
use tokio::time::Instant;

const WORK: Queue = Queue::named("work");
const LEASE: Duration = Duration::from_secs(30);

/// A store clock that follows tokio's, so paused time passes for both at once.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> StoreTime {
        StoreTime(1_700_000_000_000_000).plus(self.0.elapsed())
    }
}

type InterceptHook = Box<dyn FnMut(&Call<'_>) -> Intercept + Send>;

/// A store, and a hook to break it.
struct EngineFixture {
    store: Arc<dyn Store>,
    hook: Arc<Mutex<InterceptHook>>,
}

impl EngineFixture {
    fn new() -> Self {
        let memory = MemoryStore::with_clock(Arc::new(TokioClock(Instant::now())));
        let hook: Arc<Mutex<InterceptHook>> =
            Arc::new(Mutex::new(Box::new(|_: &Call<'_>| Intercept::Pass)));
        let shared_hook = Arc::clone(&hook);
        let store = InterceptingStore::new(Arc::new(memory), move |call| {
            shared_hook.lock().unwrap()(call)
        });
        let store = Arc::new(store);
        Self { store, hook }
    }

    /// Sets the hook that decides about all later calls.
    fn hook(&self, hook: impl FnMut(&Call<'_>) -> Intercept + Send + 'static) {
        *self.hook.lock().unwrap() = Box::new(hook);
    }

    async fn engine(&self, executor: Arc<ScriptedExecutor>) -> Engine {
        self.engine_of(executor, &[(WORK, 8)]).await
    }

    async fn engine_of(
        &self,
        executor: Arc<ScriptedExecutor>,
        queues: &[(Queue, usize)],
    ) -> Engine {
        let queues = queues.iter().cloned();
        let queues = queues.map(|(queue, limit)| QueueSettings { queue, limit });
        let settings = EngineSettings {
            queues: queues.collect(),
            ..EngineSettings::default()
        };
        self.engine_with(executor, settings).await
    }

    async fn engine_with(
        &self,
        executor: Arc<ScriptedExecutor>,
        settings: EngineSettings,
    ) -> Engine {
        let settings = EngineSettings {
            lease: LEASE,
            ..settings
        };
        let started = Engine::start(Arc::clone(&self.store), executor, settings).await;
        started.expect("the store grants a lease")
    }

    /// Counts claims from now on.
    fn count_claims(&self) -> Arc<AtomicUsize> {
        let claims = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&claims);
        self.hook(move |call| {
            if matches!(call, Call::Claim(_)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            Intercept::Pass
        });
        claims
    }

    async fn accept(&self, name: &str) -> OperationId {
        self.accept_in(name, WORK).await
    }

    async fn accept_in(&self, name: &str, queue: Queue) -> OperationId {
        let new = operation(name, queue, Start::Ready(Due::Now));
        let id = new.id;
        self.store.commit(&Commit::new().start(new)).await.unwrap();
        id
    }

    async fn row(&self, id: OperationId) -> OperationRow {
        let found = self.store.operation(id).await.unwrap();
        found.expect("it was accepted").row
    }

    /// Waits until an operation is done; the clock is paused, so this takes no time.
    async fn done(&self, id: OperationId) -> OperationRow {
        for _ in 0..100_000 {
            let row = self.row(id).await;
            if matches!(row.state, State::Done(_)) {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("operation {id} did not end: {:?}", self.row(id).await);
    }

    /// A worker that claims everything and never renews its lease.
    async fn claim_and_die(&self) {
        let worker = WorkerId::fresh();
        let ttl = Duration::from_secs(1);
        self.store.renew(worker, ttl).await.unwrap();
        let claimed = self.store.claim(worker, &[(WORK, 8)]).await.unwrap();
        assert_eq!(claimed.len(), 1);
        tokio::time::sleep(ttl).await;
    }
}

fn operation(name: &str, queue: Queue, start: Start) -> NewOperation {
    let realm = Realm::new("engine").unwrap();
    NewOperation {
        id: OperationId::fresh(),
        lane: Key::new(&realm, Kind::new("thing"), &[name]).unwrap(),
        verb: "provision",
        queue,
        start,
        detail: "".into(),
        request: "".into(),
    }
}

/// Announces a new operation that a commit claims for an engine.
fn expect_claim(engine: &Engine, name: &str, queue: Queue) -> (ExpectedClaim, NewOperation) {
    expect_claim_with(engine, name, queue, None)
}

fn expect_claim_with(
    engine: &Engine,
    name: &str,
    queue: Queue,
    permit: Option<Permit>,
) -> (ExpectedClaim, NewOperation) {
    let mut new = operation(name, queue, Start::Waiting);
    let mut claim = engine.expect_claim(new.id, permit).expect("a lease");
    new.start = Start::Claimed(claim.worker());
    claim.set_operation(Operation::just_claimed(&new));
    (claim, new)
}

/// One run of a function of the test.
type ScriptedRun = Pin<Box<dyn Future<Output = Result<RunResult, Lost>> + Send>>;

/// One claim as an executor received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ObservedRun {
    id: OperationId,
    fence: u64,
    attempt: u32,
    takeovers: u32,
}

/// An executor that runs a function of the test and records its runs.
struct ScriptedExecutor {
    play: Box<dyn Fn(Arc<Run>, usize) -> ScriptedRun + Send + Sync>,
    observed: Mutex<Vec<ObservedRun>>,
    given_up: Mutex<Vec<ObservedRun>>,
    running: Mutex<HashMap<OperationId, u32>>,
}

impl ScriptedExecutor {
    /// `play` receives the run and the number of earlier runs of this operation.
    fn new<F, P>(play: F) -> Arc<Self>
    where
        F: Fn(Arc<Run>, usize) -> P + Send + Sync + 'static,
        P: Future<Output = Result<RunResult, Lost>> + Send + 'static,
    {
        Arc::new(Self {
            play: Box::new(move |run, before| Box::pin(play(run, before))),
            observed: Mutex::default(),
            given_up: Mutex::default(),
            running: Mutex::default(),
        })
    }

    fn observed(&self) -> Vec<ObservedRun> {
        self.observed.lock().unwrap().clone()
    }

    fn given_up(&self) -> Vec<ObservedRun> {
        self.given_up.lock().unwrap().clone()
    }
}

/// An executor whose first run of an operation hangs; later ones end it.
fn hanging_once() -> Arc<ScriptedExecutor> {
    ScriptedExecutor::new(|run, before| async move {
        if before == 0 {
            std::future::pending::<()>().await;
        }
        finish(&run).await
    })
}

fn observed(run: &Run) -> ObservedRun {
    let row = &run.operation().row;
    ObservedRun {
        id: row.id,
        fence: row.fence.0,
        attempt: row.attempt,
        takeovers: row.takeovers,
    }
}

/// Waits until a condition holds; the clock is paused, so this takes no time.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}

/// Ends an operation as succeeded.
async fn finish(run: &Run) -> Result<RunResult, Lost> {
    end(run, Outcome::Succeeded).await
}

async fn end(run: &Run, outcome: Outcome) -> Result<RunResult, Lost> {
    let commit = Commit::new().advance(run.id(), Next::Done(outcome), None, None);
    run.commit(commit).await?.map_err(|_| Lost)?;
    Ok(RunResult::Finished)
}

/// Counts an operation as running until dropped.
struct RunningGuard<'a>(&'a ScriptedExecutor, OperationId);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

#[async_trait]
impl Executor for ScriptedExecutor {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let id = run.id();
        *self.running.lock().unwrap().entry(id).or_default() += 1;
        let _running = RunningGuard(self, id);
        assert_eq!(self.running.lock().unwrap()[&id], 1, "run twice at once");
        let before = self
            .observed()
            .iter()
            .filter(|observed| observed.id == id)
            .count();
        self.observed.lock().unwrap().push(observed(&run));
        (self.play)(run, before).await
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        self.given_up.lock().unwrap().push(observed(&run));
        end(&run, Outcome::Failed).await
    }
}
