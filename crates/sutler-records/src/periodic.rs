//! Periodic tasks of extensions. Each runs on one replica at a time, at an interval or on request.
//!
//! A task is an operation in a singleton lane (`periodic/schedule.rs`). A worker that dies is taken
//! over. Tasks read and write `collections.rs`. A request for a run gets a number; the run is over
//! when [`TaskStatus::served`] reaches it.

mod error;
mod schedule;
#[cfg(test)]
mod tests;

pub use error::{TaskError, TaskResult};
pub use schedule::{NextRun, PlannedOperation, SINGLETON, Scheduler, TaskDocument};

use crate::background::run_in_background;
use crate::collections::{Batch, Collections, CollectionsError};
use crate::{Documents, Resource, wall_timestamp};
use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{
    Commit, CommitError, CommitRejectedError, Due, Key, Lost, Next, OperationId, Outcome, Queue,
    Run, RunCommitError, RunResult, StoreError, Term, Write, commit_until_known,
};
use tokio_util::sync::CancellationToken;

/// Verb of the operations of these tasks.
pub const TASK_VERB: &str = "chore";
/// First part of the names of their lanes.
const LANE_PREFIX: &str = "chore-";
/// Maximum attempts to write a request for a run before the store counts as too busy.
const TRIES: u32 = 8;
/// Longest time until the next run after one that failed.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// Wait before a task that this process does not have is claimed again.
const UNKNOWN_TASK_AGAIN: Duration = Duration::from_secs(60);
/// Longest text of progress or failure that is stored, in characters.
const TEXT_CHARS_MAX: usize = 1000;

/// A task that runs at an interval, on one replica at a time.
#[async_trait]
pub trait PeriodicTask: Send + Sync + 'static {
    /// Name of the task. Tasks with the same name are one task on all replicas.
    fn name(&self) -> &str;

    /// Time between the end of a run and the next one.
    fn every(&self) -> Duration;

    /// Runs the task once. Called again after a crash, it continues from the stored records.
    ///
    /// # Errors
    /// The run failed; it is logged, and the next run is planned.
    async fn run_once(&self, context: &TaskContext) -> TaskResult<()>;
}

/// Access of a running task to its collections and its claim.
pub struct TaskContext {
    run: Arc<Run>,
    collections: Collections,
    /// How long a write waits for a store that accepts no writes.
    write_timeout: Duration,
}

impl TaskContext {
    /// The collections.
    #[must_use]
    pub fn collections(&self) -> &Collections {
        &self.collections
    }

    /// Cancelled when writes are no longer possible, because the claim was lost or the process stops.
    #[must_use]
    pub fn lost(&self) -> &CancellationToken {
        self.run.lost()
    }

    /// An empty batch.
    pub fn batch(&self) -> Batch<'_> {
        self.collections.batch()
    }

    /// Writes all of a batch, or nothing. `false`: another writer was first; read and decide again.
    ///
    /// # Errors
    /// The claim was lost, the store accepts no writes, or the batch is too large for any store.
    pub async fn write(&self, batch: Batch<'_>) -> TaskResult<bool> {
        if let Some(id) = batch.invalid_id() {
            return Err(TaskError::failed(format!(
                "a record cannot be named {id:?}; rename it"
            )));
        }
        match self.commit(batch.into_commit()).await? {
            Ok(()) => Ok(true),
            Err(CommitRejectedError::Stale(_)) => Ok(false),
            Err(CommitRejectedError::TooLarge(why)) => Err(TaskError::failed(
                "a record is too large to be kept; make it smaller",
            )
            .because(why)),
        }
    }

    /// Stores the progress of the run, for [`TaskStatus::progress`].
    ///
    /// # Errors
    /// The claim was lost, or the store accepts no writes.
    pub async fn progress(&self, text: &str) -> TaskResult<()> {
        let detail = TaskDetail {
            description: Some(text.chars().take(TEXT_CHARS_MAX).collect()),
        };
        let sealed = self
            .collections
            .documents()
            .seal_detail(self.run.id(), &detail);
        let commit = Commit::new().advance(self.run.id(), Next::Same, Some(sealed), None);
        // Without other expectations only the end of this run can come first.
        self.commit(commit).await?.map_err(|_| TaskError::lost())
    }

    async fn commit(&self, commit: Commit) -> TaskResult<Result<(), CommitRejectedError>> {
        let committed = self.run.commit_within(commit, self.write_timeout).await;
        committed.map_err(|stopped| match stopped {
            RunCommitError::Lost => TaskError::lost(),
            RunCommitError::Refused(why) => TaskError::failed(format!(
                "the store takes no write: {why}; see to it, the next turn does what this one could not"
            )),
        })
    }
}

/// Detail of a task's operation.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct TaskDetail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// Status of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Start of the present run, if one runs.
    #[serde(default)]
    pub running_since: Option<Timestamp>,
    /// Progress of the run.
    #[serde(default)]
    pub progress: Option<String>,
    /// When the last run ended.
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// Why the last run failed, if it did.
    #[serde(default)]
    pub failure: Option<String>,
    /// Number of the last request for a run.
    #[serde(default, rename = "asked")]
    pub requested: u64,
    /// Number of the last request that a run has served.
    #[serde(default)]
    pub served: u64,
}

/// The document of a task's lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct TaskState {
    operation: Option<OperationId>,
    every: Duration,
    #[serde(flatten)]
    status: TaskStatus,
    /// Last request when the present run began.
    #[serde(default)]
    serving: u64,
}

impl Resource for TaskState {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

impl TaskDocument for TaskState {
    fn planned(&self) -> Option<OperationId> {
        self.operation
    }

    fn set_planned(&mut self, id: OperationId) {
        self.operation = Some(id);
    }
}

/// The periodic tasks of a process.
pub struct PeriodicTasks {
    collections: Collections,
    scheduler: Scheduler,
    tasks: Vec<Arc<dyn PeriodicTask>>,
    write_timeout: Duration,
    /// Failures of runs in this process that are not stored yet, by task: the store may accept no writes.
    failing: Mutex<BTreeMap<String, String>>,
}

impl PeriodicTasks {
    /// Tasks over the collections of a realm. Operations wait in `queue`; a write of a task waits at
    /// most `write_timeout` for a store that accepts none.
    #[must_use]
    pub fn new(
        tasks: Vec<Arc<dyn PeriodicTask>>,
        documents: Arc<Documents>,
        queue: Queue,
        write_timeout: Duration,
    ) -> Self {
        Self {
            collections: Collections::new(documents.clone()),
            scheduler: Scheduler::new(documents, queue, TASK_VERB),
            tasks,
            write_timeout,
            failing: Mutex::default(),
        }
    }

    /// The collections of the tasks.
    #[must_use]
    pub fn collections(&self) -> &Collections {
        &self.collections
    }

    fn documents(&self) -> &Documents {
        self.collections.documents()
    }

    fn lane(&self, name: &str) -> Key {
        self.scheduler.lane(&format!("{LANE_PREFIX}{name}"))
    }

    /// Plans the first run of every task that has none, or has another interval than before.
    ///
    /// # Errors
    /// The store does not read or write.
    pub async fn plan_all(&self) -> Result<(), CommitError> {
        for task in &self.tasks {
            let every = task.every();
            let plan = |was: &TaskState| {
                // A task that runs is not planned again: there would be two runs. The end of the run
                // takes the new interval.
                let runs = was.status.running_since.is_some();
                let same = was.every == every;
                let keep = was.operation.is_some() && (same || runs);
                (!keep).then(|| NextRun {
                    document: TaskState {
                        every,
                        ..was.clone()
                    },
                    due: Due::Now,
                })
            };
            self.scheduler.plan(&self.lane(task.name()), plan).await?;
        }
        Ok(())
    }

    /// Status of a task; the default status if there is no such task.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn status(&self, name: &str) -> Result<TaskStatus, CollectionsError> {
        let documents = self.documents();
        let state = documents.load::<TaskState>(&self.lane(name)).await?.state;
        let mut status = state.status;
        if let (Some(_), Some(id)) = (status.running_since, state.operation)
            && let Some(operation) = documents.store.operation(id).await?
        {
            let detail = documents.open_detail::<TaskDetail>(id, &operation.row.detail)?;
            status.progress = detail.description;
        }
        let here = self.failing().get(name).cloned();
        status.failure = here.or(status.failure);
        Ok(status)
    }

    /// Requests a run now, and returns the number that [`TaskStatus::served`] must reach.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn request_run(&self, name: &str) -> Result<u64, CollectionsError> {
        let lane = self.lane(name);
        let documents = self.documents();
        for _ in 0..TRIES {
            let was = documents.load::<TaskState>(&lane).await?;
            let mut state = was.state.clone();
            state.status.requested += 1;
            let number = state.status.requested;
            let mut commit = documents.put(Commit::new(), &lane, &was, &state);
            if let Some(id) = state.operation {
                commit = commit.write(Write::Wake(id));
            }
            match commit_until_known(documents.store.as_ref(), &commit).await {
                Ok(()) => return Ok(number),
                Err(CommitError::Stale(_)) => {}
                Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => {
                    return Err(error.into());
                }
            }
        }
        Err(StoreError::new("too many ask at once; ask again").into())
    }

    /// Runs a task once and plans its next run.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn run(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let lane = run.operation().row.lane.clone();
        let Some(task) = self.task_of(&lane) else {
            // A process of another version may have it.
            return Ok(RunResult::Yield(UNKNOWN_TASK_AGAIN));
        };
        let begin = |state: &mut TaskState| {
            state.serving = state.status.requested;
            state.status.running_since = Some(wall_timestamp());
        };
        if !self.scheduler.begin(&run, &lane, begin).await? {
            return self.scheduler.cancel(&run).await;
        }
        let failure = match self.run_task(task, &run).await? {
            Ok(()) => None,
            Err(error) if error.is_lost() => return Err(Lost),
            Err(error) => {
                let name = task.name();
                tracing::error!(task = %name, ?error, "a periodic task failed; it runs again at its next time");
                let failure: String = error.message().chars().take(TEXT_CHARS_MAX).collect();
                self.failing().insert(name.to_owned(), failure.clone());
                Some(failure)
            }
        };
        let ended = self.end(&run, &lane, task.as_ref(), failure).await;
        self.failing().remove(task.name());
        ended
    }

    /// Runs the task on the background thread, so that a long run does not delay requests.
    async fn run_task(
        &self,
        task: &Arc<dyn PeriodicTask>,
        run: &Arc<Run>,
    ) -> Result<TaskResult<()>, Lost> {
        let context = TaskContext {
            run: run.clone(),
            collections: self.collections.clone(),
            write_timeout: self.write_timeout,
        };
        let own = task.clone();
        let ran =
            run_in_background(
                async move { sutler_journal::catch_panic(own.run_once(&context)).await },
            );
        match ran.await {
            Ok(Ok(ran)) => Ok(ran),
            Ok(Err(())) => Ok(Err(TaskError::failed(
                "the periodic task panicked; the message is on standard error",
            ))),
            // The process ends.
            Err(_) => Err(Lost),
        }
    }

    /// Ends a run that was taken over too often.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let lane = run.operation().row.lane.clone();
        let failure = "it was interrupted too often; see why workers die".to_owned();
        match self.task_of(&lane) {
            Some(task) => self.end(&run, &lane, task.as_ref(), Some(failure)).await,
            None => Ok(RunResult::Yield(UNKNOWN_TASK_AGAIN)),
        }
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task_of(&self, lane: &Key) -> Option<&Arc<dyn PeriodicTask>> {
        let name = lane.id(0).strip_prefix(LANE_PREFIX)?;
        self.tasks.iter().find(|it| it.name() == name)
    }

    async fn end(
        &self,
        run: &Run,
        lane: &Key,
        task: &dyn PeriodicTask,
        failure: Option<String>,
    ) -> Result<RunResult, Lost> {
        let outcome = match failure {
            None => Outcome::Succeeded,
            Some(_) => Outcome::Failed,
        };
        let every = task.every();
        let next = |was: &TaskState| {
            let status = TaskStatus {
                running_since: None,
                progress: None,
                ended: Some(wall_timestamp()),
                failure: failure.clone(),
                requested: was.status.requested,
                served: was.serving,
            };
            let due = match status.requested > status.served {
                true => Due::Now,
                false if failure.is_some() => Due::In(every.min(RETRY_AFTER)),
                false => Due::In(every),
            };
            let document = TaskState {
                every,
                status,
                ..was.clone()
            };
            Some(NextRun { document, due })
        };
        self.scheduler.end(run, lane, outcome, next).await
    }
}
