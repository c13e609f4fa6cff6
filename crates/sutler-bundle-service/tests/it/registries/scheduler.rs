//! Controls tasks one call of the store at a time: their order, and where one dies.
//!
//! A controlled task sets its name in a task-local, so that the intercepting store can attribute each call.

use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use sutler_broker::{PeriodicTask, TaskContext, TaskError, TaskResult};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{Store, Write};
use tokio::sync::Notify;

tokio::task_local! {
    static WHO: String;
}

/// Decides which task makes the next call. Without a plan, all run freely.
#[derive(Default)]
pub(crate) struct Scheduler {
    plan: Mutex<Plan>,
    killed: Notify,
    /// Whether the store rejects copies of plans.
    pub(crate) full: AtomicBool,
}

#[derive(Default)]
struct Plan {
    /// Tasks and numbers of calls, in order.
    parts: VecDeque<(String, usize)>,
    waiting: BTreeMap<String, Arc<Notify>>,
    done: BTreeSet<String>,
    /// Calls made by each task.
    made: BTreeMap<String, usize>,
    /// Task that dies, and before which of its calls.
    dies: Option<(String, usize)>,
}

impl Plan {
    /// Wakes the task whose part is next, if it waits.
    fn wake(&mut self) {
        while self
            .parts
            .front()
            .is_some_and(|(who, left)| *left == 0 || self.done.contains(who))
        {
            self.parts.pop_front();
        }
        let Some((who, left)) = self.parts.front_mut() else {
            self.waiting.values().for_each(|it| it.notify_one());
            self.waiting.clear();
            return;
        };
        if let Some(waits) = self.waiting.remove(who) {
            *left -= 1;
            waits.notify_one();
        }
    }
}

impl Scheduler {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().expect("no panic")
    }

    /// Starts a plan; it ends when all parts are done.
    pub(crate) fn set_plan(&self, parts: &[(&str, usize)]) {
        let parts = parts.iter().map(|(who, calls)| ((*who).to_owned(), *calls));
        *self.plan() = Plan {
            parts: parts.collect(),
            ..Plan::default()
        };
    }

    /// Makes the next run of a task end before one of its calls.
    pub(crate) fn kill(&self, who: &str, before: usize) {
        *self.plan() = Plan {
            dies: Some((who.to_owned(), before)),
            ..Plan::default()
        };
    }

    /// Calls made by a task since the plan was set.
    pub(crate) fn made(&self, who: &str) -> usize {
        self.plan().made.get(who).copied().unwrap_or_default()
    }

    /// Waits for the task's part, and blocks the others meanwhile.
    pub(crate) async fn part_of(&self, who: &str) {
        if let Intercept::Hold(until) = self.meet(who) {
            until.notified().await;
        }
    }

    /// Marks a task as finished: it makes no more calls.
    pub(crate) fn done(&self, who: &str) {
        let mut plan = self.plan();
        plan.done.insert(who.to_owned());
        plan.wake();
    }

    /// Controls a future that is not a periodic task.
    pub(crate) async fn acting(&self, who: &str, work: impl Future<Output = ()>) {
        WHO.scope(who.to_owned(), work).await;
        self.done(who);
    }

    fn meet(&self, who: &str) -> Intercept {
        let mut plan = self.plan();
        let made = plan.made.entry(who.to_owned()).or_default();
        let nth = *made;
        *made += 1;
        if plan.dies == Some((who.to_owned(), nth)) {
            self.killed.notify_one();
            return Intercept::CrashBefore;
        }
        if plan.parts.is_empty() || plan.done.contains(who) {
            return Intercept::Pass;
        }
        // A task that arrives here has ended its last call: if its part is over, the next one begins.
        let held = Arc::new(Notify::new());
        plan.waiting.insert(who.to_owned(), held.clone());
        plan.wake();
        Intercept::Hold(held)
    }

    /// Wraps a store so that the calls of controlled tasks are scheduled.
    pub(crate) fn wrap_store(self: &Arc<Self>, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let scheduler = self.clone();
        Arc::new(InterceptingStore::new(store, move |call| {
            if scheduler.full.load(Ordering::SeqCst) && keeps_a_plan(call) {
                return Intercept::Refuse;
            }
            let who = WHO.try_with(String::clone);
            who.map_or(Intercept::Pass, |who| scheduler.meet(&who))
        }))
    }

    /// Wraps a periodic task so that it is controlled.
    pub(crate) fn wrap_task(
        self: &Arc<Self>,
        task: Arc<dyn PeriodicTask>,
    ) -> Arc<dyn PeriodicTask> {
        Arc::new(ScheduledTask {
            task,
            scheduler: self.clone(),
        })
    }
}

fn keeps_a_plan(call: &Call<'_>) -> bool {
    let is_plan = |it: &Write| matches!(it, Write::Put { key, .. } if key.kind() == "plan");
    matches!(call, Call::Commit(commit) if commit.writes().iter().any(is_plan))
}

struct ScheduledTask {
    task: Arc<dyn PeriodicTask>,
    scheduler: Arc<Scheduler>,
}

#[async_trait]
impl PeriodicTask for ScheduledTask {
    fn name(&self) -> &str {
        self.task.name()
    }

    fn every(&self) -> Duration {
        self.task.every()
    }

    async fn run_once(&self, task: &TaskContext) -> TaskResult<()> {
        let name = self.name().to_owned();
        let turned = WHO.scope(name.clone(), self.task.run_once(task));
        let turned = tokio::select! {
            turned = turned => turned,
            () = self.scheduler.killed.notified() => Err(TaskError::failed("it was killed; do it again")),
        };
        self.scheduler.done(&name);
        turned
    }
}
