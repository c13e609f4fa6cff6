//! Writes of a commit to operations.
//!
//! Everything here runs after the conditions of the commit were checked. The rows in the file and the
//! held operations in memory (`leases.rs`) are changed together; if the transaction fails, the memory is
//! read again from the file.

use super::apply::CommitCache;
use super::leases::RunningLease;
use super::write_session::WriteSession;
use crate::codec::{self, READY, RUNNING, WAITING};
use bytes::Bytes;
use rusqlite::{Result, params};
use sutler_journal::{
    NewOperation, Next, Operation, OperationId, Start, State, StoreTime, WorkerId,
};
use uuid::Uuid;

/// The small columns of an operation that determine the allowed changes.
pub(super) struct OperationHead {
    pub(super) number: i64,
    pub(super) state: i64,
    boot: i64,
    pub(super) due: i64,
    pub(super) fence: i64,
    takeovers: i64,
    pinned: bool,
    pub(super) worker: Option<WorkerId>,
}

impl OperationHead {
    pub(super) fn is_done(&self) -> bool {
        codec::is_done(self.state)
    }

    /// Whether a worker of this boot holds it.
    pub(super) fn runs_in(&self, boot: i64) -> bool {
        self.state == RUNNING && self.boot == boot
    }
}

impl WriteSession<'_> {
    pub(super) fn find_operation(&mut self, id: OperationId) -> Result<Option<OperationHead>> {
        let id: &[u8] = id.0.as_bytes();
        let mut rows = self.sql.op_find.query([id])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let worker: Option<[u8; 16]> = row.get(8)?;
        Ok(Some(OperationHead {
            number: row.get(0)?,
            state: row.get(1)?,
            boot: row.get(2)?,
            due: row.get(4)?,
            fence: row.get(5)?,
            takeovers: row.get(6)?,
            pinned: row.get(7)?,
            worker: worker.map(|worker| WorkerId(Uuid::from_bytes(worker))),
        }))
    }

    pub(super) fn start<'a>(
        &mut self,
        new: &'a NewOperation,
        (queue, verb): (i64, i64),
        cache: &mut CommitCache<'a>,
        now: StoreTime,
    ) -> Result<()> {
        let lane = self.lane_number(&new.lane, cache)?;
        let number = self.next_operation(new.id);
        let (state, boot, due, fence, worker) = match new.start {
            Start::Waiting => (WAITING, 0, now, 0, None),
            Start::Ready(due) => (READY, 0, due.at(now), 0, None),
            Start::Claimed(worker) => (RUNNING, self.memory.tally.boot, now, 1, Some(worker)),
        };
        if let Some(worker) = worker {
            let running = RunningLease {
                id: new.id,
                queue,
                due: due.0,
                cancel: false,
            };
            self.memory.running.give(worker, number, running);
        }
        self.hint |= state == READY && due <= now;
        let (id, worker): (&[u8], Option<&[u8]>) = (
            new.id.0.as_bytes(),
            worker.as_ref().map(|w| &w.0.as_bytes()[..]),
        );
        self.sql.op_start.execute(params![
            number,
            id,
            lane,
            state,
            boot,
            queue,
            verb,
            due.0,
            fence,
            now.0,
            worker,
            new.lane.as_bytes(),
            &new.detail[..],
            &new.request[..],
        ])?;
        self.memory.tally.accepted += 1;
        self.subjects.operation(new.id);
        Ok(())
    }

    pub(super) fn import<'a>(
        &mut self,
        operation: &'a Operation,
        (queue, verb): (i64, i64),
        cache: &mut CommitCache<'a>,
        now: StoreTime,
    ) -> Result<()> {
        let row = &operation.row;
        let lane = self.lane_number(&row.lane, cache)?;
        let number = self.next_operation(row.id);
        let (state, due, finished) = match row.state {
            State::Waiting => (WAITING, row.due, row.finished),
            State::Ready => (READY, row.due, row.finished),
            State::Running => (READY, now, row.finished),
            State::Done(outcome) => (
                codec::outcome_number(outcome),
                row.due,
                row.finished.or(Some(now)),
            ),
        };
        let id: &[u8] = row.id.0.as_bytes();
        self.sql.op_add.execute(params![
            number,
            id,
            lane,
            state,
            0,
            queue,
            verb,
            due.0,
            row.fence.0 as i64,
            row.attempt,
            row.takeovers,
            row.cancel,
            row.pinned,
            row.accepted.0,
            finished.map(|moment| moment.0),
            None::<&[u8]>,
            row.lane.as_bytes(),
            &row.detail[..],
            &operation.request[..],
            &operation.progress[..],
        ])?;
        self.hint |= state == READY && due <= now;
        self.memory.tally.accepted += 1;
        self.memory.tally.terminal += i64::from(codec::is_done(state));
        self.subjects.operation(row.id);
        Ok(())
    }

    fn next_operation(&mut self, id: OperationId) -> i64 {
        let last = &mut self.memory.last;
        last.op += 1;
        last.op_id = last.op_id.max(id.0.as_u128());
        last.op
    }

    pub(super) fn advance(
        &mut self,
        id: OperationId,
        next: Next,
        (detail, progress): (&Option<Bytes>, &Option<Bytes>),
        cache: &mut CommitCache<'_>,
        now: StoreTime,
    ) -> Result<()> {
        let Some(head) = self.cached_operation(id, cache)? else {
            return Ok(());
        };
        let (number, worker) = (head.number, head.worker);
        let (detail, progress) = (detail.as_deref(), progress.as_deref());
        let (state, due, attempts, takeovers, finished) = match next {
            Next::Same => {
                self.sql.op_touch.execute((number, detail, progress))?;
                self.subjects.operation(id);
                self.touched.one(id);
                return Ok(());
            }
            Next::Ready(due) => (READY, due.at(now).0, 0, 0, None),
            Next::PutBack(due) => (READY, due.at(now).0, 0, head.takeovers, None),
            Next::Retry(due) => (READY, due.at(now).0, 1, head.takeovers, None),
            Next::Waiting => (WAITING, head.due, 0, 0, None),
            Next::Done(outcome) => {
                let state = codec::outcome_number(outcome);
                (state, head.due, 0, head.takeovers, Some(now.0))
            }
        };
        self.sql.op_move.execute((
            number, state, due, attempts, takeovers, finished, detail, progress,
        ))?;
        if let Some(worker) = worker {
            self.memory.running.take(worker, number);
        }
        self.memory.tally.terminal += i64::from(codec::is_done(state));
        self.hint |= state == READY && due <= now.0;
        self.subjects.operation(id);
        self.touched.one(id);
        Ok(())
    }

    pub(super) fn cancel(&mut self, id: OperationId) -> Result<()> {
        let head = self.find_operation(id)?;
        let Some(head) = head.filter(|head| !head.is_done()) else {
            return Ok(());
        };
        self.sql.op_cancel.execute([head.number])?;
        if let Some(worker) = head.worker {
            self.memory.running.cancel(worker, head.number);
        }
        self.hint |= head.state == READY;
        self.subjects.operation(id);
        Ok(())
    }

    pub(super) fn wake(&mut self, id: OperationId, now: StoreTime) -> Result<()> {
        let head = self.find_operation(id)?;
        let Some(head) = head.filter(|head| !head.is_done()) else {
            return Ok(());
        };
        // One that is already due keeps its due time: frequent wakes must not starve it.
        let due = match head.state {
            READY => head.due.min(now.0),
            _ => now.0,
        };
        if head.state != RUNNING {
            self.sql.op_wake.execute((head.number, due))?;
            self.hint = true;
        }
        self.subjects.operation(id);
        self.touched.one(id);
        Ok(())
    }

    pub(super) fn unpin(&mut self, id: OperationId) -> Result<()> {
        let Some(head) = self.find_operation(id)? else {
            return Ok(());
        };
        if head.pinned {
            self.sql.op_unpin.execute([head.number])?;
        }
        self.subjects.operation(id);
        Ok(())
    }

    /// Whether detail and progress are unchanged since they were read.
    pub(super) fn is_as_read(
        &mut self,
        number: i64,
        (detail, progress): (&[u8], &[u8]),
    ) -> Result<bool> {
        let same = self
            .sql
            .op_read
            .query_row((number, detail, progress), |row| row.get(0))?;
        Ok(same)
    }

    pub(super) fn reseal(
        &mut self,
        id: OperationId,
        (detail, request, progress): (&[u8], &[u8], &[u8]),
    ) -> Result<()> {
        let Some(head) = self.find_operation(id)? else {
            return Ok(());
        };
        let row = (head.number, detail, request, progress);
        self.sql.op_reseal.execute(row)?;
        self.subjects.operation(id);
        self.touched.one(id);
        Ok(())
    }
}
