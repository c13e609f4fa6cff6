//! Workers, the expiry of their leases, and the operations they hold. Only in memory: one process owns
//! the file.
//!
//! Running operations are also in the file, with their worker and the opening (*boot*) in which they were
//! claimed, so this state can be rebuilt at any time. Not here: claims (`claims.rs`).

use std::collections::HashMap;
use std::time::Duration;
use sutler_journal::{OperationId, Renewal, StoreTime, WorkerId};

/// An operation held by a worker.
#[derive(Clone, Debug)]
pub(super) struct RunningLease {
    pub(super) id: OperationId,
    pub(super) queue: i64,
    pub(super) due: i64,
    pub(super) cancel: bool,
}

/// One worker.
#[derive(Default)]
struct Lease {
    /// Valid before this moment. Kept afterwards, so that the worker gets `Lost`.
    expires: StoreTime,
    running: HashMap<i64, RunningLease>,
}

/// Counts of the workers of this boot.
#[derive(Clone, Copy, Default)]
pub(crate) struct LeaseCounts {
    pub(crate) live: u64,
    pub(crate) over: u64,
    pub(crate) abandoned: u64,
}

/// All workers of this boot.
#[derive(Default)]
pub(super) struct Leases(HashMap<WorkerId, Lease>);

impl Leases {
    pub(super) fn holds(&self, worker: WorkerId, now: StoreTime) -> bool {
        self.0.get(&worker).is_some_and(|lease| now < lease.expires)
    }

    /// Creates or extends a lease; `None` if it expired.
    pub(super) fn renew(
        &mut self,
        worker: WorkerId,
        ttl: Duration,
        now: StoreTime,
    ) -> Option<Renewal> {
        let lease = self.0.entry(worker).or_insert_with(|| Lease {
            expires: StoreTime(i64::MAX),
            running: HashMap::new(),
        });
        if lease.expires <= now {
            return None;
        }
        lease.expires = now.plus(ttl);
        let mut running: Vec<&RunningLease> = lease.running.values().collect();
        running.sort_unstable_by_key(|running| running.id);
        let cancelled = running.iter().filter(|running| running.cancel);
        Some(Renewal {
            cancelled: cancelled.map(|running| running.id).collect(),
            held: running.iter().map(|running| running.id).collect(),
        })
    }

    /// Ends a valid lease; an expired one stays, and its id cannot be used again.
    pub(super) fn end(&mut self, worker: WorkerId, now: StoreTime) {
        if self.holds(worker, now) {
            self.0.remove(&worker);
        }
    }

    pub(super) fn numbers_of(&self, worker: WorkerId) -> Vec<i64> {
        let lease = self.0.get(&worker);
        lease.map_or_else(Vec::new, |lease| lease.running.keys().copied().collect())
    }

    pub(super) fn give(&mut self, worker: WorkerId, number: i64, running: RunningLease) {
        let lease = self.0.entry(worker).or_default();
        lease.running.insert(number, running);
    }

    pub(super) fn take(&mut self, worker: WorkerId, number: i64) {
        if let Some(lease) = self.0.get_mut(&worker) {
            lease.running.remove(&number);
        }
    }

    pub(super) fn cancel(&mut self, worker: WorkerId, number: i64) {
        let lease = self.0.get_mut(&worker);
        if let Some(running) = lease.and_then(|lease| lease.running.get_mut(&number)) {
            running.cancel = true;
        }
    }

    /// Operations of this queue held by workers with expired leases: (due, id, number, worker).
    pub(super) fn expired_claims(
        &self,
        queue: i64,
        now: StoreTime,
    ) -> impl Iterator<Item = (i64, OperationId, i64, WorkerId)> {
        let dead = self.0.iter().filter(move |(_, lease)| lease.expires <= now);
        dead.flat_map(move |(worker, lease)| {
            let of_queue = lease.running.iter().filter(move |(_, r)| r.queue == queue);
            of_queue.map(|(number, running)| (running.due, running.id, *number, *worker))
        })
    }

    /// Numbers of valid leases, of expired ones, and of the operations of the latter.
    pub(super) fn counts(&self, now: StoreTime) -> LeaseCounts {
        let mut counts = LeaseCounts::default();
        for lease in self.0.values() {
            if now < lease.expires {
                counts.live += 1;
            } else {
                counts.over += 1;
                counts.abandoned += lease.running.len() as u64;
            }
        }
        counts
    }

    /// Clears the held operations, before they are read from the file again.
    pub(super) fn forget_running(&mut self) {
        for lease in self.0.values_mut() {
            lease.running.clear();
        }
    }

    /// Removes leases that expired before a moment and cover no operation.
    pub(super) fn forget_before(&mut self, moment: StoreTime) {
        self.0
            .retain(|_, lease| lease.expires >= moment || !lease.running.is_empty());
    }
}
