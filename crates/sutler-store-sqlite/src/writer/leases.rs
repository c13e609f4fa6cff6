//! The operations that workers hold, including changes of the open transaction.
//!
//! Running operations are also in the file, with their worker and the opening (*boot*) in which they were
//! claimed, so this state can be rebuilt at any time. Once a group is durable, its changes are published to
//! the table of leases (`lease_table.rs`), which also has their expiry. Not here: claims (`claims.rs`).

use crate::lease_table::{HeldOperation, LeaseTable};
use std::collections::{HashMap, HashSet};
use sutler_journal::{OperationId, StoreTime, WorkerId};

/// An operation held by a worker.
#[derive(Clone, Debug)]
pub(super) struct RunningLease {
    pub(super) id: OperationId,
    pub(super) queue: i64,
    pub(super) due: i64,
    pub(super) cancel: bool,
}

/// Counts of the workers of this boot.
#[derive(Clone, Copy, Default)]
pub(crate) struct LeaseCounts {
    pub(crate) live: u64,
    pub(crate) over: u64,
    pub(crate) abandoned: u64,
}

/// Operations of all workers of this boot, by number.
#[derive(Default)]
pub(super) struct RunningOperations {
    workers: HashMap<WorkerId, HashMap<i64, RunningLease>>,
    /// Workers whose operations differ from the published ones.
    changed: HashSet<WorkerId>,
}

impl RunningOperations {
    pub(super) fn numbers_of(&self, worker: WorkerId) -> Vec<i64> {
        let running = self.workers.get(&worker);
        running.map_or_else(Vec::new, |running| running.keys().copied().collect())
    }

    pub(super) fn give(&mut self, worker: WorkerId, number: i64, running: RunningLease) {
        self.changed.insert(worker);
        let of_worker = self.workers.entry(worker).or_default();
        of_worker.insert(number, running);
    }

    pub(super) fn take(&mut self, worker: WorkerId, number: i64) {
        self.changed.insert(worker);
        if let Some(running) = self.workers.get_mut(&worker) {
            running.remove(&number);
            if running.is_empty() {
                self.workers.remove(&worker);
            }
        }
    }

    pub(super) fn cancel(&mut self, worker: WorkerId, number: i64) {
        self.changed.insert(worker);
        let running = self.workers.get_mut(&worker);
        if let Some(running) = running.and_then(|running| running.get_mut(&number)) {
            running.cancel = true;
        }
    }

    /// Operations of this queue held by workers with expired leases: (due, id, number, worker).
    pub(super) fn expired_claims(
        &self,
        leases: &LeaseTable,
        queue: i64,
        now: StoreTime,
    ) -> Vec<(i64, OperationId, i64, WorkerId)> {
        let leases = leases.lock();
        let mut found = Vec::new();
        for (worker, running) in &self.workers {
            if !leases.holds(*worker, now) {
                let of_queue = running.iter().filter(|(_, r)| r.queue == queue);
                found.extend(of_queue.map(|(number, r)| (r.due, r.id, *number, *worker)));
            }
        }
        found
    }

    /// Numbers of valid leases, of expired ones, and of the operations without a valid one.
    pub(super) fn counts(&self, leases: &LeaseTable, now: StoreTime) -> LeaseCounts {
        let leases = leases.lock();
        let (live, over) = leases.count(now);
        let dead = self.workers.iter();
        let dead = dead.filter(|(worker, _)| !leases.holds(**worker, now));
        LeaseCounts {
            live,
            over,
            abandoned: dead.map(|(_, running)| running.len() as u64).sum(),
        }
    }

    pub(super) fn is_empty(&self, worker: WorkerId) -> bool {
        !self.workers.contains_key(&worker)
    }

    /// Clears the held operations, before they are read from the file again.
    pub(super) fn forget(&mut self) {
        self.changed
            .extend(self.workers.drain().map(|(worker, _)| worker));
    }

    /// Publishes the changes since the last time, which are durable.
    pub(super) fn publish(&mut self, leases: &LeaseTable) {
        if self.changed.is_empty() {
            return;
        }
        let workers = &self.workers;
        leases.publish(self.changed.drain().map(|worker| {
            let running = workers.get(&worker).into_iter().flat_map(HashMap::values);
            let mut held: Vec<HeldOperation> = running.map(|r| (r.id, r.cancel)).collect();
            held.sort_unstable();
            (worker, held)
        }));
    }
}
