//! Expiry of the leases of all workers, and what a renewal returns. Only in memory: one process owns the file.
//!
//! Renewals do not go through the writer. A lease exists so that others can take over the work of a process that
//! died; no other process can take over while this process owns the file, and a disk that stalls for longer than a lease
//! must not end it. So a renewal changes this table only, and returns the operations of its worker as of the last
//! durable group. The writer decides by the same table whose lease has expired: the one that locks it first wins.
//! Read next: `writer/leases.rs`, the operations of each worker including those of the open transaction.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{Clock, OperationId, Renewal, StoreTime, WorkerId};

/// An operation of a worker, and whether its cancellation was requested.
pub(crate) type HeldOperation = (OperationId, bool);

/// One worker.
struct Lease {
    /// Valid before this moment. Kept afterwards, so that the worker gets `Lost`.
    expires: StoreTime,
    /// In order of their ids.
    held: Vec<HeldOperation>,
}

/// Leases of the workers of this boot.
#[derive(Default)]
pub(crate) struct LeaseTable(Mutex<HashMap<WorkerId, Lease>>);

/// The table, unchanged while this is held.
pub(crate) struct LockedLeases<'l>(MutexGuard<'l, HashMap<WorkerId, Lease>>);

impl LeaseTable {
    /// Creates or extends a lease; `None` if it expired. The time is read under the lock: a worker that the
    /// writer found to be dead before cannot renew afterwards.
    pub(crate) fn renew(
        &self,
        worker: WorkerId,
        ttl: Duration,
        clock: &dyn Clock,
    ) -> Option<Renewal> {
        let mut leases = self.lock().0;
        let now = clock.now();
        let lease = leases.entry(worker).or_insert_with(|| Lease {
            expires: StoreTime(i64::MAX),
            held: Vec::new(),
        });
        if lease.expires <= now {
            return None;
        }
        lease.expires = now.plus(ttl);
        let cancelled = lease.held.iter().filter(|(_, cancelled)| *cancelled);
        Some(Renewal {
            cancelled: cancelled.map(|(id, _)| *id).collect(),
            held: lease.held.iter().map(|(id, _)| *id).collect(),
        })
    }

    /// Whether a worker holds a lease.
    pub(crate) fn holds(&self, worker: WorkerId, now: StoreTime) -> bool {
        self.lock().holds(worker, now)
    }

    /// Ends a valid lease; an expired one stays, and its id cannot be used again.
    pub(crate) fn end(&self, worker: WorkerId, now: StoreTime) {
        let mut leases = self.lock();
        if leases.holds(worker, now) {
            leases.0.remove(&worker);
        }
    }

    /// Removes leases that expired before a moment, except of these workers.
    pub(crate) fn forget_before(&self, moment: StoreTime, is_needed: impl Fn(WorkerId) -> bool) {
        let mut leases = self.lock().0;
        leases.retain(|worker, lease| lease.expires >= moment || is_needed(*worker));
    }

    /// Replaces the operations of workers, which are durable now.
    pub(crate) fn publish(&self, changes: impl Iterator<Item = (WorkerId, Vec<HeldOperation>)>) {
        let mut leases = self.lock().0;
        for (worker, held) in changes {
            if let Some(lease) = leases.get_mut(&worker) {
                lease.held = held;
            }
        }
    }

    pub(crate) fn lock(&self) -> LockedLeases<'_> {
        LockedLeases(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LockedLeases<'_> {
    pub(crate) fn holds(&self, worker: WorkerId, now: StoreTime) -> bool {
        self.0.get(&worker).is_some_and(|lease| now < lease.expires)
    }

    /// Numbers of valid leases, and of expired ones.
    pub(crate) fn count(&self, now: StoreTime) -> (u64, u64) {
        let live = self.0.values().filter(|lease| now < lease.expires);
        let live = live.count() as u64;
        (live, self.0.len() as u64 - live)
    }
}
