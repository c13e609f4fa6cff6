//! Leases and claims. A worker's lease is a lease of etcd on the key of its id: when it expires,
//! the key is deleted, and every transaction that requires it fails. So expiry uses etcd's clock.
//!
//! A used id is recorded in another key, so that a worker whose lease expired gets `Lost`.
//! A claim is one transaction with a nested one for each operation: an operation that another
//! worker took first does not fail the rest. Not here: the fence of a commit (`transaction.rs`).

use crate::client::RequestEffect;
use crate::read::operation_of;
use crate::rows::{self, StoredOperation};
use crate::store::EtcdStore;
use crate::view::{EtcdLease, View};
use crate::wire::{Compare, RequestOp, Txn};
use std::collections::BTreeSet;
use std::time::Duration;
use sutler_journal::{
    LeaseError, Operation, OperationId, Queue, Renewal, State, StoreError, StoreTime, WorkerId,
};

/// Maximum operations in one transaction.
const BATCH: usize = 60;
/// Attempts of a claim or release that concurrent writes interfere with.
const TRIES_MAX: usize = 100;

impl EtcdStore {
    pub(crate) async fn prolong(
        &self,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<Renewal, LeaseError> {
        let seconds = whole_seconds(ttl);
        let (lease, used) = {
            let view = self.follower.view()?;
            let lease = view.workers.get(&worker).copied();
            (lease, view.names.contains_key(&worker))
        };
        match lease {
            Some(lease) if lease.seconds == seconds => {
                let (kept, current) =
                    tokio::join!(self.client.keep_alive(lease.id), self.follower.catch_up());
                if !kept.map_err(store)? {
                    return Err(LeaseError::Lost);
                }
                current?;
            }
            Some(lease) => self.exchange(worker, lease, seconds).await?,
            None if used => return Err(LeaseError::Lost),
            None => self.grant_first_lease(worker, seconds).await?,
        }
        let view = self.follower.view()?;
        let held: Vec<OperationId> = view.operations.held(worker).collect();
        let wanted = |id: &&OperationId| {
            let entry = view.operations.get(**id);
            entry.is_some_and(|entry| entry.row.cancel)
        };
        let cancelled = held.iter().filter(wanted).copied().collect();
        Ok(Renewal { cancelled, held })
    }

    /// Grants a new worker id its first lease.
    async fn grant_first_lease(&self, worker: WorkerId, seconds: i64) -> Result<(), LeaseError> {
        let lease = self.client.grant(seconds).await.map_err(store)?;
        let now = self.client.clock.now();
        let txn = Txn {
            compare: vec![Compare::absent(self.keys.name(worker))],
            success: vec![
                RequestOp::put(self.keys.name(worker), rows::time(now)),
                self.lease_step(worker, EtcdLease { id: lease, seconds }),
                self.head(),
            ],
            failure: Vec::new(),
        };
        self.take_lease(&txn, lease).await
    }

    /// Moves a worker's id to another lease with another duration.
    async fn exchange(
        &self,
        worker: WorkerId,
        old: EtcdLease,
        seconds: i64,
    ) -> Result<(), LeaseError> {
        let lease = self.client.grant(seconds).await.map_err(store)?;
        let txn = Txn {
            compare: vec![Compare::present(self.keys.worker(worker))],
            success: vec![
                self.lease_step(worker, EtcdLease { id: lease, seconds }),
                self.head(),
            ],
            failure: Vec::new(),
        };
        self.take_lease(&txn, lease).await?;
        self.client.revoke(old.id).await;
        Ok(())
    }

    fn lease_step(&self, worker: WorkerId, lease: EtcdLease) -> RequestOp {
        let value = lease.seconds.to_be_bytes().to_vec();
        RequestOp::leased(self.keys.worker(worker), value, Some(lease.id))
    }

    async fn take_lease(&self, txn: &Txn, lease: i64) -> Result<(), LeaseError> {
        match self.client.txn(txn, RequestEffect::Writes).await {
            Ok(answer) if answer.succeeded => {
                self.follower.reach(answer.header.revision.0).await?;
                Ok(())
            }
            Ok(_) => {
                self.client.revoke(lease).await;
                Err(LeaseError::Lost)
            }
            Err(trouble) => Err(store(trouble)),
        }
    }

    pub(crate) async fn assign(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        self.follower.catch_up().await?;
        let mut left: Vec<(Queue, usize)> = queues.to_vec();
        let mut claimed: Vec<StoredOperation> = Vec::new();
        for _ in 0..TRIES_MAX {
            let picked = {
                let view = self.follower.view()?;
                if !view.is_alive(worker) {
                    return Err(LeaseError::Lost);
                }
                pick(&view, &left, self.client.clock.now())
            };
            if picked.is_empty() {
                break;
            }
            let mut current = true;
            for batch in picked.chunks(BATCH) {
                let (taken, reached) = self.take(worker, batch).await?;
                current &= reached;
                for job in taken {
                    let limit = left.iter_mut().find(|it| it.0 == job.row.queue);
                    if let Some((_, limit)) = limit {
                        *limit = limit.saturating_sub(1);
                    }
                    claimed.push(job);
                }
            }
            if !current {
                break;
            }
        }
        Ok(self.fill_in(claimed).await?)
    }

    /// Reads the contents of operations. One that was changed meanwhile is read in its current state.
    async fn fill_in(&self, jobs: Vec<StoredOperation>) -> Result<Vec<Operation>, StoreError> {
        let parts: Vec<_> = jobs.iter().map(|job| job.parts.clone()).collect();
        let contents = self.contents(&parts, None).await?;
        let mut operations = Vec::with_capacity(jobs.len());
        for (job, contents) in jobs.into_iter().zip(contents) {
            match contents {
                Some(contents) => operations.push(operation_of(job, contents)),
                None => operations.extend(self.whole(job.row.id).await?),
            }
        }
        Ok(operations)
    }

    /// Claims those of these that are still unclaimed; also returns whether the view has the claim.
    async fn take(
        &self,
        worker: WorkerId,
        picked: &[ClaimCandidate],
    ) -> Result<(Vec<StoredOperation>, bool), LeaseError> {
        let mut taken = Vec::with_capacity(picked.len());
        let mut steps = Vec::with_capacity(picked.len() + 1);
        for pick in picked {
            let id = pick.job.row.id;
            let place = self.keys.operation(id);
            let mut compare = vec![Compare::unchanged(place.clone(), pick.revision)];
            if let Some(dead) = pick.job.worker {
                compare.push(Compare::absent(self.keys.worker(dead)));
            }
            let mut job = pick.job.clone();
            job.row.claim();
            job.worker = Some(worker);
            let success = vec![RequestOp::put(place, rows::operation(&job))];
            steps.push(RequestOp::Txn(Txn {
                compare,
                success,
                failure: Vec::new(),
            }));
            taken.push(job);
        }
        steps.push(self.head());
        let txn = Txn {
            compare: vec![Compare::present(self.keys.worker(worker))],
            success: steps,
            failure: Vec::new(),
        };
        let answer = self
            .client
            .txn(&txn, RequestEffect::Writes)
            .await
            .map_err(store)?;
        if !answer.succeeded {
            return Err(LeaseError::Lost);
        }
        let reached = self.follower.reach(answer.header.revision.0).await.is_ok();
        let done = answer.responses.iter().map(|it| it.txn.as_ref());
        let done = done.map(|it| it.is_some_and(|txn| txn.succeeded));
        let taken = taken.into_iter().zip(done).filter(|(_, done)| *done);
        Ok((taken.map(|(job, _)| job).collect(), reached))
    }

    pub(crate) async fn let_go(&self, worker: WorkerId) -> Result<(), StoreError> {
        self.follower.catch_up().await?;
        for _ in 0..TRIES_MAX {
            let now = self.client.clock.now();
            let (lease, held, all) = {
                let view = self.follower.view()?;
                let held = view.operations.held(worker);
                let held = held.filter_map(|id| view.operations.get(id));
                let held = held.filter_map(|entry| Some((entry.revision, entry.job()?)));
                let mut held: Vec<(i64, StoredOperation)> = held.collect();
                let all = held.len() <= BATCH;
                held.truncate(BATCH);
                (view.workers.get(&worker).copied(), held, all)
            };
            if lease.is_none() && held.is_empty() {
                return Ok(());
            }
            let mut txn = Txn::default();
            for (revision, mut job) in held {
                let place = self.keys.operation(job.row.id);
                txn.compare
                    .push(Compare::unchanged(place.clone(), revision));
                job.row.release(now);
                job.worker = None;
                txn.success
                    .push(RequestOp::put(place, rows::operation(&job)));
            }
            if all {
                txn.success
                    .push(RequestOp::delete(self.keys.worker(worker)));
            }
            txn.success.push(self.head());
            let answer = self.client.txn(&txn, RequestEffect::Writes).await?;
            if !answer.succeeded {
                self.follower.catch_up().await?;
                continue;
            }
            // It is released even if the view lags.
            let reached = self.follower.reach(answer.header.revision.0).await;
            if all {
                if let Some(lease) = lease {
                    self.client.revoke(lease.id).await;
                }
                return Ok(());
            }
            reached?;
        }
        Err(StoreError::new(
            "others wrote faster than this release could; try it again",
        ))
    }
}

/// An operation to claim.
struct ClaimCandidate {
    revision: i64,
    job: StoredOperation,
}

/// Selects operations to claim: from each queue at most its limit, the longest due first.
fn pick(view: &View, queues: &[(Queue, usize)], now: StoreTime) -> Vec<ClaimCandidate> {
    let orphans: Vec<_> = view.orphans().collect();
    let mut picked = Vec::new();
    let mut reached = BTreeSet::new();
    for (queue, limit) in queues {
        let mut due: Vec<(StoreTime, OperationId)> =
            view.operations.due(queue, now).take(*limit).collect();
        let of_queue = orphans
            .iter()
            .filter(|(_, entry)| entry.row.queue == *queue && entry.row.state == State::Running);
        due.extend(of_queue.map(|(id, entry)| (entry.row.due, *id)));
        due.sort();
        due.truncate(*limit);
        picked.extend(due.into_iter().filter_map(|(_, id)| {
            // A queue may be listed twice.
            let entry = view.operations.get(id).filter(|_| reached.insert(id))?;
            Some(ClaimCandidate {
                revision: entry.revision,
                job: entry.job()?,
            })
        }));
    }
    picked
}

fn store(trouble: crate::client::EtcdError) -> LeaseError {
    LeaseError::Store(trouble.into())
}

/// Leases of etcd last whole seconds: rounds up.
fn whole_seconds(ttl: Duration) -> i64 {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
    i64::try_from(seconds.max(1)).unwrap_or(i64::MAX)
}
