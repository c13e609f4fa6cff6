//! State changes of an operation: start, import, advance, wake.

use crate::rows::{OperationValues, StoredOperation};
use bytes::Bytes;
use std::borrow::Cow;
use sutler_journal::{
    Due, Fence, NewOperation, Next, OperationRow, Start, State, StoreTime, WorkerId,
};

/// A new operation.
pub(super) fn begin(new: &NewOperation, parts: OperationValues, now: StoreTime) -> StoredOperation {
    let (state, due, fence, worker) = match new.start {
        Start::Waiting => (State::Waiting, now, Fence(0), None),
        Start::Ready(due) => (State::Ready, moment(due, now), Fence(0), None),
        Start::Claimed(worker) => (State::Running, now, Fence(1), Some(worker)),
    };
    let row = OperationRow {
        id: new.id,
        lane: new.lane.clone(),
        verb: Cow::Borrowed(new.verb),
        queue: new.queue.clone(),
        state,
        due,
        fence,
        attempt: 1,
        takeovers: 0,
        cancel: false,
        pinned: true,
        accepted: now,
        finished: None,
        detail: Bytes::new(),
    };
    StoredOperation { row, worker, parts }
}

/// An operation of another store, without the worker it may have had there.
pub(super) fn arrive(
    row: &OperationRow,
    parts: OperationValues,
    now: StoreTime,
) -> StoredOperation {
    let mut row = OperationRow {
        detail: Bytes::new(),
        ..row.clone()
    };
    match row.state {
        State::Waiting | State::Ready => {}
        State::Running => (row.state, row.due) = (State::Ready, now),
        State::Done(_) => row.finished = row.finished.or(Some(now)),
    }
    StoredOperation {
        row,
        worker: None,
        parts,
    }
}

/// Advances an operation.
pub(super) fn advance_operation(job: &mut StoredOperation, next: Next, now: StoreTime) {
    let row = &mut job.row;
    match next {
        Next::Same => {
            row.takeovers = 0;
            return;
        }
        Next::Ready(due) => {
            row.takeovers = 0;
            (row.state, row.due) = (State::Ready, moment(due, now));
        }
        Next::Retry(due) => {
            row.attempt = row.attempt.saturating_add(1);
            (row.state, row.due) = (State::Ready, moment(due, now));
        }
        Next::Done(outcome) => {
            (row.state, row.finished) = (State::Done(outcome), Some(now));
        }
    }
    job.worker = None;
}

/// Makes an operation claimable, if it is not already.
pub(super) fn wake(row: &mut OperationRow, now: StoreTime) {
    match row.state {
        State::Waiting => (row.state, row.due) = (State::Ready, now),
        // One that is due keeps its due time, however often it is woken.
        State::Ready => row.due = row.due.min(now),
        State::Running | State::Done(_) => {}
    }
}

/// Assigns an operation to a worker.
pub(crate) fn assign(job: &mut StoredOperation, worker: WorkerId) {
    if job.row.state == State::Running {
        job.row.takeovers = job.row.takeovers.saturating_add(1);
    }
    job.row.state = State::Running;
    job.row.fence.0 += 1;
    job.worker = Some(worker);
}

/// Releases an operation from its worker.
pub(crate) fn release_operation(job: &mut StoredOperation, now: StoreTime) {
    (job.row.state, job.row.due) = (State::Ready, now);
    job.worker = None;
}

fn moment(due: Due, now: StoreTime) -> StoreTime {
    match due {
        Due::Now => now,
        Due::In(wait) => now.plus(wait),
    }
}
