//! Scheduled cleanup: finished operations, old tombstones and audit entries, the change feed, interrupted purges.
//!
//! Each task is a singleton lane of `sutler_records`' scheduler, so it runs once across replicas. Removal itself is
//! in `sutler_records::Retention`, purges in `requests/purge.rs`.

use crate::realm_context::{RealmContext, queue_of};
use crate::requests::RequestHandler;
use crate::resources::{BINDING, GONE, INSTANCE, moment_bytes};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    CommitError, Due, Key, Kind, List, Lost, OperationId, Outcome, Run, RunResult, StoreTime, Term,
};
use sutler_records::{
    NextRun, Resource, Retention, SINGLETON, Schedule, Scheduler, TaskDocument, wall_timestamp,
};

/// Verb of these operations.
const VERB: &str = "cleanup";
/// The task that every broker has.
const HOUSEKEEPING: &str = "housekeeping";
/// Interval of that task, short enough for the limit of the change feed.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(600);
/// How long finished cleanups are kept.
const CLEANUPS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// The document of a cleanup's lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CleanupState {
    /// The operation that waits for the next run, or runs.
    operation: Option<OperationId>,
    /// Schedule for which it was planned.
    schedule: String,
}

impl Resource for CleanupState {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

impl TaskDocument for CleanupState {
    fn planned(&self) -> Option<OperationId> {
        self.operation
    }

    fn set_planned(&mut self, id: OperationId) {
        self.operation = Some(id);
    }
}

/// A cleanup task.
enum Task<'a> {
    Housekeeping,
    Operations {
        kind: Kind,
        outcome: Option<Outcome>,
        age: Duration,
        schedule: &'a Schedule,
    },
}

/// The tasks of a broker, by name.
fn tasks(settings: &Settings) -> Vec<(String, Task<'_>)> {
    let mut tasks = vec![(HOUSEKEEPING.to_owned(), Task::Housekeeping)];
    for (kind, its) in [
        (INSTANCE, &settings.instances),
        (BINDING, &settings.bindings),
    ] {
        let schedules = [
            ("all", None, &its.cleanup.all),
            (
                "succeeded",
                Some(Outcome::Succeeded),
                &its.cleanup.succeeded,
            ),
            ("failed", Some(Outcome::Failed), &its.cleanup.failed),
        ];
        for (word, outcome, schedule) in schedules {
            if let Some(schedule) = schedule {
                let age = its.cleanup.age;
                let name = format!("cleanup-{}-{word}", kind.as_str());
                tasks.push((
                    name,
                    Task::Operations {
                        kind,
                        outcome,
                        age,
                        schedule,
                    },
                ));
            }
        }
    }
    tasks
}

impl Task<'_> {
    fn schedule(&self) -> String {
        match self {
            Self::Housekeeping => "every 10 minutes".to_owned(),
            Self::Operations { schedule, .. } => schedule.to_string(),
        }
    }

    fn until_next(&self) -> Option<Duration> {
        match self {
            Self::Housekeeping => Some(HOUSEKEEPING_EVERY),
            Self::Operations { schedule, .. } => {
                let now = wall_timestamp();
                let next = schedule.next_after(now)?;
                Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
            }
        }
    }

    /// The next run; `None` if there will be none.
    fn next_run(&self) -> Option<NextRun<CleanupState>> {
        let due = Due::In(self.until_next()?);
        let document = CleanupState {
            operation: None,
            schedule: self.schedule(),
        };
        Some(NextRun { document, due })
    }
}

fn scheduler(realm_context: &RealmContext) -> Scheduler {
    let queue = queue_of(&realm_context.records.realm);
    Scheduler::new(realm_context.records.clone(), queue, VERB)
}

/// Plans the first run of every task that has none, or has another schedule than before.
pub(crate) async fn plan_all(realm_context: &RealmContext) -> Result<(), CommitError> {
    let scheduler = scheduler(realm_context);
    for (name, task) in tasks(&realm_context.settings) {
        let plan = |was: &CleanupState| {
            let keep = was.operation.is_some() && was.schedule == task.schedule();
            if keep { None } else { task.next_run() }
        };
        scheduler.plan(&scheduler.lane(&name), plan).await?;
    }
    Ok(())
}

/// Runs a task once and plans its next run. A task that is not configured any more ends its lane.
pub(crate) async fn run(realm_context: &Arc<RealmContext>, run: &Run) -> Result<RunResult, Lost> {
    let lane = run.operation().row.lane.clone();
    let name = lane.id(0);
    let all = tasks(&realm_context.settings);
    let named = all.iter().find(|(known, _)| known == name);
    let task = named.map(|(_, task)| task);
    let scheduler = scheduler(realm_context);
    let planned = scheduler.is_planned::<CleanupState>(run, &lane).await?;
    if let (true, Some(task)) = (planned, task) {
        let removed = work(realm_context, run, task).await?;
        tracing::info!(task = %name, removed, "scheduled clean-up done");
    }
    let next = |_: &CleanupState| task?.next_run();
    scheduler.end(run, &lane, Outcome::Succeeded, next).await
}

async fn work(realm_context: &Arc<RealmContext>, run: &Run, task: &Task<'_>) -> Result<u64, Lost> {
    let documents = realm_context.records.as_ref();
    let retention = Retention { documents, run };
    match task {
        Task::Operations {
            kind, outcome, age, ..
        } => retention.sweep_operations(*kind, *outcome, *age).await,
        Task::Housekeeping => {
            let settings = &realm_context.settings;
            let swept = retention.sweep_operations(SINGLETON, None, CLEANUPS_KEPT);
            let mut removed = swept.await?;
            for (kind, its) in [
                (INSTANCE, &settings.instances),
                (BINDING, &settings.bindings),
            ] {
                // A longer `age` wins over `kept`.
                let kept = its.cleanup.kept.max(its.cleanup.age);
                removed += retention.sweep_operations(kind, None, kept).await?;
                let gone_before = retention.now().await?.minus(settings.tombstones);
                let tombstones = old_tombstones(realm_context, kind, gone_before);
                removed += retention.remove_listed(&tombstones, None).await?;
            }
            removed += retention.remove_audit(settings.audit_kept).await?;
            retention.sweep_feed(settings.feed).await?;
            finish_purges(realm_context, run).await;
            Ok(removed)
        }
    }
}

/// Finishes interrupted purges. Not under the fence of the run: a purge may have several writers, and each of its
/// commits names the versions that it read.
async fn finish_purges(realm_context: &Arc<RealmContext>, run: &Run) {
    let handler = RequestHandler {
        realm_context: realm_context.clone(),
        engine: run.engine().clone(),
    };
    let finished = handler.finish_purges().await;
    if finished > 0 {
        tracing::info!(finished, "interrupted purges are finished");
    }
}

/// Tombstones that are old enough. One whose id was taken again is not a tombstone any more.
fn old_tombstones(realm_context: &RealmContext, kind: Kind, gone_before: StoreTime) -> List {
    List::Term {
        realm: realm_context.records.realm.clone(),
        kind,
        name: GONE,
        from: Vec::new(),
        to: moment_bytes(gone_before),
    }
}
