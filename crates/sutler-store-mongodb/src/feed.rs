//! The feed: order of the commits.
//!
//! A commit writes its record without a position in the feed: a counter would make all commits conflict.
//! The next read of the feed assigns positions to the records that have none, in the order of the
//! cluster time of their writes. A visible record is committed, and one that was acknowledged before
//! another began is visible with it and has an earlier time: so positions are in commit order, and
//! since only visible records get one, nothing appears before a cursor later.

use crate::commit::jittered;
use crate::commit_steps::{StepResult, update};
use crate::error::MongoError;
use crate::read::union;
use crate::rows::{self, Collection, int};
use crate::store::MongoStore;
use crate::transaction::{CommitInspection, SendGate, TransactionResult};
use mongodb::bson::{Bson, Document as Bsons, doc};
use std::time::Duration;
use sutler_journal::{Change, Changes, CommitId, Cursor, StoreError};

/// Maximum records that get positions at once.
const POSITIONS_MAX: i64 = 500;
/// Attempts to assign positions, or to trim, without progress.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Minimum commits per read: some have no changes.
const COMMITS_MIN: usize = 100;

/// Cluster time: seconds, and a number within the second.
type ClusterTime = (u32, u32);

/// Result of one read of the feed.
struct FeedWindow {
    last: i64,
    trimmed: i64,
    /// The first records without a position, in the order of their future positions.
    new: Vec<Bsons>,
    /// Time of the last record without a position.
    newest: Option<ClusterTime>,
    /// Records after the cursor, in order.
    placed: Vec<Bsons>,
}

impl MongoStore {
    pub(crate) async fn feed(&self, after: &Cursor, limit: usize) -> Result<Changes, StoreError> {
        let requested = number(after)?;
        let mut from = requested;
        let mut gap = false;
        loop {
            let page_size = limit.max(COMMITS_MIN);
            let window = self.placed_after(from, page_size, &lanes()).await?;
            gap |= requested < window.trimmed;
            let all = window.placed.len() < page_size;
            let (changes, reached) = whole_commits(&window, from.max(window.trimmed), limit)?;
            if !changes.is_empty() || all {
                return Ok(Changes {
                    changes,
                    next: Cursor::of_number(reached.unsigned_abs()),
                    gap,
                });
            }
            from = reached;
        }
    }

    /// Records after a position: as many as requested, or all that were committed before the call. Later
    /// commits are not waited for; otherwise this would not end while others commit. `more`: stages that add to the
    /// records.
    async fn placed_after(
        &self,
        from: i64,
        limit: usize,
        more: &[Bsons],
    ) -> Result<FeedWindow, MongoError> {
        let mut window = self.read_window(from, limit, more).await?;
        let newest = window.newest;
        let mut pause = PAUSE;
        let mut failed = 0;
        while failed < TRIES {
            let oldest = window.new.first().map(time);
            if window.placed.len() >= limit || oldest.is_none_or(|it| newest < Some(it)) {
                return Ok(window);
            }
            let _alone = match self.numbering.try_lock() {
                Ok(alone) => alone,
                Err(_) => {
                    let alone = self.numbering.lock().await;
                    // Another call may have assigned them meanwhile.
                    window = self.read_window(from, limit, more).await?;
                    alone
                }
            };
            let last = window.last;
            let failing = !window.new.is_empty() && !self.assign_positions(&window).await?;
            if failing {
                tokio::time::sleep(jittered(pause)).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            window = self.read_window(from, limit, more).await?;
            // A faster replica assigned the same positions.
            failed += usize::from(failing && window.last == last);
        }
        Err(MongoError::Refused {
            code: 112,
            name: "others give places in the feed all the time".to_owned(),
            transient: true,
        })
    }

    /// Reads the feed from one snapshot.
    async fn read_window(
        &self,
        from: i64,
        limit: usize,
        more: &[Bsons],
    ) -> Result<FeedWindow, MongoError> {
        let new = vec![
            doc! { "$match": { "new": true } },
            doc! { "$sort": { "ts": 1 } },
            doc! { "$limit": POSITIONS_MAX },
        ];
        let newest = vec![
            doc! { "$match": { "new": true } },
            doc! { "$sort": { "ts": -1 } },
            doc! { "$limit": 1_i64 },
            doc! { "$project": { "_id": 0, "newest": "$ts" } },
        ];
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut placed = vec![
            doc! { "$match": { "n": { "$gt": from } } },
            doc! { "$sort": { "n": 1 } },
            doc! { "$limit": limit },
        ];
        placed.extend_from_slice(more);
        let pipeline = vec![
            doc! { "$match": { "_id": "feed" } },
            union(Collection::Commits, new),
            union(Collection::Commits, newest),
            union(Collection::Commits, placed),
        ];
        parse_window(self.commands.snapshot(Collection::Meta, pipeline).await?)
    }

    /// Assigns positions to the records read; returns whether this call did so.
    async fn assign_positions(&self, window: &FeedWindow) -> Result<bool, MongoError> {
        let count = i64::try_from(window.new.len()).unwrap_or(POSITIONS_MAX);
        let as_read = doc! { "_id": "feed", "last": window.last };
        let moved = doc! { "$set": { "last": window.last + count } };
        let mut steps = vec![update(Collection::Meta, as_read, moved)];
        for (n, record) in (window.last + 1..).zip(&window.new) {
            let without = doc! { "_id": record.get("_id"), "new": true };
            let place = doc! { "$set": { "n": n }, "$unset": { "new": 1 } };
            steps.push(update(Collection::Commits, without, place));
        }
        let inspect =
            |found: &[StepResult]| match found.iter().all(|it| *it == StepResult::Count(1)) {
                true => CommitInspection::Commit(None),
                false => CommitInspection::Decline(()),
            };
        match self
            .commands
            .transact(steps, &SendGate::default(), inspect)
            .await
        {
            TransactionResult::Committed => Ok(true),
            TransactionResult::Declined(()) => Ok(false),
            TransactionResult::Failed(MongoError::Refused {
                transient: true, ..
            }) => Ok(false),
            TransactionResult::Failed(trouble) | TransactionResult::Unknown(trouble) => {
                Err(trouble)
            }
        }
    }

    /// Trims commits from before a moment, oldest first; returns how many.
    pub(crate) async fn trim(&self, before: i64, limit: usize) -> Result<u64, MongoError> {
        let mut pause = PAUSE;
        for _ in 0..TRIES {
            let window = self.placed_after(0, limit, &[]).await?;
            let old = |it: &&Bsons| int(it, "at").is_ok_and(|at| at < before);
            let old: Vec<&Bsons> = window.placed.iter().take_while(old).take(limit).collect();
            let Some(last) = old.last() else {
                return Ok(0);
            };
            let last = int(last, "n")?;
            let as_read = doc! { "_id": "feed", "trimmed": window.trimmed };
            let moved = doc! { "$set": { "trimmed": last } };
            let gone = doc! { "n": { "$gt": window.trimmed, "$lte": last } };
            let mut forget = crate::commit_steps::delete(Collection::Commits, gone);
            forget.insert("multi", true);
            let steps = vec![update(Collection::Meta, as_read, moved), forget];
            let inspect = |found: &[StepResult]| match found.first() {
                Some(StepResult::Count(1)) => CommitInspection::Commit(None),
                _ => CommitInspection::Decline(()),
            };
            match self
                .commands
                .transact(steps, &SendGate::default(), inspect)
                .await
            {
                TransactionResult::Committed => return Ok(old.len() as u64),
                TransactionResult::Declined(())
                | TransactionResult::Failed(MongoError::Refused {
                    transient: true, ..
                }) => {}
                TransactionResult::Failed(trouble) | TransactionResult::Unknown(trouble) => {
                    return Err(trouble);
                }
            }
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Ok(0)
    }
}

fn parse_window(found: Vec<Bsons>) -> Result<FeedWindow, MongoError> {
    let mut window = FeedWindow {
        last: 0,
        trimmed: 0,
        new: Vec::new(),
        newest: None,
        placed: Vec::new(),
    };
    for row in found {
        if row.contains_key("trimmed") {
            window.last = int(&row, "last")?;
            window.trimmed = int(&row, "trimmed")?;
        } else if let Some(Bson::Timestamp(it)) = row.get("newest") {
            window.newest = Some((it.time, it.increment));
        } else if row.contains_key("n") {
            window.placed.push(row);
        } else {
            window.new.push(row);
        }
    }
    window.new.sort_by_key(time);
    window.placed.sort_by_key(|row| int(row, "n").unwrap_or(0));
    Ok(window)
}

/// A stage that adds the lanes of the operations that a record names: a commit does not know those that it advances.
fn lanes() -> [Bsons; 1] {
    [doc! { "$lookup": {
        "from": Collection::Operations.name(),
        "localField": "about.o",
        "foreignField": "_id",
        "pipeline": [{ "$project": { "lane": 1 } }],
        "as": "lanes",
    } }]
}

/// Time of a record.
fn time(row: &Bsons) -> ClusterTime {
    match row.get("ts") {
        Some(Bson::Timestamp(it)) => (it.time, it.increment),
        _ => (0, 0),
    }
}

/// Whole commits up to `limit` changes, and the position reached; at least one with changes.
fn whole_commits(
    window: &FeedWindow,
    from: i64,
    limit: usize,
) -> Result<(Vec<Change>, i64), MongoError> {
    let odd = || MongoError::odd("a record of the feed");
    let mut changes = Vec::new();
    let mut reached = from;
    for row in &window.placed {
        let about = row.get_array("about").map_err(|_| odd())?;
        if !changes.is_empty() && changes.len() + about.len() > limit {
            break;
        }
        let commit = CommitId(rows::read_uuid(row, "_id")?);
        let lanes = rows::read_lanes(row)?;
        for subject in about {
            let subject = rows::read_subject(subject.as_document().ok_or_else(odd)?)?;
            let lane = subject.operation().and_then(|id| lanes.get(&id).cloned());
            changes.push(Change {
                commit,
                subject,
                lane,
            });
        }
        reached = int(row, "n")?;
    }
    Ok((changes, reached))
}

fn number(cursor: &Cursor) -> Result<i64, StoreError> {
    let foreign = "the cursor is none of this store's: begin again without one";
    let number = cursor
        .number()
        .and_then(|number| i64::try_from(number).ok());
    number.ok_or_else(|| StoreError::new(foreign))
}

#[cfg(test)]
mod tests {
    use super::{FeedWindow, number, whole_commits};
    use crate::rows::uuid;
    use mongodb::bson::doc;
    use sutler_journal::Cursor;
    use uuid::Uuid;

    fn window(sizes: &[usize]) -> FeedWindow {
        let row = |(n, size): (i64, &usize)| {
            let about = vec![doc! { "o": uuid(Uuid::nil()) }; *size];
            doc! { "_id": uuid(Uuid::nil()), "n": n, "about": about }
        };
        FeedWindow {
            last: 0,
            trimmed: 0,
            new: Vec::new(),
            newest: None,
            placed: (1..).zip(sizes).map(row).collect(),
        }
    }

    #[test]
    fn commits_are_whole_and_at_least_one() {
        for (sizes, limit, count, reached) in [
            (vec![100, 1], 10, 100, 1),
            (vec![3, 3, 3], 6, 6, 2),
            (vec![0, 0, 5], 1, 5, 3),
            (vec![], 5, 0, 0),
        ] {
            let (changes, at) = whole_commits(&window(&sizes), 0, limit).expect("commits");
            assert_eq!((changes.len(), at), (count, reached), "{sizes:?}");
        }
    }

    #[test]
    fn cursors_come_back_and_others_do_not() {
        for place in [0, 1, 255, 256, i64::MAX] {
            let cursor = Cursor::of_number(place.unsigned_abs());
            assert_eq!(number(&cursor).ok(), Some(place));
        }
        assert!(number(&Cursor(vec![1, 2])).is_err());
        assert!(number(&Cursor(vec![0xff; 8])).is_err());
    }
}
