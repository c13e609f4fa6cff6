//! Scheduled work: cleaning up finished operations, and forgetting what was deleted long ago.
//!
//! Each task is an operation in a named singleton lane: its document names the one operation that
//! waits for the next time, and running it plans the one after. So it happens once across replicas,
//! and a crash loses no turn. What may be swept is the store's rule: done, and pointed to by nothing.

use crate::admin::audit::{AUDIT, name_of_oldest_kept};
use crate::cron::Schedule;
use crate::lifecycle::{AuthorState, Decision};
use crate::records::{
    BINDING, Detail, GONE, INSTANCE, Kept, Loaded, SINGLETON, asked, moment_bytes,
};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::stock::{Stock, queue_of};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sutler_journal::{
    Commit, CommitError, Due, Key, Kind, List, Lost, NewOperation, Next, OperationId, Outcome,
    Position, Run, RunResult, Start, Store, StoreError, Sweep, Term, Write,
};

/// The word of these operations.
const VERB: &str = "cleanup";
/// Operations or tombstones removed in one go: short enough not to hold up other writes.
const BATCH: usize = 500;
/// The task that every broker has.
const HOUSEKEEPING: &str = "housekeeping";
/// How often it runs.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(3600);
/// How long the feed of changes and finished clean-ups are kept.
const FEED_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The document of a singleton lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// The one operation that waits or runs.
    operation: Option<OperationId>,
    /// When it should run, as configured when it was planned.
    schedule: String,
}

impl Kept for Turn {
    fn terms(&self, _key: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn pins(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }

    fn saved(self, _: OperationId, _: AuthorState) -> Result<Decision<Self>, Refusal> {
        Err(Refusal::Unsupported(
            "scheduled work has no state".to_owned(),
        ))
    }
}

/// What a task does.
enum Task<'a> {
    Housekeeping,
    Operations {
        kind: Kind,
        outcome: Option<Outcome>,
        age: Duration,
        schedule: &'a Schedule,
    },
}

/// The tasks a broker has, by name.
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
            Self::Housekeeping => "hourly".to_owned(),
            Self::Operations { schedule, .. } => schedule.to_string(),
        }
    }

    fn until_next(&self) -> Option<Duration> {
        match self {
            Self::Housekeeping => Some(HOUSEKEEPING_EVERY),
            Self::Operations { schedule, .. } => {
                let now = jiff::Timestamp::now();
                let next = schedule.next_after(now)?;
                Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
            }
        }
    }
}

/// Plans the first turn of every task that has none, or another schedule than before.
pub(crate) async fn plan_all(stock: &Stock) -> Result<(), CommitError> {
    for (name, task) in tasks(&stock.settings) {
        let key = stock.records.key(SINGLETON, &name);
        let was = stock.records.load::<Turn>(&key).await.map_err(unreadable)?;
        if was.state.operation.is_some() && was.state.schedule == task.schedule() {
            continue;
        }
        let Some(commit) = next_turn(stock, Commit::new(), &key, &was, &task) else {
            continue;
        };
        match sutler_journal::commit_until_known(stock.records.store.as_ref(), &commit).await {
            // Another replica planned it first.
            Ok(()) | Err(CommitError::Stale(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn unreadable(error: crate::records::RecordError) -> CommitError {
    CommitError::NotWritten(StoreError::caused(
        "the plan of scheduled work cannot be read",
        error,
    ))
}

/// Adds the next turn of a task to a commit; `None` if there will be none.
fn next_turn(
    stock: &Stock,
    commit: Commit,
    key: &Key,
    was: &Loaded<Turn>,
    task: &Task<'_>,
) -> Option<Commit> {
    let id = OperationId::fresh();
    let turn = Turn {
        operation: Some(id),
        schedule: task.schedule(),
    };
    let new = NewOperation {
        id,
        lane: key.clone(),
        verb: VERB,
        queue: queue_of(&stock.records.realm),
        start: Start::Ready(Due::In(task.until_next()?)),
        detail: stock.records.seal_detail(id, &Detail::default()),
        request: stock.records.seal_request(
            id,
            &crate::records::Request {
                asked: asked(&VERB),
                origin: Default::default(),
                identity: None,
                request_identity: None,
            },
        ),
    };
    Some(stock.records.put(commit, key, was, &turn).start(new))
}

/// Runs one turn and plans the next.
pub(crate) async fn run(stock: &Stock, run: &Run) -> Result<RunResult, Lost> {
    let key = run.operation().row.lane.clone();
    let name = key.id(0).to_owned();
    let all = tasks(&stock.settings);
    let task = all
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, task)| task);
    let was = stock.records.load_for_run::<Turn>(run, &key).await?;
    let current = was.state.operation == Some(run.id());
    if let (true, Some(task)) = (current, task) {
        let removed = work(stock, run, task).await?;
        tracing::info!(task = %name, removed, "scheduled clean-up done");
    }
    loop {
        let was = stock.records.load_for_run::<Turn>(run, &key).await?;
        let mut commit = Commit::new()
            .advance(run.id(), Next::Done(Outcome::Succeeded), None, None)
            .write(Write::Unpin(run.id()));
        if was.state.operation == Some(run.id()) {
            commit = match task.and_then(|it| next_turn(stock, commit.clone(), &key, &was, it)) {
                Some(planned) => planned,
                // No longer configured, or no next time: the lane ends.
                None => match was.version {
                    Some(version) => commit.remove(key.clone(), version),
                    None => commit,
                },
            };
        }
        if run.commit(commit).await?.is_ok() {
            return Ok(RunResult::Finished);
        }
    }
}

async fn work(stock: &Stock, run: &Run, task: &Task<'_>) -> Result<u64, Lost> {
    let store = stock.records.store.as_ref();
    let realm = &stock.records.realm;
    match task {
        Task::Operations {
            kind, outcome, age, ..
        } => {
            let lanes = Key::prefix(realm, *kind, &[]).unwrap_or_default();
            sweep_operations(store, run, lanes, *outcome, *age).await
        }
        Task::Housekeeping => {
            let lanes = Key::prefix(realm, SINGLETON, &[]).unwrap_or_default();
            let mut removed = sweep_operations(store, run, lanes, None, FEED_KEPT).await?;
            for kind in [INSTANCE, BINDING] {
                removed += forget(stock, run, kind).await?;
            }
            removed += forget_audit(stock, run).await?;
            let now = answered(run, store.now().await).await?.unwrap_or_default();
            let feed = Sweep::Feed {
                before: now.minus(FEED_KEPT),
                limit: BATCH,
            };
            sweep(store, run, &feed).await?;
            Ok(removed)
        }
    }
}

async fn sweep_operations(
    store: &dyn Store,
    run: &Run,
    lanes: Vec<u8>,
    outcome: Option<Outcome>,
    age: Duration,
) -> Result<u64, Lost> {
    let now = answered(run, store.now().await).await?.unwrap_or_default();
    let finished_before = now.minus(age);
    let operations = Sweep::Operations {
        lanes,
        outcome,
        finished_before,
        limit: BATCH,
    };
    sweep(store, run, &operations).await
}

/// Batch by batch, with rests between them for everybody else.
async fn sweep(store: &dyn Store, run: &Run, what: &Sweep) -> Result<u64, Lost> {
    let mut removed = 0;
    loop {
        let began = Instant::now();
        let swept = answered(run, store.sweep(what).await).await?.unwrap_or(0);
        removed += swept;
        if swept < BATCH as u64 {
            return Ok(removed);
        }
        run.sleep(Sweep::rest_after(began.elapsed())).await?;
    }
}

/// Removes tombstones that are old enough.
async fn forget(stock: &Stock, run: &Run, kind: Kind) -> Result<u64, Lost> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let list = List::Term {
        realm: stock.records.realm.clone(),
        kind,
        name: GONE,
        from: Vec::new(),
        to: moment_bytes(now.saturating_sub(stock.settings.tombstones)),
    };
    let store = stock.records.store.as_ref();
    let mut removed = 0;
    loop {
        let page = answered(run, store.list(&list, None, BATCH / 10).await).await?;
        let Some(page) = page.filter(|page| !page.documents.is_empty()) else {
            return Ok(removed);
        };
        for document in page.documents {
            let commit = Commit::new().remove(document.key, document.version);
            // Stale: the id was taken again meanwhile, and the tombstone is none any more.
            if run.commit(commit).await?.is_ok() {
                removed += 1;
            }
        }
    }
}

/// Removes audit entries that are old enough: those behind the oldest one to be kept.
async fn forget_audit(stock: &Stock, run: &Run) -> Result<u64, Lost> {
    let records = &stock.records;
    let list = List::Prefix(Key::prefix(&records.realm, AUDIT, &[]).unwrap_or_default());
    let after = Position {
        value: Vec::new(),
        key: records.key(AUDIT, &name_of_oldest_kept(stock.settings.audit_kept)),
    };
    let mut removed = 0;
    loop {
        let page = records.store.list(&list, Some(&after), BATCH / 10).await;
        let page = answered(run, page).await?;
        let Some(page) = page.filter(|page| !page.documents.is_empty()) else {
            return Ok(removed);
        };
        for document in page.documents {
            let commit = Commit::new().remove(document.key, document.version);
            if run.commit(commit).await?.is_ok() {
                removed += 1;
            }
        }
    }
}

/// A store that does not answer ends this turn early; the next one goes on.
async fn answered<T>(run: &Run, answer: Result<T, StoreError>) -> Result<Option<T>, Lost> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(cause) => {
            run.wait_for_store(&cause, Duration::from_millis(200))
                .await?;
            Ok(None)
        }
    }
}
