//! Periodic tasks of the platform: what no command and no answer of a broker causes. Each runs once across replicas.
//!
//! A task is a singleton lane of `sutler_records`' scheduler. It takes no input: it lists by an index term what is due, in
//! bounded pages, and asks the rules, so a crash loses nothing.
//!
//! `settled_orphans.rs` repeats notices of the orphan ledger, `due_bindings.rs` rotates and unbinds, `secret_changes.rs`
//! notifies the users of secrets, `abandoned_brokers.rs` gives up what deregistered brokers have (`broker_abandonment.rs`),
//! `retention.rs` removes what is old. `listed_keys.rs` has the pages.

mod abandoned_brokers;
mod broker_abandonment;
mod due_bindings;
mod listed_keys;
mod retention;
mod secret_changes;
mod settled_orphans;
mod task_run_error;
#[cfg(test)]
mod tests;

pub use broker_abandonment::AbandonProgress;
pub(crate) use broker_abandonment::{AbandonBrokerError, abandon_marked};

use crate::context::PlatformContext;
use crate::records::platform_queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use sutler_journal::{
    Commit, CommitError, Due, Key, Lost, OperationId, Outcome, Run, RunResult, Term, Write,
    commit_until_known,
};
use sutler_records::{NextRun, Resource, Scheduler, TaskDocument};
use task_run_error::TaskRunError;

/// Verb of the operations of these tasks.
const PERIODIC_VERB: &str = "periodic";

/// A periodic task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlatformTask {
    /// Notices of orphans that are settled, for what still waits for them.
    SettledOrphans,
    /// Rotations of bindings, and unbinds of what they replaced.
    DueBindings,
    /// Notices of changed secrets to the instances that use them.
    SecretChanges,
    /// What is left of brokers that are deregistered with everything that they have.
    AbandonedBrokers,
    /// Removal of what is past its retention.
    Retention,
}

/// The document of a task's lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedTask {
    /// The operation that waits for the next run, or runs.
    operation: Option<OperationId>,
    /// Interval for which it was planned.
    every: Duration,
}

impl Resource for PlannedTask {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

impl TaskDocument for PlannedTask {
    fn planned(&self) -> Option<OperationId> {
        self.operation
    }

    fn set_planned(&mut self, id: OperationId) {
        self.operation = Some(id);
    }
}

impl PlatformTask {
    const ALL: [Self; 5] = [
        Self::SettledOrphans,
        Self::DueBindings,
        Self::SecretChanges,
        Self::AbandonedBrokers,
        Self::Retention,
    ];

    /// Its name, which is that of its lane.
    fn name(self) -> &'static str {
        match self {
            Self::SettledOrphans => "settled-orphans",
            Self::DueBindings => "due-bindings",
            Self::SecretChanges => "secret-changes",
            Self::AbandonedBrokers => "abandoned-brokers",
            Self::Retention => "retention",
        }
    }

    /// Time between the end of a run and the next one.
    fn every(self) -> Duration {
        match self {
            Self::SettledOrphans
            | Self::DueBindings
            | Self::SecretChanges
            | Self::AbandonedBrokers => Duration::from_secs(60),
            Self::Retention => Duration::from_secs(600),
        }
    }

    fn next_run(self, due: Due) -> NextRun<PlannedTask> {
        let document = PlannedTask {
            operation: None,
            every: self.every(),
        };
        NextRun { document, due }
    }

    async fn work(self, context: &PlatformContext, run: &Run) -> Result<(), TaskRunError> {
        match self {
            Self::SettledOrphans => settled_orphans::repeat_notices(context, run).await,
            Self::DueBindings => due_bindings::apply_due(context, run).await,
            Self::SecretChanges => secret_changes::notify_users(context, run).await,
            Self::AbandonedBrokers => abandoned_brokers::abandon_all(context, run).await,
            Self::Retention => retention::remove_old(context, run).await,
        }
    }
}

fn scheduler(context: &PlatformContext) -> Scheduler {
    let documents = context.records.documents.clone();
    Scheduler::new(documents, platform_queue(), PERIODIC_VERB)
}

/// Plans the first run of every task that has none, or has another interval than before.
///
/// # Errors
/// The store does not read or write.
pub(crate) async fn plan_all(context: &PlatformContext) -> Result<(), CommitError> {
    let scheduler = scheduler(context);
    for task in PlatformTask::ALL {
        let plan = |was: &PlannedTask| {
            let keep = was.operation.is_some() && was.every == task.every();
            (!keep).then(|| task.next_run(Due::In(task.every())))
        };
        scheduler.plan(&scheduler.lane(task.name()), plan).await?;
    }
    Ok(())
}

/// A secret has changed: its users are notified now. If that fails, the next run of the task does it.
pub(crate) async fn wake_secret_changes(context: &PlatformContext) {
    let lane = scheduler(context).lane(PlatformTask::SecretChanges.name());
    let documents = &context.records.documents;
    let Ok(found) = documents.load::<PlannedTask>(&lane).await else {
        return;
    };
    if let Some(operation) = found.state.operation {
        let wake = Commit::new().write(Write::Wake(operation));
        if let Err(error) = commit_until_known(documents.store.as_ref(), &wake).await {
            tracing::debug!(%error, "the notices of a changed secret are given later");
        }
    }
}

/// Runs the task of a claimed operation once, and plans its next run.
///
/// # Errors
/// The claim was lost.
pub(crate) async fn run_task(context: &PlatformContext, run: &Run) -> Result<RunResult, Lost> {
    let lane = run.operation().row.lane.clone();
    let scheduler = scheduler(context);
    let task = task_of(&lane);
    let is_planned = scheduler.is_planned::<PlannedTask>(run, &lane).await?;
    let mut outcome = Outcome::Succeeded;
    if let (true, Some(task)) = (is_planned, task) {
        match task.work(context, run).await {
            Ok(()) => {}
            Err(TaskRunError::Lost(lost)) => return Err(lost),
            Err(TaskRunError::Record(error)) => {
                outcome = Outcome::Failed;
                tracing::warn!(
                    task = task.name(),
                    error = &error as &dyn std::error::Error,
                    "a periodic task failed; its next run does what this one could not"
                );
            }
        }
    }
    end(&scheduler, run, &lane, outcome).await
}

/// Ends a run that was taken over too often; the next one is planned as always.
///
/// # Errors
/// The claim was lost.
pub(crate) async fn give_up_task(context: &PlatformContext, run: &Run) -> Result<RunResult, Lost> {
    let lane = run.operation().row.lane.clone();
    tracing::error!(
        task = lane.id(0),
        "a periodic task was interrupted too often"
    );
    end(&scheduler(context), run, &lane, Outcome::Failed).await
}

/// Ends a run. The lane of a task that this version does not have stays for the versions that have it.
async fn end(
    scheduler: &Scheduler,
    run: &Run,
    lane: &Key,
    outcome: Outcome,
) -> Result<RunResult, Lost> {
    /// Wait before a task that this process does not have is claimed again.
    const UNKNOWN_TASK_AGAIN: Duration = Duration::from_secs(60);
    let Some(task) = task_of(lane) else {
        return Ok(RunResult::Yield(UNKNOWN_TASK_AGAIN));
    };
    let next = |_: &PlannedTask| Some(task.next_run(Due::In(task.every())));
    scheduler.end(run, lane, outcome, next).await
}

fn task_of(lane: &Key) -> Option<PlatformTask> {
    let mut all = PlatformTask::ALL.into_iter();
    all.find(|task| task.name() == lane.id(0))
}
