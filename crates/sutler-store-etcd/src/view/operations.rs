//! The operations of a view and their indexes.
//!
//! An operation is added to and removed from all indexes together, in [`Operations::put`] and
//! [`Operations::remove`]. Also counts the users of each overflow value: one without users is
//! garbage for ever, because only the commit that wrote it can point to it. Not here: claims
//! (`claim.rs`), sweeps (`sweep.rs`).

use super::ViewChange;
use crate::rows::{OperationValues, StoredOperation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use sutler_journal::{
    CommitId, Key, OperationFilter, OperationId, OperationList, OperationRow, Queue, QueueStats,
    State, StoreTime, WorkerId,
};
use uuid::Uuid;

/// An operation in a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewOperation {
    /// Revision of its last write.
    pub(crate) revision: i64,
    /// Without its detail.
    pub(crate) row: OperationRow,
    pub(crate) worker: Option<WorkerId>,
    /// Present while the operation is unfinished or pinned: then it may be written again.
    pub(crate) parts: Option<OperationValues>,
    pub(crate) overflows: Vec<CommitId>,
}

impl ViewOperation {
    /// The complete operation as stored; `None` if the view has no contents of it.
    pub(crate) fn job(&self) -> Option<StoredOperation> {
        Some(StoredOperation {
            row: self.row.clone(),
            worker: self.worker,
            parts: self.parts.clone()?,
        })
    }
}

/// All operations.
#[derive(Default)]
pub(crate) struct Operations {
    entries: BTreeMap<OperationId, ViewOperation>,
    lanes: BTreeSet<(Key, OperationId)>,
    unfinished: BTreeSet<OperationId>,
    /// Ready ones, by due time.
    ready: BTreeSet<(Queue, StoreTime, OperationId)>,
    held: BTreeMap<WorkerId, BTreeSet<OperationId>>,
    /// Done and unpinned, by the time of their end.
    sweepable: BTreeSet<(StoreTime, OperationId)>,
    /// Number of uses of each overflow value.
    overflows: BTreeMap<CommitId, usize>,
    /// Overflow values without users.
    garbage: BTreeSet<CommitId>,
}

impl Operations {
    pub(crate) fn get(&self, id: OperationId) -> Option<&ViewOperation> {
        self.entries.get(&id)
    }

    /// Adds an operation or replaces it.
    pub(super) fn put(
        &mut self,
        job: StoredOperation,
        revision: i64,
        now: StoreTime,
    ) -> ViewChange {
        let id = job.row.id;
        let overflows: Vec<CommitId> = job.parts.overflows().collect();
        for overflow in &overflows {
            *self.overflows.entry(*overflow).or_default() += 1;
            self.garbage.remove(overflow);
        }
        let before = self.take(id);
        let (row, worker) = (job.row, job.worker);
        let finished = matches!(row.state, State::Done(_));
        let change = match row.state {
            State::Ready if row.due <= now => ViewChange::Claimable,
            State::Waiting | State::Ready | State::Running | State::Done(_) => ViewChange::Other,
        };
        match row.state {
            State::Waiting | State::Done(_) => {}
            State::Ready => {
                self.ready.insert((row.queue.clone(), row.due, id));
            }
            State::Running => {
                if let Some(worker) = worker {
                    self.held.entry(worker).or_default().insert(id);
                }
            }
        }
        if finished {
            if let (false, Some(at)) = (row.pinned, row.finished) {
                self.sweepable.insert((at, id));
            }
        } else {
            self.unfinished.insert(id);
        }
        if before.is_none() {
            self.lanes.insert((row.lane.clone(), id));
        }
        let kept = !finished || row.pinned;
        let entry = ViewOperation {
            revision,
            row,
            worker,
            parts: kept.then_some(job.parts),
            overflows,
        };
        self.entries.insert(id, entry);
        change
    }

    pub(super) fn remove(&mut self, id: OperationId) {
        if let Some(entry) = self.take(id) {
            self.lanes.remove(&(entry.row.lane, id));
        }
    }

    /// Removes an operation from every index except the one of lanes.
    fn take(&mut self, id: OperationId) -> Option<ViewOperation> {
        let entry = self.entries.remove(&id)?;
        let row = &entry.row;
        self.unfinished.remove(&id);
        self.ready.remove(&(row.queue.clone(), row.due, id));
        if let Some(at) = row.finished {
            self.sweepable.remove(&(at, id));
        }
        if let Some(worker) = entry.worker
            && let Some(held) = self.held.get_mut(&worker)
        {
            held.remove(&id);
            if held.is_empty() {
                self.held.remove(&worker);
            }
        }
        for overflow in &entry.overflows {
            if let Some(uses) = self.overflows.get_mut(overflow) {
                *uses -= 1;
                if *uses == 0 {
                    self.overflows.remove(overflow);
                    self.garbage.insert(*overflow);
                }
            }
        }
        Some(entry)
    }

    /// Operations that a worker holds.
    pub(crate) fn held(&self, worker: WorkerId) -> impl Iterator<Item = OperationId> {
        self.held.get(&worker).into_iter().flatten().copied()
    }

    /// Workers that hold operations.
    pub(super) fn holders(&self) -> impl Iterator<Item = WorkerId> {
        self.held.keys().copied()
    }

    /// Due ready operations of a queue, oldest due time first.
    pub(crate) fn due<'a>(
        &'a self,
        queue: &Queue,
        now: StoreTime,
    ) -> impl Iterator<Item = (StoreTime, OperationId)> + 'a {
        let first = (queue.clone(), StoreTime(i64::MIN), OperationId(Uuid::nil()));
        let last = (queue.clone(), now, OperationId(Uuid::max()));
        let due = self.ready.range(first..=last);
        due.map(|(_, due, id)| (*due, *id))
    }

    /// Done and unpinned ones, earliest end first.
    pub(crate) fn sweepable(&self) -> impl Iterator<Item = (StoreTime, OperationId)> {
        self.sweepable.iter().copied()
    }

    /// Number of uses of an overflow value.
    pub(crate) fn uses_of(&self, overflow: CommitId) -> usize {
        self.overflows.get(&overflow).copied().unwrap_or_default()
    }

    /// Overflow values that may be deleted.
    pub(crate) fn garbage(&self) -> impl Iterator<Item = CommitId> {
        self.garbage.iter().copied()
    }

    /// Records that an overflow value exists in etcd.
    pub(crate) fn found_overflow(&mut self, overflow: CommitId) {
        if !self.overflows.contains_key(&overflow) {
            self.garbage.insert(overflow);
        }
    }

    /// Records that an overflow value was deleted.
    pub(crate) fn forget_overflow(&mut self, overflow: CommitId) {
        self.garbage.remove(&overflow);
    }

    /// Operations of a list, newest first.
    pub(crate) fn list(&self, list: &OperationList) -> Vec<OperationId> {
        let end = list.before.map_or(Bound::Unbounded, Bound::Excluded);
        let below = (Bound::Unbounded, end);
        match &list.filter {
            OperationFilter::All => {
                let all = self.entries.range(below).rev().take(list.limit);
                all.map(|(id, _)| *id).collect()
            }
            OperationFilter::Unfinished => {
                let ids = self.unfinished.range(below).rev().take(list.limit);
                ids.copied().collect()
            }
            OperationFilter::Lane(lane) => {
                let first = Bound::Included((lane.clone(), OperationId(Uuid::nil())));
                let last = match list.before {
                    Some(before) => Bound::Excluded((lane.clone(), before)),
                    None => Bound::Included((lane.clone(), OperationId(Uuid::max()))),
                };
                let ids = self.lanes.range((first, last)).rev().take(list.limit);
                ids.map(|(_, id)| *id).collect()
            }
        }
    }

    /// Numbers of unfinished and of done operations.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let live = self.unfinished.len();
        (live as u64, (self.entries.len() - live) as u64)
    }

    /// Queues with unfinished operations.
    pub(crate) fn queues(&self) -> Vec<QueueStats> {
        let unfinished = self.unfinished.iter().filter_map(|id| self.get(*id));
        QueueStats::count(unfinished.map(|entry| &entry.row))
    }
}
