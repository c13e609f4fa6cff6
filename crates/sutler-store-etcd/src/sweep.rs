//! Sweeps: ended operations, the feed with its commit records, and overflow values without users.
//!
//! Each batch is one transaction that requires that the counter it writes is unchanged, so two
//! replicas that sweep concurrently never count an operation twice.

use crate::client::RequestEffect;
use crate::store::EtcdStore;
use crate::view::{Counter, View};
use crate::wire::{Compare, RequestOp, Txn};
use sutler_journal::{
    CommitId, OperationId, Outcome, State, StoreError, StoreTime, Sweep, WorkerId,
};

/// Maximum records swept by one transaction: an operation takes two steps.
const BATCH: usize = 50;
/// Attempts of a batch that concurrent writes interfere with.
const TRIES_MAX: usize = 100;

/// Selects operations to delete.
struct SweepFilter<'a> {
    lanes: &'a [u8],
    outcome: Option<Outcome>,
    finished_before: StoreTime,
}

impl EtcdStore {
    pub(crate) async fn throw_away(&self, sweep: &Sweep) -> Result<u64, StoreError> {
        self.follower.catch_up().await?;
        match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                limit,
            } => {
                let wanted = SweepFilter {
                    lanes,
                    outcome: *outcome,
                    finished_before: *finished_before,
                };
                self.sweep_operations(&wanted, *limit).await
            }
            Sweep::Feed { before, limit } => {
                self.sweep_overflows().await?;
                self.forget_names(*before).await?;
                self.sweep_feed(*before, *limit).await
            }
        }
    }

    async fn sweep_operations(
        &self,
        wanted: &SweepFilter<'_>,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let mut swept: usize = 0;
        let mut tries = 0;
        while swept < limit && tries < TRIES_MAX {
            let (old, cleaned) = {
                let view = self.follower.view()?;
                let old = sweepable(&view, wanted, BATCH.min(limit - swept));
                (old, view.cleaned)
            };
            if old.is_empty() {
                break;
            }
            let mut txn = Txn {
                compare: vec![Compare::unchanged(self.keys.cleaned(), cleaned.revision)],
                ..Txn::default()
            };
            for (id, revision) in &old {
                let place = self.keys.operation(*id);
                let same = Compare::unchanged(place.clone(), *revision);
                txn.compare.push(same);
                txn.success.push(RequestOp::delete(place));
                txn.success
                    .push(RequestOp::delete_between(self.keys.log(*id)));
            }
            let count = i64::try_from(old.len()).unwrap_or_default();
            let value = (cleaned.value + count).to_be_bytes().to_vec();
            txn.success.push(RequestOp::put(self.keys.cleaned(), value));
            match self.change(txn).await {
                Ok(true) => swept += old.len(),
                Ok(false) => tries += 1,
                // Earlier batches are counted.
                Err(_) if swept > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(swept as u64)
    }

    async fn sweep_feed(&self, before: StoreTime, limit: usize) -> Result<u64, StoreError> {
        let mut swept: usize = 0;
        let mut tries = 0;
        while swept < limit && tries < TRIES_MAX {
            let (old, trimmed) = {
                let view = self.follower.view()?;
                (
                    oldest(&view, before, BATCH.min(limit - swept)),
                    view.trimmed,
                )
            };
            let Some((last, _)) = old.last().copied() else {
                break;
            };
            let mut success: Vec<RequestOp> = Vec::with_capacity(old.len() + 2);
            let records = old.iter().map(|(_, id)| self.keys.commit(*id));
            success.extend(records.map(RequestOp::delete));
            let value = last.to_be_bytes().to_vec();
            success.push(RequestOp::put(self.keys.trimmed(), value));
            let Counter { revision, .. } = trimmed;
            let txn = Txn {
                compare: vec![Compare::unchanged(self.keys.trimmed(), revision)],
                success,
                failure: Vec::new(),
            };
            match self.change(txn).await {
                Ok(true) => swept += old.len(),
                Ok(false) => tries += 1,
                // Earlier batches are counted.
                Err(_) if swept > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(swept as u64)
    }

    /// Deletes ids of workers that hold neither a lease nor operations.
    async fn forget_names(&self, before: StoreTime) -> Result<(), StoreError> {
        let names: Vec<WorkerId> = {
            let view = self.follower.view()?;
            let idle = |worker: &WorkerId| {
                !view.is_alive(*worker) && view.operations.held(*worker).next().is_none()
            };
            let old = view.names.iter().filter(|(_, used)| **used < before);
            old.map(|(worker, _)| *worker).filter(idle).collect()
        };
        for batch in names.chunks(BATCH) {
            let gone = batch.iter().map(|worker| self.keys.worker(*worker));
            let names = batch.iter().map(|worker| self.keys.name(*worker));
            let txn = Txn {
                compare: gone.map(Compare::absent).collect(),
                success: names.map(RequestOp::delete).collect(),
                failure: Vec::new(),
            };
            self.change(txn).await?;
        }
        Ok(())
    }

    /// Deletes overflow values without users; they never get new ones.
    async fn sweep_overflows(&self) -> Result<(), StoreError> {
        let overflows: Vec<CommitId> = self.follower.view()?.operations.garbage().collect();
        for batch in overflows.chunks(BATCH) {
            let places = batch.iter().map(|overflow| self.keys.overflow(*overflow));
            let txn = Txn {
                success: places.map(RequestOp::delete).collect(),
                ..Txn::default()
            };
            self.client.txn(&txn, RequestEffect::Reads).await?;
            self.follower.amend(|view| {
                for overflow in batch {
                    view.operations.forget_overflow(*overflow);
                }
            });
        }
        Ok(())
    }

    /// Runs a transaction that changes followed keys; returns whether its conditions held.
    async fn change(&self, mut txn: Txn) -> Result<bool, StoreError> {
        txn.success.push(self.head());
        let answer = self.client.txn(&txn, RequestEffect::Writes).await?;
        if answer.succeeded {
            // The change is done even if the view lags; later reads wait for the view.
            let _ = self.follower.reach(answer.header.revision.0).await;
        } else {
            self.follower.catch_up().await?;
        }
        Ok(answer.succeeded)
    }
}

fn sweepable(view: &View, wanted: &SweepFilter<'_>, limit: usize) -> Vec<(OperationId, i64)> {
    let old = view.operations.sweepable();
    let old = old.take_while(|(finished, _)| *finished < wanted.finished_before);
    let entries = old.filter_map(|(_, id)| Some((id, view.operations.get(id)?)));
    entries
        .filter(|(_, entry)| {
            entry.row.lane.as_bytes().starts_with(wanted.lanes)
                && is_covered(wanted.outcome, entry.row.state)
        })
        .map(|(id, entry)| (id, entry.revision))
        .take(limit)
        .collect()
}

/// Whether a sweep for this outcome deletes an operation in this state.
fn is_covered(wanted: Option<Outcome>, state: State) -> bool {
    let State::Done(outcome) = state else {
        return false;
    };
    match wanted {
        None => true,
        Some(Outcome::Succeeded) => outcome == Outcome::Succeeded,
        Some(Outcome::Failed) => outcome != Outcome::Succeeded,
        Some(Outcome::Cancelled) => outcome == Outcome::Cancelled,
    }
}

/// The oldest commits of the feed, up to the first that is too recent.
fn oldest(view: &View, before: StoreTime, limit: usize) -> Vec<(i64, CommitId)> {
    let old = view.feed.iter().take_while(|(_, (_, at))| *at < before);
    old.take(limit).map(|(at, it)| (*at, it.0)).collect()
}
