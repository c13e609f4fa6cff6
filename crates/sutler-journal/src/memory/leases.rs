//! Workers, the expiry of their leases, and the operations they hold.
//!
//! One lease covers all claims of a worker. An expired lease is kept, so that its worker gets `Lost`;
//! it is removed together with the feed of its time. Not here: the fence of a commit, which
//! `apply.rs` checks against [`Tables::holds_lease`].

use super::tables::Tables;
use crate::clock::StoreTime;
use crate::operation::{Operation, OperationId, Queue, WorkerId};
use crate::query::Renewal;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;

/// Lease of a worker, valid before this moment.
pub(super) struct Lease {
    expires: StoreTime,
}

/// Operations that a worker runs.
#[derive(Default)]
pub(super) struct HeldOperations {
    pub(super) operations: BTreeSet<OperationId>,
    /// The lease was found expired, and the operations are in the index of claimable ones.
    pub(super) void: bool,
}

impl Tables {
    pub(super) fn holds_lease(&self, worker: WorkerId, now: StoreTime) -> bool {
        self.leases
            .get(&worker)
            .is_some_and(|lease| now < lease.expires)
    }

    /// Creates or extends a lease; `None` if it expired.
    pub(super) fn renew(
        &mut self,
        worker: WorkerId,
        ttl: Duration,
        now: StoreTime,
    ) -> Option<Renewal> {
        let lease = self.leases.entry(worker).or_insert(Lease {
            expires: StoreTime(i64::MAX),
        });
        if lease.expires <= now {
            return None;
        }
        lease.expires = now.plus(ttl);
        let held = self.held.get(&worker);
        let ids = held.into_iter().flat_map(|held| &held.operations);
        let held: Vec<OperationId> = ids.copied().collect();
        let wanted = |id: &OperationId| {
            self.operation(*id)
                .is_some_and(|operation| operation.row.cancel)
        };
        let cancelled = held.iter().copied().filter(wanted).collect();
        Some(Renewal { cancelled, held })
    }

    /// Claims due operations; `None` if the worker holds no lease.
    pub(super) fn claim(
        &mut self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
        now: StoreTime,
    ) -> Option<Vec<Operation>> {
        if !self.holds_lease(worker, now) {
            return None;
        }
        self.make_expired_claimable(now);
        let mut claimed = Vec::new();
        for (queue, limit) in queues {
            let first = (queue.clone(), StoreTime(i64::MIN), OperationId(Uuid::nil()));
            let last = (queue.clone(), now, OperationId(Uuid::max()));
            let due = self.claimable.range(first..=last).take(*limit);
            let ids: Vec<OperationId> = due.map(|(_, _, id)| *id).collect();
            for id in ids {
                let operation = self.change(id, |entry| {
                    entry.operation.row.claim();
                    entry.worker = Some(worker);
                });
                claimed.extend(operation.cloned());
            }
        }
        Some(claimed)
    }

    /// Ends a lease; returns whether an operation became claimable.
    pub(super) fn release(&mut self, worker: WorkerId, now: StoreTime) -> bool {
        // An expired lease stays: its worker may still run, and must get `Lost`.
        if self.holds_lease(worker, now) {
            self.leases.remove(&worker);
        }
        let held = self.held.get(&worker).map(|held| held.operations.clone());
        let Some(operations) = held else {
            return false;
        };
        for id in operations {
            self.change(id, |entry| {
                entry.operation.row.release(now);
                entry.worker = None;
            });
        }
        true
    }

    /// Removes leases that expired before a moment and cover no operation.
    pub(super) fn forget_leases(&mut self, before: StoreTime) {
        let held = &self.held;
        self.leases
            .retain(|worker, lease| lease.expires >= before || held.contains_key(worker));
    }

    /// Makes the operations of workers with expired leases claimable.
    fn make_expired_claimable(&mut self, now: StoreTime) {
        for (worker, held) in &mut self.held {
            let lease = self.leases.get(worker);
            if held.void || lease.is_some_and(|lease| now < lease.expires) {
                continue;
            }
            held.void = true;
            for id in &held.operations {
                if let Some(entry) = self.operations.get(id) {
                    let row = &entry.operation.row;
                    self.claimable.insert((row.queue.clone(), row.due, *id));
                }
            }
        }
    }
}
