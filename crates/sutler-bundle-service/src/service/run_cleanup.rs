//! Removes runs that are not needed any more: after the end of their operation is stored.
//!
//! Until then a run holds the only copy of its result. A run is checked when its hook has returned; all runs are
//! checked periodically and at the start. The stored operation decides; nothing is removed because a store did not
//! answer. Several runs are checked at once, each with a timeout, so that one that hangs does not block the others.

use super::Runners;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_broker::{BrokerHandle, OperationStatus};
use sutler_runner::RunName;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// Interval at which runs whose hooks returned are checked.
const SOON: Duration = Duration::from_millis(500);
/// Checks of a run whose operation does not end.
const CHECKS_MAX: u32 = 20;
/// Interval at which all runs are checked.
const ALL_EVERY: Duration = Duration::from_secs(60);
/// Runs checked concurrently.
const AT_ONCE: usize = 8;
/// Time limit of one check. After that the run waits for the next check of all runs.
const WITHIN: Duration = Duration::from_secs(30);

/// Looks up the status of operations.
#[async_trait]
pub trait OperationLookup: Send + Sync + 'static {
    /// Status of an operation; `None` if it is not known now.
    async fn status(&self, operation: Uuid) -> Option<OperationStatus>;
}

#[async_trait]
impl OperationLookup for BrokerHandle {
    async fn status(&self, operation: Uuid) -> Option<OperationStatus> {
        self.operation_status(operation).await.ok()
    }
}

/// Runs whose hooks have returned.
#[derive(Clone, Default)]
pub(super) struct RunCleanup(Arc<Inner>);

#[derive(Default)]
struct Inner {
    over: Mutex<BTreeMap<RunName, FinishedRun>>,
    running: Mutex<BTreeSet<RunName>>,
    /// Those of `over` that are being checked.
    in_progress: Mutex<BTreeSet<RunName>>,
    more: Notify,
}

/// Number of checks of a run, and the time of the next one.
struct FinishedRun {
    checks: u32,
    due: Instant,
}

impl FinishedRun {
    fn now() -> Self {
        Self {
            checks: 0,
            due: Instant::now(),
        }
    }
}

/// Marks a run as being checked until it is dropped.
struct CleanupGuard<'a>(&'a Inner, RunName);

impl Drop for CleanupGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.in_progress).remove(&self.1);
    }
}

/// Marks a run as used by a hook until it is dropped.
pub(super) struct ActiveRun(RunCleanup, RunName);

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let inner = &self.0.0;
        lock(&inner.running).remove(&self.1);
        lock(&inner.over).insert(self.1, FinishedRun::now());
        inner.more.notify_one();
    }
}

impl RunCleanup {
    /// Marks this run as used by a hook.
    pub(super) fn watch(&self, name: RunName) -> ActiveRun {
        lock(&self.0.running).insert(name);
        ActiveRun(self.clone(), name)
    }

    /// Removes finished runs, for as long as the process lives.
    pub(super) async fn work(self, runners: Arc<Runners>, operations: Arc<dyn OperationLookup>) {
        let mut all = Instant::now();
        let (mut gathering, mut checks_running) = (JoinSet::new(), JoinSet::new());
        loop {
            if all <= Instant::now() {
                all = Instant::now() + ALL_EVERY;
                // A runner is not listed again while its last listing is pending.
                if gathering.is_empty() {
                    let (cleanup, runners) = (self.clone(), runners.clone());
                    gathering.spawn(async move { cleanup.gather(&runners).await });
                }
            }
            for (name, checks) in self.take(AT_ONCE - checks_running.len()) {
                let (cleanup, runners, operations) =
                    (self.clone(), runners.clone(), operations.clone());
                checks_running.spawn(async move {
                    cleanup
                        .check_once(&runners, &*operations, name, checks)
                        .await
                });
            }
            let is_free = checks_running.len() < AT_ONCE;
            let next = self.next_due().map_or(all, |due| due.min(all));
            tokio::select! {
                Some(_) = checks_running.join_next() => {}
                Some(_) = gathering.join_next() => {}
                () = self.0.more.notified(), if is_free => {}
                () = sleep_until(next), if is_free => {}
                () = sleep_until(all) => {}
            }
        }
    }

    /// Lists all runs as candidates.
    async fn gather(&self, runners: &Runners) {
        for runner in runners.all() {
            match runner.list().await {
                Ok(names) => {
                    let mut over = lock(&self.0.over);
                    for name in names {
                        over.entry(name).or_insert_with(FinishedRun::now);
                    }
                }
                Err(fault) => tracing::warn!(error = %fault, "runs cannot be listed now"),
            }
        }
    }

    /// Takes up to `count` runs that are due.
    fn take(&self, count: usize) -> Vec<(RunName, u32)> {
        let now = Instant::now();
        let mut in_progress = lock(&self.0.in_progress);
        let mut over = lock(&self.0.over);
        let due = over
            .iter_mut()
            .filter(|(name, it)| it.due <= now && !in_progress.contains(name));
        let taken: Vec<(RunName, u32)> = due
            .take(count)
            .map(|(name, it)| {
                it.checks += 1;
                it.due = now + SOON;
                (*name, it.checks)
            })
            .collect();
        in_progress.extend(taken.iter().map(|(name, _)| *name));
        taken
    }

    /// When the next run is due that is not being checked.
    fn next_due(&self) -> Option<Instant> {
        let in_progress = lock(&self.0.in_progress);
        let over = lock(&self.0.over);
        let free = over.iter().filter(|(name, _)| !in_progress.contains(name));
        free.map(|(_, it)| it.due).min()
    }

    /// Checks a finished run once.
    async fn check_once(
        &self,
        runners: &Runners,
        operations: &dyn OperationLookup,
        name: RunName,
        checks: u32,
    ) {
        let _guard = CleanupGuard(&self.0, name);
        let cleaned =
            tokio::time::timeout(WITHIN, self.clean_up(runners, operations, name, checks));
        if cleaned.await.is_err() {
            tracing::warn!(run = %name, "a run takes too long to be removed; trying again later");
            lock(&self.0.over).remove(&name);
        }
    }

    async fn clean_up(
        &self,
        runners: &Runners,
        operations: &dyn OperationLookup,
        name: RunName,
        checks: u32,
    ) {
        let status = operations.status(name.operation).await;
        let at_work = lock(&self.0.running).contains(&name);
        match verdict(status, at_work, checks) {
            CleanupVerdict::Remove => self.remove(runners, name).await,
            CleanupVerdict::Stop => {
                tracing::warn!(run = %name, "the operation of a run was ended over its head; ending it");
                self.stop(runners, name).await;
                lock(&self.0.over).remove(&name);
            }
            CleanupVerdict::Leave => {
                lock(&self.0.over).remove(&name);
            }
            CleanupVerdict::Wait => {}
        }
    }

    async fn stop(&self, runners: &Runners, name: RunName) {
        for runner in runners.all() {
            if let Err(fault) = runner.stop(name).await {
                tracing::warn!(run = %name, error = %fault, "a run cannot be ended; trying again later");
            }
        }
    }

    async fn remove(&self, runners: &Runners, name: RunName) {
        for runner in runners.all() {
            // An abandoned operation may have left its run running.
            let gone = match runner.stop(name).await {
                Ok(()) => runner.remove(name).await,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = gone {
                tracing::warn!(run = %name, error = %fault, "a run cannot be removed; trying again later");
            }
        }
        lock(&self.0.over).remove(&name);
    }
}

/// Clean-up decision for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CleanupVerdict {
    /// It is not needed.
    Remove,
    /// Stop it; the hook that uses it notices.
    Stop,
    /// The next hook, or the next check of all runs, handles it.
    Leave,
    /// Check again soon.
    Wait,
}

/// Decides by the status of the operation, whether a hook uses the run, and the number of checks.
fn verdict(status: Option<OperationStatus>, at_work: bool, checks: u32) -> CleanupVerdict {
    match (status, at_work) {
        (Some(OperationStatus::Ended | OperationStatus::Unknown), false) => CleanupVerdict::Remove,
        // A hook runs until its operation ends: the operation was abandoned on another replica.
        (Some(OperationStatus::Ended), true) => CleanupVerdict::Stop,
        (Some(OperationStatus::Unknown | OperationStatus::Open), true) => CleanupVerdict::Leave,
        (Some(OperationStatus::Open), false) if checks >= CHECKS_MAX => CleanupVerdict::Leave,
        (Some(OperationStatus::Open), false) | (None, _) => CleanupVerdict::Wait,
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{CHECKS_MAX, CleanupVerdict, verdict};
    use sutler_broker::OperationStatus;

    #[test]
    fn a_run_is_removed_only_when_its_end_is_stored_and_no_hook_uses_it() {
        let table = [
            (Some(OperationStatus::Ended), false, CleanupVerdict::Remove),
            (Some(OperationStatus::Ended), true, CleanupVerdict::Stop),
            (
                Some(OperationStatus::Unknown),
                false,
                CleanupVerdict::Remove,
            ),
            (Some(OperationStatus::Unknown), true, CleanupVerdict::Leave),
            (Some(OperationStatus::Open), false, CleanupVerdict::Wait),
            (Some(OperationStatus::Open), true, CleanupVerdict::Leave),
            (None, false, CleanupVerdict::Wait),
            (None, true, CleanupVerdict::Wait),
        ];
        for (status, at_work, expected) in table {
            assert_eq!(
                verdict(status, at_work, 1),
                expected,
                "{status:?}, {at_work}"
            );
        }
        assert_eq!(
            verdict(Some(OperationStatus::Open), false, CHECKS_MAX),
            CleanupVerdict::Leave
        );
    }
}
