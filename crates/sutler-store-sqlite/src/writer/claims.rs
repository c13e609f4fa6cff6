//! Claims and releases.
//!
//! Claimable operations are ready and due, or held by a worker whose lease expired, or
//! were running when an earlier boot ended. All three are found by index or in memory; nothing is
//! scanned.

use super::job::JobError;
use super::leases::RunningLease;
use super::write_session::WriteSession;
use crate::interned_strings;
use crate::rows;
use sutler_journal::{Operation, OperationId, Queue, StoreTime, WorkerId};
use uuid::Uuid;

/// A claimable operation.
struct Claimable {
    due: i64,
    id: OperationId,
    number: i64,
    /// It was running; its worker, if that was one of this boot.
    taken_from: Option<Option<WorkerId>>,
}

impl WriteSession<'_> {
    /// Claims due operations; `None` if the worker holds no lease.
    pub(crate) fn claim(
        &mut self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
        now: StoreTime,
    ) -> Result<Option<Vec<Operation>>, JobError> {
        if !self.shared.leases.holds(worker, now) {
            return Ok(None);
        }
        let mut claimed = Vec::new();
        for (queue, limit) in queues {
            let word = interned_strings::queue(queue.as_str());
            let known = match self.shared.words.number(&word) {
                Some(number) => Some(number),
                None => self.known_word(&word)?,
            };
            // A queue without a number never had an operation.
            if let Some(queue) = known {
                for found in self.claimable(queue, *limit, now)? {
                    claimed.push(self.claim_one(found, worker, queue)?);
                }
            }
        }
        Ok(Some(claimed))
    }

    fn claimable(
        &mut self,
        queue: i64,
        limit: usize,
        now: StoreTime,
    ) -> Result<Vec<Claimable>, JobError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let running = &self.memory.running;
        let dead = running.expired_claims(&self.shared.leases, queue, now);
        let mut found: Vec<Claimable> = dead
            .into_iter()
            .map(|(due, id, number, worker)| Claimable {
                due,
                id,
                number,
                taken_from: Some(Some(worker)),
            })
            .collect();
        let boot = self.memory.tally.boot;
        let ready = self.sql.op_ready.query((queue, now.0, most))?;
        collect(ready, None, &mut found)?;
        let void = self.sql.op_void.query((queue, boot, most))?;
        collect(void, Some(None), &mut found)?;
        found.sort_unstable_by_key(|claimable| (claimable.due, claimable.id));
        found.truncate(limit);
        Ok(found)
    }

    fn claim_one(
        &mut self,
        found: Claimable,
        worker: WorkerId,
        queue: i64,
    ) -> Result<Operation, JobError> {
        let (id, number): (&[u8], i64) = (worker.0.as_bytes(), found.number);
        let takeover = i64::from(found.taken_from.is_some());
        let boot = self.memory.tally.boot;
        self.sql.op_claim.execute((number, boot, takeover, id))?;
        let mut rows = self.sql.op_whole_by_number.query([number])?;
        let Some(row) = rows.next()? else {
            return Err(crate::codec::damaged("an operation stands in an index only").into());
        };
        let operation = rows::operation(row, &self.shared.words, self.db)?;
        if let Some(Some(dead)) = found.taken_from {
            self.memory.running.take(dead, number);
        }
        let running = RunningLease {
            id: operation.row.id,
            queue,
            due: found.due,
            cancel: operation.row.cancel,
        };
        self.memory.running.give(worker, number, running);
        self.touched.one(operation.row.id);
        let fence = operation.row.fence.0 as i64;
        self.memory.claimed.push((number, fence));
        Ok(operation)
    }

    /// Ends a lease; operations of the worker become ready and due now.
    pub(crate) fn release(&mut self, worker: WorkerId, now: StoreTime) -> Result<(), JobError> {
        for number in self.memory.running.numbers_of(worker) {
            self.sql.op_release.execute((number, now.0))?;
            self.memory.running.take(worker, number);
            self.hint = true;
            self.touched.all();
        }
        self.shared.leases.end(worker, now);
        Ok(())
    }
}

fn collect(
    mut rows: rusqlite::Rows<'_>,
    taken_from: Option<Option<WorkerId>>,
    found: &mut Vec<Claimable>,
) -> Result<(), JobError> {
    while let Some(row) = rows.next()? {
        found.push(Claimable {
            number: row.get(0)?,
            id: OperationId(Uuid::from_bytes(row.get(1)?)),
            due: row.get(2)?,
            taken_from,
        });
    }
    Ok(())
}
