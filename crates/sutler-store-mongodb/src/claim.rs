//! Leases and claims.
//!
//! A worker's lease is one document, valid before the moment `until`, by the server's clock. Claimable
//! operations have the field `o`: all ready ones, and those of dead workers, which the next claim marks
//! when it finds their expired lease. An expired lease stays `open` for two minutes, because a commit
//! that began before the expiry may end later; then it is closed. Not here: the fence of a commit
//! (`commit_steps.rs`).

use crate::commit::{is_worth_another_try, jittered};
use crate::commit_steps::{StepResult, update};
use crate::error::MongoError;
use crate::read::union;
use crate::rows::{self, Collection, READY, RUNNING, now, uuid};
use crate::store::MongoStore;
use crate::transaction::{CommitInspection, SendGate, TransactionResult};
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::{FindOptions, ReturnDocument};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use sutler_journal::{
    Fence, LeaseError, Operation, OperationId, Queue, Renewal, State, StoreError, WorkerId,
};
use uuid::Uuid;

/// Attempts of a claim when others took the operations it found.
const ATTEMPTS: usize = 4;
/// Maximum time from the expiry of a lease to the end of a commit that began under it, in microseconds:
/// longer than a transaction may last.
const LATE: i64 = 120_000_000;
/// Interval of the search for operations of a worker that died recently.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time for which an operation that an open transaction holds is skipped.
const LEAVE_FOR: Duration = Duration::from_secs(2);
/// Maximum number of dead workers in memory.
const DEAD_MAX: usize = 10_000;
/// Attempts of a release that other transactions interfere with.
const TRIES: usize = 20;

/// Memory of claims, locked during a claim: within a process claims run one after the other, so
/// that they do not race for the same operations.
#[derive(Default)]
pub(crate) struct ClaimMemory {
    /// Time of the last search for operations of dead workers.
    dead: HashMap<Uuid, Instant>,
    /// Operations that an open transaction holds, and when that was found: they are skipped for a while, so
    /// that they do not displace others.
    stuck: HashMap<Uuid, Instant>,
}

impl ClaimMemory {
    /// Whether it is time to search for operations of a dead worker.
    fn is_due(&mut self, worker: Uuid) -> bool {
        let last = self.dead.get(&worker);
        if last.is_some_and(|it| it.elapsed() < LOOK_EVERY) {
            return false;
        }
        if self.dead.len() >= DEAD_MAX {
            self.dead.clear();
        }
        self.dead.insert(worker, Instant::now());
        true
    }

    /// Operations that are skipped for now.
    fn stuck(&mut self) -> Vec<Bson> {
        self.stuck
            .retain(|_, found_at| found_at.elapsed() < LEAVE_FOR);
        self.stuck.keys().map(|it| uuid(*it)).collect()
    }
}

/// Result of one read: open leases, and operations that can be claimed.
struct ClaimView {
    lives: bool,
    dead: Vec<DeadLease>,
    claimable: Vec<Bsons>,
}

struct DeadLease {
    worker: Uuid,
    settled: bool,
}

impl MongoStore {
    pub(crate) async fn prolong(
        &self,
        worker: WorkerId,
        ttl: Duration,
    ) -> Result<Renewal, LeaseError> {
        let lives = doc! { "$gt": [{ "$ifNull": ["$until", i64::MAX] }, now()] };
        let until = doc! { "$add": [now(), rows::micros(ttl)] };
        let stages = vec![
            doc! { "$set": { "lives": lives } },
            doc! { "$set": {
                "until": { "$cond": ["$lives", until, "$until"] },
                "open": { "$ifNull": ["$open", true] },
                "lease": true,
            } },
        ];
        let leases = self
            .commands
            .database
            .collection::<Bsons>(Collection::Leases.name());
        let renewed = leases
            .find_one_and_update(doc! { "_id": uuid(worker.0) }, stages)
            .upsert(true)
            .return_document(ReturnDocument::After)
            .into_future();
        let renewed = self.commands.bounded(renewed).await;
        let renewed = renewed.map_err(StoreError::from)?;
        match renewed.as_ref().map(|it| it.get_bool("lives")) {
            Some(Ok(true)) => Ok(self.held(worker).await.map_err(StoreError::from)?),
            Some(Ok(false)) => Err(LeaseError::Lost),
            _ => Err(StoreError::from(MongoError::odd("a lease")).into()),
        }
    }

    async fn held(&self, worker: WorkerId) -> Result<Renewal, MongoError> {
        let filter = doc! { "w": uuid(worker.0), "s": RUNNING };
        let mut options = FindOptions::default();
        options.projection = Some(doc! { "x": 1, "f": 1 });
        let found = self
            .commands
            .find(Collection::Operations, filter, options)
            .await?;
        let mut renewal = Renewal::default();
        for row in &found {
            let id = OperationId(rows::read_uuid(row, "_id")?);
            self.claims.add(id, rows::read_fence(row)?, worker);
            renewal.held.push(id);
            if row.get_bool("x").is_ok_and(|it| it) {
                renewal.cancelled.push(id);
            }
        }
        Ok(renewal)
    }

    pub(crate) async fn hand_out(
        &self,
        worker: WorkerId,
        queues: &[(Queue, usize)],
    ) -> Result<Vec<Operation>, LeaseError> {
        let mut claim_memory = self.claim_memory.lock().await;
        let mut claimed: Vec<Operation> = Vec::new();
        let mut wanted: Vec<(Queue, usize)> = queues.to_vec();
        for _ in 0..ATTEMPTS {
            let view = self
                .read_claim_view(worker, &wanted, claim_memory.stuck())
                .await;
            let view = view.map_err(StoreError::from)?;
            if !view.lives {
                return Err(LeaseError::Lost);
            }
            let offered = self
                .make_expired_claimable(&view.dead, &mut claim_memory)
                .await;
            if offered.map_err(StoreError::from)? {
                continue;
            }
            let taken = self.take(worker, &view.claimable, &mut claim_memory).await;
            let taken = taken.map_err(StoreError::from)?;
            let all = taken.len() == view.claimable.len();
            for operation in &taken {
                for (queue, left) in &mut wanted {
                    *left -= usize::from(*queue == operation.row.queue && *left > 0);
                }
            }
            claimed.extend(taken);
            if all {
                break;
            }
        }
        Ok(claimed)
    }

    /// Reads leases and due operations in one round trip.
    async fn read_claim_view(
        &self,
        worker: WorkerId,
        wanted: &[(Queue, usize)],
        left: Vec<Bson>,
    ) -> Result<ClaimView, MongoError> {
        let mut pipeline = vec![
            doc! { "$match": { "open": true } },
            doc! { "$project": {
                "lives": { "$gt": ["$until", now()] },
                "late": { "$gt": ["$until", { "$subtract": [now(), LATE] }] },
            } },
        ];
        for (queue, limit) in wanted.iter().filter(|it| it.1 > 0) {
            let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
            let due = doc! { "$lte": ["$due", now()] };
            let mut fits = doc! { "q": queue.as_str(), "o": true, "$expr": due };
            if !left.is_empty() {
                fits.insert("_id", doc! { "$nin": &left });
            }
            let stages = vec![
                doc! { "$match": fits },
                doc! { "$sort": { "due": 1, "_id": 1 } },
                doc! { "$limit": limit },
            ];
            pipeline.push(union(Collection::Operations, stages));
        }
        let found = self
            .commands
            .aggregate(Collection::Leases, pipeline)
            .await?;
        parse_claim_view(worker, found)
    }

    /// Marks operations of dead workers as claimable; returns whether there were any.
    async fn make_expired_claimable(
        &self,
        dead: &[DeadLease],
        claim_memory: &mut ClaimMemory,
    ) -> Result<bool, MongoError> {
        let dead = dead.iter().filter(|it| claim_memory.is_due(it.worker));
        let dead: Vec<&DeadLease> = dead.collect();
        if dead.is_empty() {
            return Ok(false);
        }
        let workers: Vec<Bson> = dead.iter().map(|it| uuid(it.worker)).collect();
        let theirs = doc! { "w": { "$in": workers }, "s": RUNNING, "o": { "$exists": false } };
        let mut options = FindOptions::default();
        options.projection = Some(doc! { "_id": 1 });
        let found = self
            .commands
            .find(Collection::Operations, theirs.clone(), options)
            .await?;
        let mut offered = Vec::new();
        if !found.is_empty() {
            let offer = doc! { "$set": { "o": true }, "$inc": { "r": 1_i64 } };
            let steps = found.iter().map(|row| {
                let mut one = theirs.clone();
                one.insert("_id", row.get("_id"));
                update(Collection::Operations, one, offer.clone())
            });
            offered = self.commands.write_free(steps.collect()).await?;
        }
        // Only now: a crash between the two leaves a lease that is still open.
        let settled = dead.iter().filter(|it| it.settled);
        let settled: Vec<Bson> = settled.map(|it| uuid(it.worker)).collect();
        if !settled.is_empty() && offered.iter().all(Option::is_some) {
            let them = doc! { "_id": { "$in": settled } };
            let close = doc! { "$set": { "open": false } };
            let mut close = update(Collection::Leases, them, close);
            close.insert("multi", true);
            self.commands.write_each(vec![close]).await?;
        }
        Ok(offered
            .iter()
            .any(|it| matches!(it, Some(StepResult::Count(_)))))
    }

    /// Claims operations that are still as they were read.
    async fn take(
        &self,
        worker: WorkerId,
        view: &[Bsons],
        claim_memory: &mut ClaimMemory,
    ) -> Result<Vec<Operation>, MongoError> {
        if view.is_empty() {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        let mut operations = Vec::new();
        for row in view {
            let mut operation = rows::read_operation(row)?;
            let was_running = operation.row.state == State::Running;
            operation.row.state = State::Running;
            operation.row.fence = Fence(operation.row.fence.0 + 1);
            operation.row.takeovers += u32::from(was_running);
            let as_read = doc! { "_id": row.get("_id"), "r": row.get("r") };
            let change = doc! {
                "$set": { "s": RUNNING, "w": uuid(worker.0) },
                "$unset": { "o": 1 },
                "$inc": { "f": 1_i64, "r": 1_i64, "k": i64::from(was_running) },
            };
            steps.push(update(Collection::Operations, as_read, change));
            operations.push(operation);
        }
        let found = self.commands.write_free(steps).await?;
        for (operation, found) in operations.iter().zip(&found) {
            if found.is_none() {
                claim_memory
                    .stuck
                    .insert(operation.row.id.0, Instant::now());
            }
        }
        let is_taken = |it: &Option<StepResult>| matches!(it, Some(StepResult::Count(1..)));
        if !found.iter().all(is_taken) {
            operations = self.confirm_claims(worker, operations).await?;
        }
        for operation in &operations {
            let row = &operation.row;
            self.claims.add(row.id, row.fence, worker);
        }
        Ok(operations)
    }

    /// Those that the worker now holds. Others claimed the rest, or hold them in transactions.
    async fn confirm_claims(
        &self,
        worker: WorkerId,
        mut operations: Vec<Operation>,
    ) -> Result<Vec<Operation>, MongoError> {
        let ids: Vec<Bson> = operations.iter().map(|it| uuid(it.row.id.0)).collect();
        let mine = doc! { "_id": { "$in": ids }, "w": uuid(worker.0) };
        let mut options = FindOptions::default();
        options.projection = Some(doc! { "f": 1 });
        let found = self
            .commands
            .find(Collection::Operations, mine, options)
            .await?;
        let mut fences = HashMap::new();
        for row in &found {
            fences.insert(rows::read_uuid(row, "_id")?, rows::read_fence(row)?);
        }
        operations.retain(|it| fences.get(&it.row.id.0) == Some(&it.row.fence));
        Ok(operations)
    }

    pub(crate) async fn let_go(&self, worker: WorkerId) -> Result<(), MongoError> {
        let end = doc! { "$set": { "until": { "$min": ["$until", now()] } } };
        let back = doc! { "$set": {
            "s": READY, "due": now(), "o": true, "r": { "$add": ["$r", 1_i64] },
        } };
        let theirs = doc! { "w": uuid(worker.0), "s": RUNNING };
        let mut back = update(
            Collection::Operations,
            theirs,
            vec![back, doc! { "$unset": "w" }],
        );
        back.insert("multi", true);
        let lease = doc! { "_id": uuid(worker.0) };
        let steps = vec![update(Collection::Leases, lease, vec![end]), back];
        let mut pause = Duration::from_millis(2);
        for n in 1..=TRIES {
            let inspect = |_: &[StepResult]| CommitInspection::<()>::Commit(None);
            let gate = SendGate::default();
            match self.commands.transact(steps.clone(), &gate, inspect).await {
                TransactionResult::Committed | TransactionResult::Declined(()) => {
                    self.hints.give();
                    return Ok(());
                }
                TransactionResult::Failed(it) | TransactionResult::Unknown(it)
                    if n == TRIES || !is_worth_another_try(&it) =>
                {
                    return Err(it);
                }
                // A release can be repeated.
                TransactionResult::Failed(_) | TransactionResult::Unknown(_) => {}
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn parse_claim_view(worker: WorkerId, found: Vec<Bsons>) -> Result<ClaimView, MongoError> {
    let mut view = ClaimView {
        lives: false,
        dead: Vec::new(),
        claimable: Vec::new(),
    };
    for row in found {
        if row.contains_key("lane") {
            view.claimable.push(row);
            continue;
        }
        let id = rows::read_uuid(&row, "_id")?;
        let is = |name| row.get_bool(name).map_err(|_| MongoError::odd("a lease"));
        match (is("lives")?, is("late")?) {
            (true, _) => view.lives |= id == worker.0,
            (false, late) => view.dead.push(DeadLease {
                worker: id,
                settled: !late,
            }),
        }
    }
    Ok(view)
}
