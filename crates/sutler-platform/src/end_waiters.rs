//! Wakes callers that wait for the end of an operation as soon as this process commits it.
//!
//! Only a hint: another replica may commit the end, so a caller also reads the operation from time to time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_journal::OperationId;
use tokio::sync::Notify;

/// Callers by the operation that they wait for.
#[derive(Default)]
pub(crate) struct EndWaiters(Mutex<HashMap<OperationId, WaiterEntry>>);

struct WaiterEntry {
    notify: Arc<Notify>,
    callers: usize,
}

/// One caller that waits. Dropping it ends the wait.
pub(crate) struct EndWaiter<'a> {
    waiters: &'a EndWaiters,
    operation: OperationId,
    notify: Arc<Notify>,
}

impl EndWaiters {
    fn entries(&self) -> MutexGuard<'_, HashMap<OperationId, WaiterEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait. Read the operation after this call, and then after each [`EndWaiter::changed`].
    pub(crate) fn wait_for(&self, operation: OperationId) -> EndWaiter<'_> {
        let mut entries = self.entries();
        let entry = entries.entry(operation).or_insert_with(|| WaiterEntry {
            notify: Arc::default(),
            callers: 0,
        });
        entry.callers += 1;
        EndWaiter {
            waiters: self,
            operation,
            notify: entry.notify.clone(),
        }
    }

    /// Wakes the callers that wait for an operation whose end was committed.
    pub(crate) fn ended(&self, operation: OperationId) {
        let entry = self.entries().get(&operation).map(|it| it.notify.clone());
        if let Some(notify) = entry {
            notify.notify_waiters();
        }
    }
}

impl EndWaiter<'_> {
    /// Completes when this process committed the end. The future is registered when it is created.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        let mut notified = Box::pin(self.notify.notified());
        notified.as_mut().enable();
        notified
    }
}

impl Drop for EndWaiter<'_> {
    fn drop(&mut self) {
        let mut entries = self.waiters.entries();
        if let Some(entry) = entries.get_mut(&self.operation) {
            entry.callers -= 1;
            if entry.callers == 0 {
                entries.remove(&self.operation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EndWaiters;
    use sutler_journal::OperationId;

    #[tokio::test]
    async fn a_caller_that_registered_before_the_end_is_woken() {
        let waiters = EndWaiters::default();
        let id = OperationId::fresh();
        let waiter = waiters.wait_for(id);
        let changed = waiter.changed();
        waiters.ended(id);
        changed.await;
    }

    #[test]
    fn nothing_is_kept_of_callers_that_left() {
        let waiters = EndWaiters::default();
        let id = OperationId::fresh();
        let (first, second) = (waiters.wait_for(id), waiters.wait_for(id));
        drop(first);
        assert_eq!(waiters.entries().len(), 1);
        drop(second);
        assert!(waiters.entries().is_empty());
    }
}
