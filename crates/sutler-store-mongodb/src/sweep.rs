//! Sweeps: ended unpinned operations, old commits of the feed, expired leases.

use crate::commit::{is_worth_another_try, jittered};
use crate::commit_steps::{StepResult, delete, update};
use crate::error::MongoError;
use crate::key_encoding;
use crate::logs;
use crate::read::options;
use crate::rows::{self, Collection, DONE};
use crate::store::MongoStore;
use crate::transaction::{CommitInspection, SendGate, TransactionResult};
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::Hint;
use std::time::Duration;
use sutler_journal::{OperationId, Outcome, Sweep};

/// Maximum operations deleted in one transaction.
const AT_ONCE: usize = 250;
/// Attempts of a batch that other transactions interfere with.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum leases deleted at a time.
const LEASES_MAX: i64 = 1000;

impl MongoStore {
    pub(crate) async fn throw_away(&self, sweep: &Sweep) -> Result<u64, MongoError> {
        match sweep {
            Sweep::Operations {
                lanes,
                outcome,
                finished_before,
                limit,
            } => {
                let filter = sweepable(lanes, *outcome, finished_before.0);
                self.sweep_operations(&filter, *limit).await
            }
            Sweep::Feed { before, limit } => {
                self.forget_leases(before.0).await?;
                self.trim(before.0, *limit).await
            }
        }
    }

    async fn sweep_operations(&self, filter: &Bsons, limit: usize) -> Result<u64, MongoError> {
        let mut swept = 0;
        while swept < limit {
            let wanted = AT_ONCE.min(limit - swept);
            let gone = self.sweep_some(filter, wanted).await?;
            swept += gone;
            if gone < wanted {
                break;
            }
        }
        Ok(swept as u64)
    }

    /// Deletes and counts a batch in one transaction.
    async fn sweep_some(&self, filter: &Bsons, wanted: usize) -> Result<usize, MongoError> {
        for n in 1..=TRIES {
            let mut options = options(doc! { "end": 1, "_id": 1 }, wanted);
            options.projection = Some(doc! { "_id": 1 });
            options.hint = Some(Hint::Name("sweepable".to_owned()));
            let found = self
                .commands
                .find(Collection::Operations, filter.clone(), options)
                .await?;
            if found.is_empty() {
                return Ok(0);
            }
            let steps = removal(&found)?;
            let count = found.len();
            let inspect = |results: &[StepResult]| {
                let mine = results.iter().take(count + 1);
                match mine.clone().all(|it| *it == StepResult::Count(1)) {
                    true => CommitInspection::Commit(None),
                    false => CommitInspection::Decline(()),
                }
            };
            match self
                .commands
                .transact(steps, &SendGate::default(), inspect)
                .await
            {
                TransactionResult::Committed => return Ok(count),
                TransactionResult::Declined(()) => {}
                TransactionResult::Failed(trouble)
                    if n < TRIES && is_worth_another_try(&trouble) => {}
                TransactionResult::Failed(trouble) | TransactionResult::Unknown(trouble) => {
                    return Err(trouble);
                }
            }
            tokio::time::sleep(jittered(PAUSE)).await;
        }
        Ok(0)
    }

    /// Deletes leases that expired before a moment and cover no operation. A lease for which an operation
    /// appeared late is opened again, so that the next claim searches for its operations.
    async fn forget_leases(&self, before: i64) -> Result<(), MongoError> {
        let theirs = doc! { "$lookup": {
            "from": Collection::Operations.name(),
            "localField": "_id",
            "foreignField": "w",
            "pipeline": [{ "$limit": 1 }, { "$project": { "_id": 1 } }],
            "as": "held",
        } };
        let pipeline = vec![
            doc! { "$match": { "open": false, "until": { "$lt": before } } },
            doc! { "$limit": LEASES_MAX },
            theirs,
            doc! { "$project": { "covers": { "$ne": ["$held", []] } } },
        ];
        let found = self
            .commands
            .aggregate(Collection::Leases, pipeline)
            .await?;
        let those = |covers: bool| {
            let fits = found
                .iter()
                .filter(|it| it.get_bool("covers").is_ok_and(|it| it == covers));
            let ids: Vec<Bson> = fits.filter_map(|it| it.get("_id").cloned()).collect();
            (!ids.is_empty()).then(|| doc! { "_id": { "$in": ids }, "open": false })
        };
        let open = doc! { "$set": { "open": true } };
        let open = those(true).map(|it| update(Collection::Leases, it, open));
        let over = those(false).map(|it| delete(Collection::Leases, it));
        let mut steps: Vec<Bsons> = open.into_iter().chain(over).collect();
        if steps.is_empty() {
            return Ok(());
        }
        for step in &mut steps {
            step.insert("multi", true);
        }
        self.commands.write_each(steps).await.map(drop)
    }
}

/// Filter of a sweep.
fn sweepable(lanes: &[u8], outcome: Option<Outcome>, finished_before: i64) -> Bsons {
    let mut filter = doc! { "s": DONE, "p": false, "end": { "$lt": finished_before } };
    if !lanes.is_empty() {
        let first = key_encoding::text(lanes);
        let end = key_encoding::above(&first);
        filter.insert("lane", doc! { "$gte": first, "$lt": end });
    }
    let outcomes: &[i32] = match outcome {
        None => return filter,
        Some(Outcome::Succeeded) => &[0],
        // A cancelled one counts as failed.
        Some(Outcome::Failed) => &[1, 2],
        Some(Outcome::Cancelled) => &[2],
    };
    filter.insert("out", doc! { "$in": outcomes });
    filter
}

/// Steps that delete operations. First those that must match: the count, and each operation. Then their logs.
fn removal(found: &[Bsons]) -> Result<Vec<Bsons>, MongoError> {
    let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let counted = doc! { "$inc": { "n": count } };
    let mut steps = vec![update(Collection::Meta, doc! { "_id": "swept" }, counted)];
    for row in found {
        let as_found = doc! { "_id": row.get("_id"), "s": DONE, "p": false };
        steps.push(delete(Collection::Operations, as_found));
    }
    for row in found {
        let id = OperationId(rows::read_uuid(row, "_id")?);
        steps.extend(logs::removal(id));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::sweepable;
    use mongodb::bson::doc;
    use sutler_journal::Outcome;

    #[test]
    fn a_cancelled_one_counts_as_failed() {
        for (outcome, codes) in [
            (Outcome::Succeeded, doc! { "$in": [0] }),
            (Outcome::Failed, doc! { "$in": [1, 2] }),
            (Outcome::Cancelled, doc! { "$in": [2] }),
        ] {
            let filter = sweepable(b"", Some(outcome), 7);
            assert_eq!(filter.get_document("out").ok(), Some(&codes));
        }
        assert!(!sweepable(b"", None, 7).contains_key("out"));
        assert!(sweepable(b"x", None, 7).contains_key("lane"));
    }
}
