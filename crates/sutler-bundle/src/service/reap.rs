//! Removes what runs leave, once nobody needs it: after the end of their operation is written down.
//!
//! A run keeps the only copy of what it gave until then. So a run is looked at when its hook has returned,
//! and all that lie about are looked at from time to time, and at the start: whatever its operation says
//! counts, and nothing is ever removed because a store did not answer.

use super::Runners;
use crate::order::RunName;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_broker::{Fate, Running};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// How often runs whose hooks returned are looked at.
const SOON: Duration = Duration::from_millis(500);
/// How often in a row a run is looked at whose operation does not end.
const LOOKS_MAX: u32 = 20;
/// How often everything that lies about is looked at.
const ALL_EVERY: Duration = Duration::from_secs(60);

/// Who knows what became of operations.
#[async_trait]
pub trait Fates: Send + Sync + 'static {
    /// What became of an operation; `None`: nobody can tell now.
    async fn fate(&self, operation: Uuid) -> Option<Fate>;
}

#[async_trait]
impl Fates for Running {
    async fn fate(&self, operation: Uuid) -> Option<Fate> {
        Running::fate(self, operation).await.ok()
    }
}

/// Runs whose hooks have returned.
#[derive(Clone, Default)]
pub(super) struct Reaper(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// With how often they were looked at.
    over: Mutex<BTreeMap<RunName, u32>>,
    running: Mutex<BTreeSet<RunName>>,
    more: Notify,
}

/// Says that a hook is at work with a run, until it is dropped.
pub(super) struct AtWork(Reaper, RunName);

impl Drop for AtWork {
    fn drop(&mut self) {
        let inner = &self.0.0;
        lock(&inner.running).remove(&self.1);
        lock(&inner.over).insert(self.1, 0);
        inner.more.notify_one();
    }
}

impl Reaper {
    /// A hook is at work with this run.
    pub(super) fn watch(&self, name: RunName) -> AtWork {
        lock(&self.0.running).insert(name);
        AtWork(self.clone(), name)
    }

    /// Removes what is over, for as long as the process lives.
    pub(super) async fn work(self, runners: Arc<Runners>, fates: Arc<dyn Fates>) {
        let mut all = Instant::now();
        loop {
            if all <= Instant::now() {
                self.gather(&runners).await;
                all = Instant::now() + ALL_EVERY;
            }
            self.round(&runners, fates.as_ref()).await;
            let waits = !lock(&self.0.over).is_empty();
            tokio::select! {
                () = self.0.more.notified(), if !waits => {}
                () = sleep(SOON), if waits => {}
                () = tokio::time::sleep_until(all) => {}
            }
        }
    }

    /// Everything that lies about may be over.
    async fn gather(&self, runners: &Runners) {
        for runner in runners.all() {
            match runner.list().await {
                Ok(names) => lock(&self.0.over).extend(names.into_iter().map(|name| (name, 0))),
                Err(fault) => tracing::warn!(error = %fault, "runs cannot be listed now"),
            }
        }
    }

    /// Looks at everything that may be over, once.
    async fn round(&self, runners: &Runners, fates: &dyn Fates) {
        let looked_at: Vec<(RunName, u32)> = lock(&self.0.over)
            .iter_mut()
            .map(|(name, looks)| {
                *looks += 1;
                (*name, *looks)
            })
            .collect();
        for (name, looks) in looked_at {
            let at_work = lock(&self.0.running).contains(&name);
            match fates.fate(name.operation).await {
                Some(Fate::Ended | Fate::Unknown) if !at_work => self.remove(runners, name).await,
                // Its operation goes on: the next hook, or the next look at everything, sees to it.
                Some(_) if at_work || looks >= LOOKS_MAX => {
                    lock(&self.0.over).remove(&name);
                }
                Some(_) | None => {}
            }
        }
    }

    async fn remove(&self, runners: &Runners, name: RunName) {
        for runner in runners.all() {
            // An operation that was abandoned may have left a run at work.
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

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
