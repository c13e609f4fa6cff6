//! Attempts of a commit, with retries after conflicts and lost responses.
//!
//! An attempt that MongoDB aborts because another transaction touched the same documents is repeated. One
//! of unknown outcome is left to its author to repeat: while the first attempt is open on the server,
//! the repeat cannot write its record and fails; afterwards it finds the record, or none. So
//! "stale" is never returned for a commit that is applied later. Not here: the steps (`commit_steps.rs`).

use crate::commit_steps::{self, CommitStep, CommitSteps, StepsResult};
use crate::error::MongoError;
use crate::rows::{self, Collection, uuid};
use crate::store::MongoStore;
use crate::transaction::{CommitInspection, SendGate, TransactionResult};
use mongodb::bson::{Document as Bsons, doc};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_journal::{
    Commit, CommitError, CommitId, Expect, Fence, Next, OperationId, Start, StoreError, WorkerId,
    Write,
};
use uuid::Uuid;

/// First pause before another attempt; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);
/// Maximum entries in memory: claims, and commits of unknown outcome.
const REMEMBERED_MAX: usize = 100_000;

/// Workers of claims, as far as this process knows. A fence is never used by two claims, so an entry
/// stays true.
#[derive(Default)]
pub(crate) struct ClaimCache(Mutex<HashMap<OperationId, (Fence, WorkerId)>>);

impl ClaimCache {
    pub(crate) fn add(&self, id: OperationId, fence: Fence, worker: WorkerId) {
        let mut all = self.all();
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(id, (fence, worker));
    }

    fn get(&self, id: OperationId, fence: Fence) -> Option<WorkerId> {
        let known = self.all().get(&id).copied();
        known.filter(|it| it.0 == fence).map(|it| it.1)
    }

    /// Updates the cache after a commit.
    fn follow(&self, commit: &Commit) {
        for write in commit.writes() {
            match write {
                Write::Start(new) => {
                    if let Start::Claimed(worker) = new.start {
                        self.add(new.id, Fence(1), worker);
                    }
                }
                Write::Advance {
                    operation,
                    next:
                        Next::Ready(_)
                        | Next::Retry(_)
                        | Next::PutBack(_)
                        | Next::Waiting
                        | Next::Done(_),
                    ..
                } => drop(self.all().remove(operation)),
                _ => {}
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<OperationId, (Fence, WorkerId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits of unknown outcome: `NotWritten` is never returned for these.
#[derive(Default)]
pub(crate) struct UnknownCommits(Mutex<HashSet<CommitId>>);

impl UnknownCommits {
    fn add(&self, commit: CommitId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(commit);
    }

    fn settle(&self, commit: CommitId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&commit);
    }

    fn has(&self, commit: CommitId) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.contains(&commit)
    }
}

impl MongoStore {
    /// Commits, with as many attempts as the time allows. The attempts run in their own task: a caller that
    /// stops waiting leaves no transaction open.
    pub(crate) async fn apply(&self, commit: &Commit) -> Result<(), CommitError> {
        commit.check().map_err(|reason| {
            CommitError::NotWritten(StoreError::caused("the commit cannot be taken", reason))
        })?;
        let (store, mine, gate) = (self.clone(), Arc::new(commit.clone()), SendGate::default());
        let (theirs, passage) = (Arc::clone(&mine), gate.clone());
        let tries = tokio::spawn(async move { store.tries(&theirs, &passage).await });
        let limit = self.commands.settings.answer_timeout;
        let result = match tokio::time::timeout(limit, tries).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(unknown(MongoError::odd("a try of a commit"))),
            Err(_) if gate.give_up() => Err(CommitError::NotWritten(late().into())),
            Err(_) => Err(unknown(late())),
        };
        self.conclude(commit, result)
    }

    fn conclude(
        &self,
        commit: &Commit,
        result: Result<(), CommitError>,
    ) -> Result<(), CommitError> {
        match result {
            Ok(()) => {
                self.unknown_commits.settle(commit.id());
                self.claims.follow(commit);
                self.hints.feed_moved();
                if commit.is_worth_a_hint() {
                    self.hints.give();
                }
                Ok(())
            }
            Err(CommitError::Unknown(error)) => {
                self.unknown_commits.add(commit.id());
                Err(CommitError::Unknown(error))
            }
            // This attempt was not written; an earlier one may have been.
            Err(CommitError::NotWritten(error)) if self.unknown_commits.has(commit.id()) => {
                Err(CommitError::Unknown(error))
            }
            Err(CommitError::Stale(which)) => {
                self.unknown_commits.settle(commit.id());
                Err(CommitError::Stale(which))
            }
            Err(error @ CommitError::NotWritten(_)) => Err(error),
        }
    }

    async fn tries(&self, commit: &Commit, gate: &SendGate) -> Result<(), CommitError> {
        let _held = self.locks.hold(commit).await;
        if gate.is_given_up() {
            return Err(CommitError::NotWritten(late().into()));
        }
        let holders = self.holders(commit).await;
        let holders = holders.map_err(|it| CommitError::NotWritten(it.into()))?;
        let nobody = WorkerId(Uuid::nil());
        let holder = |id, fence| holders.get(&(id, fence)).copied().unwrap_or(nobody);
        let plan = CommitSteps::of(commit, holder);
        let plan = plan.map_err(|it| CommitError::NotWritten(it.into()))?;
        let mut pause = FIRST_PAUSE;
        loop {
            let steps: Vec<Bsons> = plan.steps.iter().map(CommitStep::wire_form).collect();
            let inspect = |found: &[commit_steps::StepResult]| match plan.evaluate(found) {
                StepsResult::Fits(correction) => CommitInspection::Commit(correction),
                other => CommitInspection::Decline(other),
            };
            match self.commands.transact(steps, gate, inspect).await {
                TransactionResult::Committed => return Ok(()),
                TransactionResult::Declined(StepsResult::Stale(which)) => {
                    return Err(CommitError::Stale(which));
                }
                TransactionResult::Declined(StepsResult::Repeated) => {
                    if self.is_durable(commit.id()).await? {
                        return Ok(());
                    }
                }
                TransactionResult::Declined(StepsResult::Odd(trouble)) => {
                    return Err(CommitError::NotWritten(trouble.into()));
                }
                TransactionResult::Declined(StepsResult::Fits(_)) => {}
                TransactionResult::Unknown(trouble) => return Err(unknown(trouble)),
                TransactionResult::Failed(trouble) if !is_worth_another_try(&trouble) => {
                    return Err(CommitError::NotWritten(trouble.into()));
                }
                TransactionResult::Failed(_) => {}
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if gate.is_given_up() {
                return Err(CommitError::NotWritten(late().into()));
            }
        }
    }

    /// Whether an existing record is on a majority. Repeats the read until it is, or the record is gone.
    async fn is_durable(&self, commit: CommitId) -> Result<bool, CommitError> {
        let command = doc! {
            "find": Collection::Commits.name(),
            "filter": { "_id": uuid(commit.0) },
            "projection": { "_id": 1 },
            "limit": 1,
            "singleBatch": true,
            "readConcern": { "level": "linearizable" },
            "maxTimeMS": crate::commands::millis(self.commands.settings.command_timeout),
        };
        let answer = self.commands.command(command).await.map_err(unknown)?;
        let cursor = answer.get_document("cursor");
        let found = cursor.and_then(|it| it.get_array("firstBatch"));
        match found {
            Ok(found) => Ok(!found.is_empty()),
            Err(_) => Err(unknown(MongoError::odd("a record"))),
        }
    }

    /// The workers of the claims that a commit requires. Those of this process are in the cache.
    async fn holders(
        &self,
        commit: &Commit,
    ) -> Result<HashMap<(OperationId, Fence), WorkerId>, MongoError> {
        let mut holders = HashMap::new();
        for expect in commit.expects() {
            let Expect::Fence(id, fence) = expect else {
                continue;
            };
            let holder = match self.claims.get(*id, *fence) {
                Some(worker) => Some(worker),
                None => self.ask_for_holder(*id, *fence).await?,
            };
            holders.extend(holder.map(|worker| ((*id, *fence), worker)));
        }
        Ok(holders)
    }

    async fn ask_for_holder(
        &self,
        id: OperationId,
        fence: Fence,
    ) -> Result<Option<WorkerId>, MongoError> {
        let filter = doc! { "_id": uuid(id.0), "f": rows::fence(fence) };
        let found = self
            .commands
            .find_one(Collection::Operations, filter, &["w"])
            .await?;
        Ok(found.as_ref().and_then(rows::read_worker))
    }
}

fn late() -> MongoError {
    MongoError::Lost("it took too long".to_owned())
}

fn unknown(trouble: MongoError) -> CommitError {
    CommitError::Unknown(trouble.into())
}

/// Whether a failed transaction may succeed if it is repeated soon.
pub(crate) fn is_worth_another_try(trouble: &MongoError) -> bool {
    match trouble {
        MongoError::Refused { transient, .. } => *transient,
        MongoError::Lost(_) => true,
        MongoError::Unsent(_) | MongoError::Odd(_) | MongoError::Unfit(_) => false,
    }
}

/// Adds jitter, so that conflicting transactions do not retry at the same moment.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let jitter = Uuid::new_v4().as_bytes()[0];
    pause.mul_f64(0.5 + f64::from(jitter) / 256.0)
}
