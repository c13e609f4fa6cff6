//! Sends a commit: one transaction, unless the view lags.
//!
//! If the conditions of a transaction fail, the same response shows how far the view lags; the commit is
//! decided again once the view has caught up. `Stale` is only returned by a view that was verified
//! to be current after the commit was requested. Not here: translating a commit (`transaction.rs`).

use crate::client::{EtcdError, RequestEffect};
use crate::rows::read_operation;
use crate::store::EtcdStore;
use crate::transaction::{CommitContext, CommitDecision, FetchedOperation, Transaction, decide};
use crate::wire::{Range, RequestOp, Txn, TxnResponse};
use std::collections::{BTreeMap, BTreeSet};
use sutler_journal::{Commit, CommitError, CommitId, OperationId, StoreError, WorkerId};

/// Attempts of a commit that other commits interfere with. Each failed attempt means that another commit
/// succeeded, so this ends; the limit is a safeguard.
const TRIES_MAX: usize = 200;

/// Facts learned about a commit while trying.
#[derive(Default)]
struct CommitKnowledge {
    dead: BTreeSet<WorkerId>,
    fetched: BTreeMap<OperationId, FetchedOperation>,
    /// The view includes everything from before the commit was requested.
    current: bool,
    /// Revision at which earlier attempts were voided.
    void: i64,
}

impl EtcdStore {
    pub(crate) async fn apply(&self, commit: &Commit) -> Result<(), CommitError> {
        commit.check().map_err(|reason| {
            CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
        })?;
        let mut known = CommitKnowledge {
            void: self.unknown_commits.void(commit.id()),
            ..CommitKnowledge::default()
        };
        for _ in 0..TRIES_MAX {
            match self
                .decide(commit, &known)
                .map_err(CommitError::NotWritten)?
            {
                CommitDecision::Applied => return Ok(()),
                CommitDecision::Stale(which) if known.current => {
                    return match self.void_attempts(commit.id()).await? {
                        true => Ok(()),
                        false => Err(CommitError::Stale(which)),
                    };
                }
                CommitDecision::Stale(_) => {
                    let txn = Txn {
                        success: self.look(commit.id(), &[]),
                        ..Txn::default()
                    };
                    let answer = self.client.txn(&txn, RequestEffect::Reads).await;
                    let answer = answer.map_err(|it| CommitError::NotWritten(it.into()))?;
                    if self.learn(&answer, &[], &mut known).await? {
                        return Ok(());
                    }
                }
                CommitDecision::Fetch(ids) => self.fetch(&ids, &mut known).await?,
                CommitDecision::Write(plan) => {
                    if self.send(commit, plan, &mut known).await? {
                        return Ok(());
                    }
                }
            }
        }
        Err(CommitError::NotWritten(StoreError::new(
            "others wrote faster than this commit could; try it again",
        )))
    }

    fn decide(
        &self,
        commit: &Commit,
        known: &CommitKnowledge,
    ) -> Result<CommitDecision, StoreError> {
        let view = self.follower.view()?;
        Ok(decide(&CommitContext {
            view: &view,
            keys: &self.keys,
            commit,
            now: self.client.clock.now(),
            dead: &known.dead,
            fetched: &known.fetched,
            void: known.void,
        }))
    }

    /// Sends a transaction; returns whether the commit is applied.
    async fn send(
        &self,
        commit: &Commit,
        plan: Transaction,
        known: &mut CommitKnowledge,
    ) -> Result<bool, CommitError> {
        let workers: Vec<WorkerId> = plan.workers.iter().copied().collect();
        let txn = Txn {
            compare: plan.conditions,
            success: plan.steps,
            failure: self.look(commit.id(), &workers),
        };
        let answer = match self.client.txn(&txn, RequestEffect::Writes).await {
            Ok(answer) => answer,
            Err(EtcdError::Unanswered(error)) => {
                self.unknown_commits.add(commit.id());
                return Err(CommitError::Unknown(error));
            }
            Err(other) => return Err(CommitError::NotWritten(other.into())),
        };
        if answer.succeeded {
            self.unknown_commits.clear(commit.id());
            // Later reads of this process rely on this. The commit is durable in any case.
            let _ = self.follower.reach(answer.header.revision.0).await;
            return Ok(true);
        }
        self.learn(&answer, &workers, known).await
    }

    /// Operations that read the head, the record of a commit, and live leases.
    fn look(&self, commit: CommitId, workers: &[WorkerId]) -> Vec<RequestOp> {
        let void = self.keys.void(commit);
        let fixed = [self.keys.head(), self.keys.commit(commit), void];
        let workers = workers.iter().map(|worker| self.keys.worker(*worker));
        let keys = fixed.into_iter().chain(workers);
        keys.map(|key| RequestOp::Range(Range::one(key))).collect()
    }

    /// Evaluates the results of [`EtcdStore::look`]; returns whether the commit was applied before.
    async fn learn(
        &self,
        answer: &TxnResponse,
        workers: &[WorkerId],
        known: &mut CommitKnowledge,
    ) -> Result<bool, CommitError> {
        let mut found = answer.ranges().map(|range| range.kvs.first());
        let head = found.next().flatten().map_or(0, |kv| kv.mod_revision.0);
        if found.next().flatten().is_some() {
            return Ok(true);
        }
        known.void = found.next().flatten().map_or(0, |kv| kv.mod_revision.0);
        let lives = workers.iter().zip(found);
        let dead = lives.filter(|(_, lease)| lease.is_none());
        known.dead.extend(dead.map(|(worker, _)| *worker));
        let reached = self.follower.reach(head).await;
        reached.map_err(CommitError::NotWritten)?;
        known.current = true;
        Ok(false)
    }

    /// Reads operations that the view holds without contents.
    async fn fetch(
        &self,
        ids: &[OperationId],
        known: &mut CommitKnowledge,
    ) -> Result<(), CommitError> {
        let fetch = async {
            let keys: Vec<Vec<u8>> = ids.iter().map(|id| self.keys.operation(*id)).collect();
            let rows = self.client.get_all(&keys, None).await?;
            let mut fetched = Vec::new();
            for (id, kv) in ids.iter().zip(rows) {
                let Some(kv) = kv else { continue };
                let job = read_operation(*id, &kv.value.0)?;
                fetched.push((kv.mod_revision.0, job));
            }
            let jobs: Vec<_> = fetched.iter().map(|(_, job)| job.parts.clone()).collect();
            let contents = self.contents(&jobs, None).await?;
            for ((revision, job), contents) in fetched.into_iter().zip(contents) {
                let Some(contents) = contents else { continue };
                let operation = FetchedOperation {
                    revision,
                    detail: contents.detail,
                    progress: contents.progress,
                    job,
                };
                known.fetched.insert(operation.job.row.id, operation);
            }
            self.follower.catch_up().await
        };
        fetch.await.map_err(CommitError::NotWritten)?;
        Ok(())
    }
}
