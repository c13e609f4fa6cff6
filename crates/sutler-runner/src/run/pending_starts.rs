//! Starts that are not finished. A start continues although its caller returned early; status and stop must wait for
//! it, otherwise they would find nothing and the run would begin afterwards.

use crate::run_spec::RunName;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Pending starts of one runner.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingStarts(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Number of pending starts per run.
    names: Mutex<BTreeMap<RunName, usize>>,
    ended: Notify,
}

/// A pending start, until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingStart(Arc<Inner>, RunName);

impl PendingStarts {
    /// Registers a start. Call it before the first await; the task that starts the run holds the guard.
    pub(crate) fn begin(&self, name: RunName) -> PendingStart {
        *self.0.names().entry(name).or_default() += 1;
        PendingStart(Arc::clone(&self.0), name)
    }

    /// Waits until this run has no pending start.
    pub(crate) async fn finished(&self, name: RunName) {
        loop {
            let mut notified = std::pin::pin!(self.0.ended.notified());
            // Enabled before the check, so that no end is missed.
            notified.as_mut().enable();
            if !self.0.names().contains_key(&name) {
                return;
            }
            notified.await;
        }
    }
}

impl Inner {
    fn names(&self) -> MutexGuard<'_, BTreeMap<RunName, usize>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingStart {
    fn drop(&mut self) {
        let mut names = self.0.names();
        if let Some(count) = names.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                names.remove(&self.1);
            }
        }
        drop(names);
        self.0.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::PendingStarts;
    use crate::run_spec::RunName;
    use futures_util::FutureExt;
    use uuid::Uuid;

    #[tokio::test]
    async fn waiters_are_notified_of_the_end_of_the_last_start() {
        let starts = PendingStarts::default();
        let name = |attempt| RunName {
            operation: Uuid::from_u128(7),
            attempt,
        };
        starts.finished(name(1)).await;
        let (one, two, other) = (
            starts.begin(name(1)),
            starts.begin(name(1)),
            starts.begin(name(2)),
        );
        let mut finished = Box::pin(starts.finished(name(1)));
        assert!((&mut finished).now_or_never().is_none());
        drop(one);
        assert!((&mut finished).now_or_never().is_none());
        drop(two);
        finished.await;
        drop(other);
        starts.finished(name(2)).await;
    }
}
