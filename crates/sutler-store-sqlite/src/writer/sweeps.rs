//! Sweeps, and appending to logs.
//!
//! A sweep deletes at most its limit, so that no commit waits long behind it.

use super::job::JobError;
use super::write_session::WriteSession;
use crate::codec;
use rusqlite::OptionalExtension;
use sutler_journal::{
    LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LogChunk, OperationId, Outcome, StoreTime, Sweep,
};

/// One operation to delete.
struct SweptOperation {
    number: i64,
    lane: i64,
    finished: i64,
    lane_key: Vec<u8>,
}

impl WriteSession<'_> {
    /// Deletes, and returns how many.
    pub(crate) fn sweep(&mut self, sweep: &Sweep) -> Result<u64, JobError> {
        match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                limit,
            } => self.sweep_operations(lanes, *outcome, *finished_before, *limit),
            Sweep::Feed { before, limit } => {
                let running = &self.memory.running;
                let leases = &self.shared.leases;
                leases.forget_before(*before, |worker| !running.is_empty(worker));
                self.sweep_feed(*before, *limit)
            }
        }
    }

    fn sweep_operations(
        &mut self,
        lanes: &[u8],
        outcome: Option<Outcome>,
        before: StoreTime,
        limit: usize,
    ) -> Result<u64, JobError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let end = codec::end_of_prefix(lanes);
        let mut found = Vec::new();
        for state in codec::swept_states(outcome) {
            let range = (*state, before.0, lanes, end.as_deref(), most);
            let mut rows = self.sql.sweepable.query(range)?;
            while let Some(row) = rows.next()? {
                found.push(SweptOperation {
                    number: row.get(0)?,
                    lane: row.get(1)?,
                    finished: row.get(2)?,
                    lane_key: row.get(3)?,
                });
            }
        }
        found.sort_unstable_by_key(|swept| (swept.finished, swept.number));
        found.truncate(limit);
        if !found.is_empty() {
            self.touched.all();
        }
        for swept in &found {
            self.sql.log_delete.execute([swept.number])?;
            self.sql.op_delete.execute([swept.number])?;
            if !self.sql.lane_is_used.exists([swept.lane])? {
                // Exists only if the document is gone.
                self.delete_bare_lane(&swept.lane_key)?;
            }
        }
        let count = found.len() as i64;
        self.memory.tally.cleaned += count;
        self.memory.tally.terminal -= count;
        Ok(count as u64)
    }

    fn sweep_feed(&mut self, before: StoreTime, limit: usize) -> Result<u64, JobError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let (mut count, mut reached) = (0, None);
        let mut rows = self.sql.feed_oldest.query([most])?;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(1)? >= before.0 {
                break;
            }
            reached = Some(row.get(0)?);
            count += 1;
        }
        drop(rows);
        if let Some(seq) = reached {
            self.sql.feed_delete.execute([seq])?;
            self.memory.tally.trimmed = seq;
            self.memory.recent.forget();
        }
        Ok(count)
    }

    /// Appends a chunk to a log, truncated or dropped at the limits.
    pub(crate) fn append_log(&mut self, id: OperationId, text: &[u8]) -> Result<(), JobError> {
        let text = text.get(..LOG_CHUNK_BYTES_MAX).unwrap_or(text);
        // A swept operation must not get a new log.
        let Some(head) = self.find_operation(id)? else {
            return Ok(());
        };
        let last = self
            .sql
            .log_last
            .query_row([head.number], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (number, total): (i64, i64) =
            last.map_or((0, 0), |(n, total): (i64, i64)| (n + 1, total));
        let total = total + text.len() as i64;
        if text.is_empty() || total > LOG_BYTES_MAX as i64 {
            return Ok(());
        }
        self.sql
            .log_add
            .execute((head.number, number, total, text))?;
        Ok(())
    }

    /// Replaces a chunk that is as it was read; returns whether it has the new text then.
    pub(crate) fn reseal_log(
        &mut self,
        id: OperationId,
        read: &LogChunk,
        text: &[u8],
    ) -> Result<bool, JobError> {
        let Some(head) = self.find_operation(id)? else {
            return Ok(false);
        };
        let (op, number, old) = (head.number, read.number, &read.text[..]);
        self.sql.log_reseal.execute((text, op, number, old))?;
        let same = self
            .sql
            .log_same
            .query_row((text, op, number), |row| row.get(0))
            .optional()?;
        Ok(same.unwrap_or(false))
    }
}
