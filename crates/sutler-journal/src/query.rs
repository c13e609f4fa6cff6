//! Queries of a store other than single reads, and their results.

use crate::clock::StoreTime;
use crate::commit::CommitId;
use crate::document::Document;
use crate::key::{Key, Kind, Realm};
use crate::operation::{OperationId, OperationRow, Outcome, Queue, State};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// Selects and orders documents. Every list is paged by the last position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// All whose key begins with these bytes, by key; `Key::prefix` makes them. Empty: everything.
    Prefix(Vec<u8>),
    /// All of a kind in a realm with a term's value in `from..=to`, by value, then key.
    Term {
        /// Realm.
        realm: Realm,
        /// Kind of the documents.
        kind: Kind,
        /// Name of the term.
        name: &'static str,
        /// Smallest value.
        from: Vec<u8>,
        /// Largest value.
        to: Vec<u8>,
    },
}

impl List {
    /// All documents whose term has exactly this value.
    pub fn term(realm: &Realm, kind: Kind, name: &'static str, value: &[u8]) -> Self {
        Self::Term {
            realm: realm.clone(),
            kind,
            name,
            from: value.to_vec(),
            to: value.to_vec(),
        }
    }
}

/// End of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Value of the term at this position; empty when listing by prefix.
    pub value: Vec<u8>,
    /// Key at this position.
    pub key: Key,
}

/// Part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In order.
    pub documents: Vec<Document>,
    /// Start of the next page; `None` if nothing follows.
    pub next: Option<Position>,
}

/// Selects operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationFilter {
    /// All operations.
    All,
    /// Those of one lane.
    Lane(Key),
    /// Those not done.
    Unfinished,
}

/// Selects operations, newest first, before an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationList {
    /// Filter.
    pub filter: OperationFilter,
    /// Last id of the previous page.
    pub before: Option<OperationId>,
    /// Maximum number.
    pub limit: usize,
}

/// A position in the feed; ordered as bytes; the empty one is the beginning. Each is also a number, which can be shown
/// and stored in its place. It grows with the feed, in steps of any size, and means something in its own store only.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(pub Vec<u8>);

impl Cursor {
    /// The cursor with this number: big-endian, so that cursors are ordered as their numbers; 0 is the beginning.
    pub fn of_number(number: u64) -> Self {
        match number {
            0 => Self::default(),
            _ => Self(number.to_be_bytes().to_vec()),
        }
    }

    /// Its number; `None` if no store can have made it.
    pub fn number(&self) -> Option<u64> {
        if self.0.is_empty() {
            return Some(0);
        }
        self.0.as_slice().try_into().map(u64::from_be_bytes).ok()
    }
}

/// Subject of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A document was written.
    Put(Key),
    /// A document was removed.
    Removed(Key),
    /// An operation was added or changed.
    Operation(OperationId),
}

impl Subject {
    /// The operation, if it is one.
    pub fn operation(&self) -> Option<OperationId> {
        match self {
            Self::Operation(id) => Some(*id),
            Self::Put(_) | Self::Removed(_) => None,
        }
    }
}

/// One change of one commit. Claims, leases, logs and sweeps are not commits and not in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The commit that made it.
    pub commit: CommitId,
    /// Subject.
    pub subject: Subject,
    /// The lane of an operation, so that readers of some lanes need not read the operation. `None` for a document, for
    /// an operation that was swept since, and in some stores for a change that an older version made.
    pub lane: Option<Key>,
}

/// Part of the feed. A commit is never split over two responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// In commit order.
    pub changes: Vec<Change>,
    /// Cursor for the next read. Nothing ever appears before it later.
    pub next: Cursor,
    /// Changes after the requested cursor (or the beginning) were already trimmed: list
    /// again, then continue from `next`.
    pub gap: bool,
}

/// Result of a renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewal {
    /// Operations of the worker with a requested cancellation.
    pub cancelled: Vec<OperationId>,
    /// All operations that the worker holds. One that it does not know was claimed by a response that
    /// never arrived, and must be run or given up: no other worker may claim it.
    pub held: Vec<OperationId>,
}

/// Selects records to delete, at most `limit` at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Operations that are done, that no document points to, and that finished before a moment,
    /// with their logs.
    Operations {
        /// Only lanes whose key begins with these bytes; empty: all.
        lanes: Vec<u8>,
        /// Only with this outcome; `None`: any. A cancelled one counts as failed, so `Failed` includes
        /// both; `Cancelled` includes only cancelled ones.
        outcome: Option<Outcome>,
        /// Age counts from the end of an operation, not from its start.
        finished_before: StoreTime,
        /// Maximum number.
        limit: usize,
    },
    /// The feed with its commit ids, up to a moment.
    Feed {
        /// Older changes are deleted.
        before: StoreTime,
        /// Maximum number of commits.
        limit: usize,
    },
}

impl Sweep {
    /// Pause between two batches: three times as long as the last batch took, so that others get most of
    /// the store's time, and at most a second.
    pub fn rest_after(took: Duration) -> Duration {
        (took * 3).min(Duration::from_secs(1))
    }
}

/// Counts of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueStats {
    /// Queue.
    pub queue: Queue,
    /// Waiting for another operation.
    pub waiting: u64,
    /// Waiting for a worker or for their due time.
    pub ready: u64,
    /// Claimed by a worker.
    pub running: u64,
    /// Time of acceptance of the oldest unfinished one.
    pub oldest: StoreTime,
}

impl QueueStats {
    /// Counts unfinished operations by queue.
    pub fn count<'a>(unfinished: impl Iterator<Item = &'a OperationRow>) -> Vec<Self> {
        let mut queues: BTreeMap<&Queue, Self> = BTreeMap::new();
        for row in unfinished {
            let queue = queues.entry(&row.queue).or_insert_with(|| Self {
                queue: row.queue.clone(),
                waiting: 0,
                ready: 0,
                running: 0,
                oldest: row.accepted,
            });
            queue.oldest = queue.oldest.min(row.accepted);
            match row.state {
                State::Waiting => queue.waiting += 1,
                State::Ready => queue.ready += 1,
                State::Running => queue.running += 1,
                State::Done(_) => {}
            }
        }
        queues.into_values().collect()
    }
}

/// Counts. Always: accepted = live + terminal + cleaned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Operations ever accepted, including imported ones.
    pub accepted: u64,
    /// Not done.
    pub live: u64,
    /// Done and not swept.
    pub terminal: u64,
    /// Done and swept.
    pub cleaned: u64,
    /// Queues with unfinished operations.
    pub queues: Vec<QueueStats>,
}

/// Layout version of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Version found when the store was opened; 0 if it was empty.
    pub found: u64,
    /// Version since then: the newest one that this program knows.
    pub now: u64,
}

/// Facts about a store, for operators. All except the layout are read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreInfo {
    /// Layout version.
    pub layout: Layout,
    /// Number of documents.
    pub documents: u64,
    /// Workers that hold a lease.
    pub leases: u64,
    /// Workers with an expired lease, which is kept so that they get `Lost`.
    pub leases_over: u64,
    /// Running operations whose worker holds no lease: the next claim takes them over.
    pub abandoned: u64,
    /// Commits in the feed.
    pub feed: u64,
    /// Logs whose operation does not exist.
    pub stray_logs: u64,
    /// Size in bytes, where the store knows it.
    pub bytes: Option<u64>,
}

/// A part of a run's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// Number, from 0.
    pub number: u32,
    /// Sealed text.
    pub text: Bytes,
}
