//! The scheduler of periodic work: one operation per task waits in a singleton lane for its next run.
//!
//! The document of the lane names that operation, and the end of a run plans the next one in the same
//! commit. So a task runs once across replicas, and a crash loses no run. The caller decides when a task
//! is due and runs it: `periodic.rs` for tasks with an interval, cleanup of the crate above for schedules.

use crate::{Documents, LoadedDocument, RecordError, Resource};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sutler_journal::{
    Commit, CommitError, Due, Key, Kind, Lost, NewOperation, Next, OperationId, Outcome, Queue,
    Run, RunResult, Start, StoreError, Term, Write, commit_until_known,
};

/// Kind of the documents of singleton lanes.
pub const SINGLETON: Kind = Kind::new("singleton");

/// The document of a singleton lane.
pub trait TaskDocument: Resource {
    /// The operation that waits for the next run, or runs.
    fn planned(&self) -> Option<OperationId>;

    /// Names the operation of the next run.
    fn set_planned(&mut self, id: OperationId);
}

/// The part that the documents of all singleton lanes have in common; for checks that do not know the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedOperation {
    operation: Option<OperationId>,
}

impl Resource for PlannedOperation {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

/// State of a task's document, and when its next run is due.
pub struct NextRun<D> {
    /// The document; the scheduler names the operation in it.
    pub document: D,
    /// When the run is due.
    pub due: Due,
}

/// The request of a scheduled operation, in the form of all other requests.
#[derive(Serialize)]
struct ScheduledRequest {
    asked: &'static str,
    origin: NoOrigin,
}

/// Empty origin: no request caused a scheduled run.
#[derive(Serialize)]
struct NoOrigin {}

/// Plans and ends the runs of periodic tasks in one realm.
#[derive(Clone)]
pub struct Scheduler {
    documents: Arc<Documents>,
    queue: Queue,
    verb: &'static str,
}

impl Scheduler {
    /// A scheduler whose operations have this verb and wait in this queue.
    #[must_use]
    pub fn new(documents: Arc<Documents>, queue: Queue, verb: &'static str) -> Self {
        Self {
            documents,
            queue,
            verb,
        }
    }

    /// Lane of the task with this name.
    #[must_use]
    pub fn lane(&self, name: &str) -> Key {
        self.documents.key(SINGLETON, name)
    }

    /// Plans the first run of a task, or plans it again. `next`: the run to plan, `None` if the present
    /// plan is kept or there is no next time.
    ///
    /// # Errors
    /// The store does not read or write.
    pub async fn plan<D: TaskDocument>(
        &self,
        lane: &Key,
        next: impl FnOnce(&D) -> Option<NextRun<D>>,
    ) -> Result<(), CommitError> {
        let was = self.documents.load::<D>(lane).await.map_err(unreadable)?;
        let Some(next) = next(&was.state) else {
            return Ok(());
        };
        let commit = self.add_run(Commit::new(), lane, &was, next);
        match commit_until_known(self.documents.store.as_ref(), &commit).await {
            // Stale: another replica planned it first.
            Ok(()) | Err(CommitError::Stale(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether a run is the planned one of its lane. Another one was replaced by a later plan.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn is_planned<D: TaskDocument>(&self, run: &Run, lane: &Key) -> Result<bool, Lost> {
        let was = self.documents.load_for_run::<D>(run, lane).await?;
        Ok(was.state.planned() == Some(run.id()))
    }

    /// Writes to the document that the planned run begins. `false`: this run is not the planned one.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn begin<D: TaskDocument>(
        &self,
        run: &Run,
        lane: &Key,
        change: impl Fn(&mut D),
    ) -> Result<bool, Lost> {
        loop {
            let was = self.documents.load_for_run::<D>(run, lane).await?;
            if was.state.planned() != Some(run.id()) {
                return Ok(false);
            }
            let mut next = was.state.clone();
            change(&mut next);
            let commit = self.documents.put(Commit::new(), lane, &was, &next);
            if run.commit(commit).await?.is_ok() {
                return Ok(true);
            }
        }
    }

    /// Ends a run and plans the next. `next` returns `None` if there is no next time: the lane ends.
    /// A run that is not the planned one only ends.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn end<D: TaskDocument>(
        &self,
        run: &Run,
        lane: &Key,
        outcome: Outcome,
        next: impl Fn(&D) -> Option<NextRun<D>>,
    ) -> Result<RunResult, Lost> {
        loop {
            let was = self.documents.load_for_run::<D>(run, lane).await?;
            let commit = Commit::new()
                .advance(run.id(), Next::Done(outcome), None, None)
                .write(Write::Unpin(run.id()));
            let commit = match next(&was.state) {
                _ if was.state.planned() != Some(run.id()) => commit,
                Some(next) => self.add_run(commit, lane, &was, next),
                None => match was.version {
                    Some(version) => commit.remove(lane.clone(), version),
                    None => commit,
                },
            };
            if run.commit(commit).await?.is_ok() {
                return Ok(RunResult::Finished);
            }
        }
    }

    /// Ends a run that does nothing: its task is not configured here, or another run is the planned
    /// one.
    ///
    /// # Errors
    /// The claim was lost.
    pub async fn cancel(&self, run: &Run) -> Result<RunResult, Lost> {
        let commit = Commit::new()
            .advance(run.id(), Next::Done(Outcome::Cancelled), None, None)
            .write(Write::Unpin(run.id()));
        run.commit(commit).await?.map_err(|_| Lost)?;
        Ok(RunResult::Finished)
    }

    fn add_run<D: TaskDocument>(
        &self,
        commit: Commit,
        lane: &Key,
        was: &LoadedDocument<D>,
        next: NextRun<D>,
    ) -> Commit {
        let id = OperationId::fresh();
        let mut document = next.document;
        document.set_planned(id);
        let request = ScheduledRequest {
            asked: self.verb,
            origin: NoOrigin {},
        };
        let new = NewOperation {
            id,
            lane: lane.clone(),
            verb: self.verb,
            queue: self.queue.clone(),
            start: Start::Ready(next.due),
            detail: Bytes::new(),
            request: self.documents.seal_request(id, &request),
        };
        self.documents.put(commit, lane, was, &document).start(new)
    }
}

fn unreadable(error: RecordError) -> CommitError {
    CommitError::NotWritten(StoreError::caused(
        "the plan of scheduled work cannot be read",
        error,
    ))
}
