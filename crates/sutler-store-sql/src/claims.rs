//! Leases, claims and sweeps: changes that are not commits.

use crate::codec;
use crate::dialect::{Dialect, Value};
use crate::error::{SqlError, odd};
use crate::rows::{self, one};
use crate::store::SqlShared;
use std::time::Duration;
use sutler_journal::{Operation, Queue, Renewal, Sweep, WorkerId};
use uuid::Uuid;

/// Maximum operations or commits deleted by one statement; a larger sweep takes several.
const SWEPT_AT_ONCE: usize = 1000;

impl<D: Dialect> SqlShared<D> {
    /// Renews a lease; `None` if it was lost.
    pub(crate) async fn renew(
        &self,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<Option<Renewal>, SqlError> {
        let values = [Value::Id(worker.0), Value::Number(codec::micros(ttl))];
        let found = self.ask(D::SQL.renew, &values).await?;
        rows::renewal(&found)
    }

    /// Claims operations; `None` if the worker holds no lease.
    pub(crate) async fn claim(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Option<Vec<Operation>>, SqlError> {
        let claim = Uuid::new_v4();
        let fill = |to: &mut D::Arguments| D::add_claim(to, worker, claim, queues);
        let found = self.ask_once(D::SQL.claim, &fill).await?;
        rows::claimed(&found)
    }

    pub(crate) async fn release(&self, worker: WorkerId) -> Result<(), SqlError> {
        let lock = Value::Number(D::worker_lock(worker));
        let found = self
            .ask(D::SQL.release, &[Value::Id(worker.0), lock])
            .await?;
        if one(&found)? > 0 {
            self.wakeups.everywhere();
        }
        Ok(())
    }

    /// Deletes in several statements if there are many rows, so that no lock is held for long.
    pub(crate) async fn sweep(&self, sweep: &Sweep) -> Result<u64, SqlError> {
        let wanted = match sweep {
            Sweep::Operations { limit, .. } | Sweep::Feed { limit, .. } => *limit,
        };
        let mut swept = 0;
        while swept < wanted {
            let part = (wanted - swept).min(SWEPT_AT_ONCE);
            let gone = self.sweep_part(sweep, codec::limit(part)).await?;
            let gone = usize::try_from(gone).map_err(odd)?;
            swept += gone;
            if gone < part {
                break;
            }
        }
        Ok(swept as u64)
    }

    async fn sweep_part(&self, sweep: &Sweep, part: i64) -> Result<i64, SqlError> {
        match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                ..
            } => {
                let end = codec::end_of_prefix(lanes);
                let mut gone = 0;
                for states in codec::swept_states(*outcome).chunks(D::SWEPT_STATES) {
                    let values = [
                        Value::States(states),
                        Value::Bytes(lanes),
                        Value::Bytes(&end),
                        Value::Number(finished_before.0),
                        Value::Number(part - gone),
                    ];
                    gone += self.delete(D::SQL.sweep, &values).await?;
                }
                Ok(gone)
            }
            Sweep::Feed { before, .. } => {
                let values = [Value::Number(before.0), Value::Number(part)];
                self.delete(D::SQL.trim, &values).await
            }
        }
    }

    async fn delete(&self, statement: &'static str, values: &[Value<'_>]) -> Result<i64, SqlError> {
        let fill = |to: &mut D::Arguments| D::add_all(to, values);
        let found = match D::SWEEP_REPEATS {
            true => self.ask_with(statement, &fill).await?,
            false => self.ask_once(statement, &fill).await?,
        };
        one(&found)
    }
}
