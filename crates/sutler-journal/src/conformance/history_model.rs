//! A minimal model of the contract, with which `histories.rs` compares a store.
//!
//! Lists and loops, no indexes. Time is only "all leases have expired" and "never due", so the
//! model needs no clock. Not here: the choice of steps.

use crate::commit::{Due, Next, StaleItem, Start};
use crate::operation::{Fence, OperationId, OperationRow, State, WorkerId};

/// Fields of an operation that the model predicts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelOperation {
    pub(super) id: OperationId,
    pub(super) state: State,
    pub(super) fence: Fence,
    pub(super) attempt: u32,
    pub(super) takeovers: u32,
    pub(super) cancel: bool,
    pub(super) pinned: bool,
}

impl ModelOperation {
    /// Extracts the predicted fields of a row.
    pub(super) fn of(row: &OperationRow) -> Self {
        Self {
            id: row.id,
            state: row.state,
            fence: row.fence,
            attempt: row.attempt,
            takeovers: row.takeovers,
            cancel: row.cancel,
            pinned: row.pinned,
        }
    }
}

/// An operation with fields that only the store knows.
#[derive(Clone, Debug)]
pub(super) struct ModelEntry {
    pub(super) known: ModelOperation,
    /// Due at once; otherwise never.
    pub(super) due: bool,
    pub(super) worker: Option<WorkerId>,
}

/// State of a worker's lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lease {
    Live,
    Expired,
    Released,
}

/// A minimal store.
#[derive(Default)]
pub(super) struct ModelStore {
    pub(super) entries: Vec<ModelEntry>,
    pub(super) workers: Vec<(WorkerId, Lease)>,
    pub(super) accepted: u64,
    pub(super) cleaned: u64,
}

impl ModelStore {
    pub(super) fn lives(&self, worker: WorkerId) -> bool {
        self.workers.contains(&(worker, Lease::Live))
    }

    pub(super) fn entry(&mut self, id: OperationId) -> Option<&mut ModelEntry> {
        self.entries.iter_mut().find(|entry| entry.known.id == id)
    }

    pub(super) fn start(&mut self, id: OperationId, start: Start) -> Result<(), StaleItem> {
        let (state, fence, due, worker) = match start {
            Start::Waiting => (State::Waiting, 0, true, None),
            Start::Ready(due) => (State::Ready, 0, due == Due::Now, None),
            Start::Claimed(worker) => (State::Running, 1, true, Some(worker)),
        };
        if worker.is_some_and(|worker| !self.lives(worker)) {
            return Err(StaleItem::Write(0));
        }
        self.accepted += 1;
        let known = ModelOperation {
            id,
            state,
            fence: Fence(fence),
            attempt: 1,
            takeovers: 0,
            cancel: false,
            pinned: true,
        };
        self.entries.push(ModelEntry { known, due, worker });
        Ok(())
    }

    pub(super) fn advance(
        &mut self,
        id: OperationId,
        fence: Option<Fence>,
        next: Next,
        progress: bool,
    ) -> Result<(), StaleItem> {
        let live: Vec<WorkerId> = self
            .workers
            .iter()
            .filter(|w| w.1 == Lease::Live)
            .map(|w| w.0)
            .collect();
        let Some(entry) = self.entry(id) else {
            return Err(if fence.is_some() {
                StaleItem::Expect(0)
            } else {
                StaleItem::Write(0)
            });
        };
        let held = entry.worker.is_some_and(|worker| live.contains(&worker));
        if fence.is_some_and(|fence| !held || entry.known.fence != fence) {
            return Err(StaleItem::Expect(0));
        }
        let known = &mut entry.known;
        match known.state {
            State::Done(_) => return Err(StaleItem::Write(0)),
            State::Waiting | State::Ready | State::Running => {}
        }
        match next {
            Next::Same if progress => known.takeovers = 0,
            Next::Same => {}
            Next::PutBack(due) => {
                known.state = State::Ready;
                (entry.due, entry.worker) = (due == Due::Now, None);
            }
            Next::Ready(due) => {
                (known.state, known.takeovers) = (State::Ready, 0);
                (entry.due, entry.worker) = (due == Due::Now, None);
            }
            Next::Retry(due) => {
                known.state = State::Ready;
                known.attempt += 1;
                (entry.due, entry.worker) = (due == Due::Now, None);
            }
            Next::Waiting => {
                (known.state, known.takeovers) = (State::Waiting, 0);
                entry.worker = None;
            }
            Next::Done(outcome) => {
                known.state = State::Done(outcome);
                entry.worker = None;
            }
        }
        Ok(())
    }

    pub(super) fn wake(&mut self, id: OperationId) {
        let Some(entry) = self.entry(id) else { return };
        match entry.known.state {
            State::Waiting | State::Ready => {
                entry.known.state = State::Ready;
                entry.due = true;
            }
            State::Running | State::Done(_) => {}
        }
    }

    pub(super) fn cancel(&mut self, id: OperationId) {
        let Some(entry) = self.entry(id) else { return };
        match entry.known.state {
            State::Waiting | State::Ready | State::Running => entry.known.cancel = true,
            State::Done(_) => {}
        }
    }

    pub(super) fn unpin(&mut self, id: OperationId) {
        if let Some(entry) = self.entry(id) {
            entry.known.pinned = false;
        }
    }

    /// Operations that any worker may claim now.
    pub(super) fn claimable(&self) -> Vec<OperationId> {
        let claimable = self.entries.iter().filter(|entry| match entry.known.state {
            State::Ready => entry.due,
            State::Running => entry.worker.is_none_or(|worker| !self.lives(worker)),
            State::Waiting | State::Done(_) => false,
        });
        claimable.map(|entry| entry.known.id).collect()
    }

    pub(super) fn claim(&mut self, worker: WorkerId, id: OperationId) {
        let entry = self.entry(id).expect("claimable");
        entry.known.takeovers += u32::from(entry.known.state == State::Running);
        entry.known.state = State::Running;
        entry.known.fence.0 += 1;
        entry.worker = Some(worker);
    }

    /// Operations of a worker with a requested cancellation.
    pub(super) fn cancelled(&self, worker: WorkerId) -> Vec<OperationId> {
        let wanted = self
            .entries
            .iter()
            .filter(|entry| entry.worker == Some(worker) && entry.known.cancel);
        wanted.map(|entry| entry.known.id).collect()
    }

    pub(super) fn release(&mut self, worker: WorkerId) {
        for entry in &mut self.entries {
            if entry.worker == Some(worker) {
                entry.known.state = State::Ready;
                (entry.due, entry.worker) = (true, None);
            }
        }
        for (name, lease) in &mut self.workers {
            if *name == worker && *lease == Lease::Live {
                *lease = Lease::Released;
            }
        }
    }

    pub(super) fn expire_all(&mut self) {
        for (_, lease) in &mut self.workers {
            if *lease == Lease::Live {
                *lease = Lease::Expired;
            }
        }
    }

    /// Number of operations that a sweep of everything may delete.
    pub(super) fn sweepable(&self) -> usize {
        self.entries.iter().filter(|entry| may_go(entry)).count()
    }

    /// Removes operations that the store no longer has; each of them must be sweepable.
    pub(super) fn swept(&mut self, left: &[OperationId]) {
        self.entries.retain(|entry| {
            let gone = !left.contains(&entry.known.id);
            assert!(!gone || may_go(entry), "swept, though {entry:?}");
            self.cleaned += u64::from(gone);
            !gone
        });
    }
}

fn may_go(entry: &ModelEntry) -> bool {
    match entry.known.state {
        State::Done(_) => !entry.known.pinned,
        State::Waiting | State::Ready | State::Running => false,
    }
}
