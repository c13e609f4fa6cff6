//! Leases, claims, sweeps and logs: what is no commit, and yet changes something.

use super::ids::Id;
use super::{SqlShared, sql};
use crate::codec::{self, Lock};
use crate::error::{SqlError, odd};
use crate::rows::{self, one};
use bytes::Bytes;
use sqlx::Arguments;
use std::time::Duration;
use sutler_journal::{
    LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX, LeaseError, Operation, OperationId, Queue, Renewal,
    StoreError, Sweep, WorkerId,
};

/// Most operations or commits that one statement throws away; a sweep of more is several.
const SWEPT_AT_ONCE: usize = 1000;

fn lock_of(worker: WorkerId) -> i64 {
    codec::lock_number(Lock::Worker, worker.0.as_bytes())
}

impl SqlShared {
    pub(super) async fn renew(
        &self,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<Renewal, LeaseError> {
        let answer = self
            .ask(sql::RENEW, &|a| {
                a.add(Id(worker.0))?;
                a.add(codec::micros(ttl))
            })
            .await;
        let found = answer.map_err(SqlError::into_store_error)?;
        let renewal = rows::renewal(&found).map_err(SqlError::into_store_error)?;
        renewal.ok_or(LeaseError::Lost)
    }

    pub(super) async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        let names: Vec<&[u8]> = queues.iter().map(|(q, _)| q.as_str().as_bytes()).collect();
        let limits: Vec<i64> = queues.iter().map(|(_, n)| codec::limit(*n)).collect();
        let answer = self
            .ask_once(sql::CLAIM, &|a| {
                a.add(Id(worker.0))?;
                a.add(lock_of(worker))?;
                a.add(&names)?;
                a.add(&limits)
            })
            .await;
        let found = answer.map_err(SqlError::into_store_error)?;
        let claimed = rows::claimed(&found).map_err(SqlError::into_store_error)?;
        claimed.ok_or(LeaseError::Lost)
    }

    pub(super) async fn release(&self, worker: WorkerId) -> Result<(), StoreError> {
        let answer = self
            .ask(sql::RELEASE, &|a| {
                a.add(Id(worker.0))?;
                a.add(lock_of(worker))
            })
            .await;
        let given_back = answer
            .and_then(|found| one(&found))
            .map_err(SqlError::into_store_error)?;
        if given_back > 0 {
            self.hints.everywhere();
        }
        Ok(())
    }

    /// In several statements if there is much, so that no lock is held for long.
    pub(super) async fn sweep(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        let wanted = match sweep {
            Sweep::Operations { limit, .. } | Sweep::Feed { limit, .. } => *limit,
        };
        let mut swept = 0;
        while swept < wanted {
            let part = (wanted - swept).min(SWEPT_AT_ONCE);
            let gone = self.sweep_part(sweep, codec::limit(part)).await?;
            swept += gone;
            if gone < part {
                break;
            }
        }
        Ok(swept as u64)
    }

    async fn sweep_part(&self, sweep: &Sweep, part: i64) -> Result<usize, StoreError> {
        let answer = match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                ..
            } => {
                let states = codec::swept_states(*outcome);
                let end = codec::end_of_prefix(lanes);
                self.ask(sql::SWEEP, &|a| {
                    a.add(&states)?;
                    a.add(&lanes[..])?;
                    a.add(&end[..])?;
                    a.add(finished_before.0)?;
                    a.add(part)
                })
                .await
            }
            Sweep::Feed { before, .. } => {
                self.ask(sql::TRIM, &|a| {
                    a.add(before.0)?;
                    a.add(part)
                })
                .await
            }
        };
        let gone = answer.and_then(|found| usize::try_from(one(&found)?).map_err(odd));
        gone.map_err(SqlError::into_store_error)
    }

    pub(super) async fn append_log(
        &self,
        id: OperationId,
        mut text: Bytes,
    ) -> Result<(), StoreError> {
        text.truncate(LOG_CHUNK_BYTES_MAX);
        if text.is_empty() {
            return Ok(());
        }
        let answer = self
            .ask_once(sql::APPEND_LOG, &|a| {
                a.add(Id(id.0))?;
                a.add(&text[..])?;
                a.add(codec::limit(LOG_BYTES_MAX))
            })
            .await;
        answer.map(drop).map_err(SqlError::into_store_error)
    }
}
