//! The operations of a view, and the indexes that find them.
//!
//! An operation enters and leaves all indexes together, in [`Operations::put`] and
//! [`Operations::remove`]. Also counts who uses which sheet: a sheet that nobody uses any more is
//! garbage for ever, because only the commit that wrote it can point to it. Not here: who may claim
//! (`claim.rs`), what is swept (`sweep.rs`).

use super::ViewChange;
use crate::rows::{OperationValues, StoredOperation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use sutler_journal::{
    CommitId, Key, OperationFilter, OperationId, OperationList, OperationRow, Queue, QueueStats,
    State, StoreTime, WorkerId,
};
use uuid::Uuid;

/// An operation as a view knows it.
#[derive(Clone, Debug)]
pub(crate) struct ViewOperation {
    /// When it was last written.
    pub(crate) revision: i64,
    /// Without its detail.
    pub(crate) row: OperationRow,
    pub(crate) worker: Option<WorkerId>,
    /// Kept while the operation is unfinished or pinned: then it may be written again.
    pub(crate) parts: Option<OperationValues>,
    pub(crate) sheets: Vec<CommitId>,
}

impl ViewOperation {
    /// All of it, as it is written; `None` if the contents are not kept here.
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
    /// Ready ones, by the time from which on they may be claimed.
    ready: BTreeSet<(Queue, StoreTime, OperationId)>,
    held: BTreeMap<WorkerId, BTreeSet<OperationId>>,
    /// Done and unpinned, by the time of their end.
    sweepable: BTreeSet<(StoreTime, OperationId)>,
    /// How often each sheet is used.
    sheets: BTreeMap<CommitId, usize>,
    /// Overflow values without users.
    garbage: BTreeSet<CommitId>,
}

impl Operations {
    pub(crate) fn get(&self, id: OperationId) -> Option<&ViewOperation> {
        self.entries.get(&id)
    }

    /// Takes in an operation in the place of what it was before.
    pub(super) fn put(
        &mut self,
        job: StoredOperation,
        revision: i64,
        now: StoreTime,
    ) -> ViewChange {
        let id = job.row.id;
        let sheets: Vec<CommitId> = job.parts.sheets().collect();
        for sheet in &sheets {
            *self.sheets.entry(*sheet).or_default() += 1;
            self.garbage.remove(sheet);
        }
        let before = self.take(id);
        let (row, worker) = (job.row, job.worker);
        let finished = matches!(row.state, State::Done(_));
        let news = match row.state {
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
            sheets,
        };
        self.entries.insert(id, entry);
        news
    }

    pub(super) fn remove(&mut self, id: OperationId) {
        if let Some(entry) = self.take(id) {
            self.lanes.remove(&(entry.row.lane, id));
        }
    }

    /// Takes an operation out of every index but that of the lanes.
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
        for sheet in &entry.sheets {
            if let Some(uses) = self.sheets.get_mut(sheet) {
                *uses -= 1;
                if *uses == 0 {
                    self.sheets.remove(sheet);
                    self.garbage.insert(*sheet);
                }
            }
        }
        Some(entry)
    }

    /// Operations that a worker runs.
    pub(crate) fn held(&self, worker: WorkerId) -> impl Iterator<Item = OperationId> {
        self.held.get(&worker).into_iter().flatten().copied()
    }

    /// Workers that run something.
    pub(super) fn holders(&self) -> impl Iterator<Item = WorkerId> {
        self.held.keys().copied()
    }

    /// Ready ones of a queue that are due, the longest due first.
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

    /// Done and unpinned ones, the longest finished first.
    pub(crate) fn sweepable(&self) -> impl Iterator<Item = (StoreTime, OperationId)> {
        self.sweepable.iter().copied()
    }

    /// How often a sheet is used.
    pub(crate) fn uses_of(&self, sheet: CommitId) -> usize {
        self.sheets.get(&sheet).copied().unwrap_or_default()
    }

    /// Sheets that may be thrown away.
    pub(crate) fn garbage(&self) -> impl Iterator<Item = CommitId> {
        self.garbage.iter().copied()
    }

    /// Takes note that a sheet is in etcd.
    pub(crate) fn found_sheet(&mut self, sheet: CommitId) {
        if !self.sheets.contains_key(&sheet) {
            self.garbage.insert(sheet);
        }
    }

    /// Takes note that a sheet was thrown away.
    pub(crate) fn forget_sheet(&mut self, sheet: CommitId) {
        self.garbage.remove(&sheet);
    }

    /// The operations a list asks for, newest first.
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

    /// How many are unfinished, and how many are done.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let live = self.unfinished.len();
        (live as u64, (self.entries.len() - live) as u64)
    }

    /// The queues with something unfinished in them.
    pub(crate) fn queues(&self) -> Vec<QueueStats> {
        let unfinished = self.unfinished.iter().filter_map(|id| self.get(*id));
        QueueStats::count(unfinished.map(|entry| &entry.row))
    }
}
