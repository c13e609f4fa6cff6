//! The scheduler and its tasks: planning, running, requesting, failing, ending.

use super::{
    NextRun, PeriodicTask, PeriodicTasks, Scheduler, TASK_VERB, TaskContext, TaskDocument,
    TaskError, TaskResult, TaskState, TaskStatus,
};
use crate::{Documents, Resource, StoreClock};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::{
    Due, Engine, EngineSettings, Executor, Key, KeyRing, Lost, MemoryStore, OperationId, Outcome,
    Queue, Realm, Run, RunResult, StoreTime, Term,
};

const QUEUE: Queue = Queue::named("tasks");

fn fixture() -> Arc<Documents> {
    Arc::new(Documents {
        store: Arc::new(MemoryStore::new()),
        keys: Arc::new(KeyRing::ephemeral()),
        realm: Realm::new("house").expect("a name"),
        clock: Arc::new(StoreClock::at(StoreTime::default())),
    })
}

/// A document with a schedule, as cleanup has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Lane {
    operation: Option<OperationId>,
    runs: u32,
}

impl Resource for Lane {
    fn terms(&self, _: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

impl TaskDocument for Lane {
    fn planned(&self) -> Option<OperationId> {
        self.operation
    }

    fn set_planned(&mut self, id: OperationId) {
        self.operation = Some(id);
    }
}

/// Runs a lane three times, then ends it.
struct ThreeRuns(Scheduler);

#[async_trait]
impl Executor for ThreeRuns {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let lane = run.operation().row.lane.clone();
        if !self.0.is_planned::<Lane>(&run, &lane).await? {
            return self.0.cancel(&run).await;
        }
        let next = |was: &Lane| {
            let document = Lane {
                operation: None,
                runs: was.runs + 1,
            };
            let due = Due::Now;
            (document.runs < 3).then_some(NextRun { document, due })
        };
        self.0.end(&run, &lane, Outcome::Succeeded, next).await
    }

    async fn give_up(&self, _: Arc<Run>) -> Result<RunResult, Lost> {
        Ok(RunResult::Finished)
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to that: {what}");
}

fn first_run(was: &Lane) -> Option<NextRun<Lane>> {
    let plans = was.operation.is_none();
    plans.then(|| NextRun {
        document: was.clone(),
        due: Due::Now,
    })
}

#[tokio::test]
async fn a_lane_is_planned_once_runs_and_ends() {
    let documents = fixture();
    let scheduler = Scheduler::new(documents.clone(), QUEUE, "cleanup");
    let lane = scheduler.lane("nightly");
    for _ in 0..2 {
        scheduler
            .plan(&lane, first_run)
            .await
            .expect("it is planned");
    }
    let planned = documents.load::<Lane>(&lane).await.expect("it is read");
    let first = planned.state.operation.expect("one run is planned");
    let operation = documents.store.operation(first).await.expect("it answers");
    let operation = operation.expect("it is there");
    let request: serde_json::Value = documents.open_request(&operation).expect("it opens");
    assert_eq!(
        request,
        serde_json::json!({"asked": "cleanup", "origin": {}}),
        "the form of all stored requests"
    );
    let executor = Arc::new(ThreeRuns(scheduler));
    let settings = EngineSettings::for_queue(QUEUE, 1);
    let engine = Engine::start(documents.store.clone(), executor, settings).await;
    let _engine = engine.expect("the engine starts");
    until("the lane has ended", async || {
        let stored = documents.store.get(&lane).await.expect("it answers");
        stored.is_none()
    })
    .await;
}

/// Counts its runs; the first one fails if `fails` is set.
struct Counting {
    runs: Arc<AtomicUsize>,
    fails: bool,
}

#[async_trait]
impl PeriodicTask for Counting {
    fn name(&self) -> &str {
        "chore-counting"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run_once(&self, context: &TaskContext) -> TaskResult<()> {
        self.runs.fetch_add(1, Ordering::AcqRel);
        context.progress("half of it").await?;
        let was = context
            .collections()
            .get::<usize>("numbers", "last")
            .await?;
        let next = was.as_ref().map_or(1, |it| it.value + 1);
        let batch = context
            .batch()
            .put("numbers", "last", was.map(|it| it.revision), &next);
        assert!(context.write(batch).await?, "nobody else writes");
        match self.fails {
            true => Err(TaskError::failed("it failed on purpose")),
            false => Ok(()),
        }
    }
}

struct RunsTasks(Arc<PeriodicTasks>);

#[async_trait]
impl Executor for RunsTasks {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        assert_eq!(run.operation().row.verb, TASK_VERB);
        self.0.run(run).await
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        self.0.give_up(run).await
    }
}

async fn started(fails: bool) -> (Arc<PeriodicTasks>, Arc<AtomicUsize>, Engine) {
    let documents = fixture();
    let runs = Arc::new(AtomicUsize::new(0));
    let task = Arc::new(Counting {
        runs: runs.clone(),
        fails,
    });
    let timeout = Duration::from_secs(10);
    let tasks = PeriodicTasks::new(vec![task], documents.clone(), QUEUE, timeout);
    let tasks = Arc::new(tasks);
    for _ in 0..2 {
        tasks.plan_all().await.expect("it is planned");
    }
    let executor = Arc::new(RunsTasks(tasks.clone()));
    let settings = EngineSettings::for_queue(QUEUE, 1);
    let engine = Engine::start(documents.store.clone(), executor, settings).await;
    (tasks, runs, engine.expect("the engine starts"))
}

#[tokio::test]
async fn a_task_runs_at_the_start_and_on_request() {
    let (tasks, runs, _engine) = started(false).await;
    let name = "chore-counting";
    let status = async || tasks.status(name).await.expect("it answers");
    until("the first run ended", async || {
        status().await.ended.is_some()
    })
    .await;
    assert_eq!(runs.load(Ordering::Acquire), 1, "it is planned once");
    let number = tasks.request_run(name).await.expect("it is written");
    until("the request is served", async || {
        status().await.served >= number
    })
    .await;
    assert_eq!(runs.load(Ordering::Acquire), 2);
    let last = tasks.collections().get::<usize>("numbers", "last").await;
    assert_eq!(last.expect("it answers").expect("it is there").value, 2);
    assert_eq!(status().await.failure, None);
}

#[tokio::test]
async fn a_failed_task_reports_its_reason_and_is_planned_again() {
    let (tasks, _, _engine) = started(true).await;
    let name = "chore-counting";
    until("the run ended", async || {
        let status = tasks.status(name).await.expect("it answers");
        status.ended.is_some()
    })
    .await;
    let status = tasks.status(name).await.expect("it answers");
    assert_eq!(status.failure.as_deref(), Some("it failed on purpose"));
    assert_eq!(status.running_since, None);
    let documents = tasks.collections().documents();
    let state = documents.load::<TaskState>(&tasks.lane(name)).await;
    assert!(state.expect("it answers").state.operation.is_some());
}

#[test]
fn a_status_is_stored_under_its_old_names() {
    let state = TaskState {
        status: TaskStatus {
            requested: 2,
            served: 1,
            ..TaskStatus::default()
        },
        ..TaskState::default()
    };
    let stored = serde_json::to_value(&state).expect("it serialises");
    assert_eq!(
        stored,
        serde_json::json!({
            "operation": null,
            "every": {"secs": 0, "nanos": 0},
            "running_since": null,
            "progress": null,
            "ended": null,
            "failure": null,
            "asked": 2,
            "served": 1,
            "serving": 0,
        })
    );
}
