//! Fixture of the suite: a store, and short functions for calls of it.
//!
//! Functions that change the store panic if it refuses; `stale` and `refused` panic if it does not.
//! Not here: any behaviour.

use super::Candidate;
pub(super) use super::samples::{THING, WORK, bytes, key, new_operation, realm};
use crate::clock::StoreTime;
use crate::commit::{Commit, CommitError, CommitId, Due, Next, StaleItem, Start, Write};
use crate::document::{Document, Term, Version};
use crate::key::Key;
use crate::operation::{Fence, Operation, OperationId, OperationRow, Outcome, State, WorkerId};
use crate::query::{
    Change, Cursor, List, LogChunk, OperationFilter, OperationList, Page, Position, Stats,
};
use crate::store::{LeaseError, Store};
use std::sync::Arc;
use std::time::Duration;

/// A lease that is meant to expire. Servers have coarse clocks and may be slow.
pub(super) const BRIEF: Duration = Duration::from_secs(4);
/// Longer than [`BRIEF`] by more than the error of any clock.
pub(super) const AFTER_BRIEF: Duration = Duration::from_secs(6);
/// A lease that does not expire within a test.
pub(super) const LASTING: Duration = Duration::from_secs(600);
/// A duration that no test reaches.
pub(super) const NEVER: Duration = Duration::from_secs(86_400);

/// Prefix of all keys of kind [`THING`].
pub(super) fn things() -> Vec<u8> {
    Key::prefix(&realm(), THING, &[]).expect("a prefix")
}

/// A commit that creates a document without terms.
pub(super) fn insert(id: &str, body: &str) -> Commit {
    Commit::new().insert(key(id), Vec::new(), bytes(body))
}

/// A commit that creates a document with one term.
pub(super) fn insert_with(id: &str, name: &'static str, value: impl Into<Vec<u8>>) -> Commit {
    Commit::new().insert(key(id), vec![Term::new(name, value)], bytes(id))
}

/// A commit that advances an operation without detail or progress.
pub(super) fn advance(operation: OperationId, next: Next) -> Commit {
    Commit::new().advance(operation, next, None, None)
}

/// A commit that ends an operation.
pub(super) fn finish(operation: OperationId, outcome: Outcome) -> Commit {
    advance(operation, Next::Done(outcome))
}

/// A commit of one write.
pub(super) fn only(write: Write) -> Commit {
    Commit::new().write(write)
}

/// The ids in the keys of documents.
pub(super) fn ids(documents: &[Document]) -> Vec<String> {
    let id = |document: &Document| document.key.id(0).to_owned();
    documents.iter().map(id).collect()
}

/// All readable documents and operations.
#[derive(Debug, PartialEq)]
pub(super) struct Snapshot {
    documents: Vec<Document>,
    operations: Vec<Operation>,
    stats: Stats,
    changes: Vec<Change>,
}

/// A store and functions for it.
#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) store: Arc<dyn Store>,
}

impl Fixture {
    pub(super) async fn of(candidate: &dyn Candidate) -> Self {
        let store = candidate.store().await;
        Self { store }
    }

    pub(super) async fn commit(&self, commit: Commit) -> CommitId {
        match self.store.commit(&commit).await {
            Ok(()) => commit.id(),
            Err(error) => panic!("{error} ({error:?}): {commit:?}"),
        }
    }

    /// The item that made this commit stale.
    pub(super) async fn stale(&self, commit: Commit) -> StaleItem {
        match self.store.commit(&commit).await {
            Err(CommitError::Stale(which)) => which,
            other => panic!("must be stale, is {other:?}: {commit:?}"),
        }
    }

    /// Tries a commit that every store refuses.
    pub(super) async fn refused(&self, commit: Commit) {
        match self.store.commit(&commit).await {
            Err(CommitError::NotWritten(_)) => {}
            other => panic!("must not be written, is {other:?}"),
        }
    }

    pub(super) async fn get(&self, id: &str) -> Option<Document> {
        self.store.get(&key(id)).await.expect("a read")
    }

    pub(super) async fn version(&self, id: &str) -> Version {
        self.get(id).await.expect("the document").version
    }

    pub(super) async fn operation(&self, id: OperationId) -> Operation {
        let found = self.store.operation(id).await.expect("a read");
        found.expect("the operation")
    }

    pub(super) async fn row(&self, id: OperationId) -> OperationRow {
        self.operation(id).await.row
    }

    pub(super) async fn state(&self, id: OperationId) -> State {
        self.row(id).await.state
    }

    /// Starts an operation in its own lane.
    pub(super) async fn start(&self, start: Start) -> OperationId {
        let new = new_operation("lane", start);
        let id = new.id;
        self.commit(Commit::new().start(new)).await;
        id
    }

    pub(super) async fn start_ready(&self) -> OperationId {
        self.start(Start::Ready(Due::Now)).await
    }

    /// A worker with a lease.
    pub(super) async fn worker(&self, ttl: Duration) -> WorkerId {
        let worker = WorkerId::fresh();
        self.store.renew(worker, ttl).await.expect("a lease");
        worker
    }

    /// Claims from the queue [`WORK`].
    pub(super) async fn claim(&self, worker: WorkerId, limit: usize) -> Vec<Operation> {
        let claimed = self.store.claim(worker, &[(WORK, limit)]).await;
        claimed.expect("a claim")
    }

    /// Claims from the queue [`WORK`]; returns ids only.
    pub(super) async fn claim_ids(&self, worker: WorkerId, limit: usize) -> Vec<OperationId> {
        let claimed = self.claim(worker, limit).await;
        claimed.iter().map(|operation| operation.row.id).collect()
    }

    /// A running operation under a new worker's lease.
    pub(super) async fn running(&self, ttl: Duration) -> (WorkerId, OperationId, Fence) {
        let worker = self.worker(ttl).await;
        let id = self.start(Start::Claimed(worker)).await;
        (worker, id, self.row(id).await.fence)
    }

    pub(super) async fn must_be_lost(&self, worker: WorkerId) {
        match self.store.renew(worker, LASTING).await {
            Err(LeaseError::Lost) => {}
            other => panic!("the lease ran out, yet the renewal says {other:?}"),
        }
        match self.store.claim(worker, &[(WORK, 100)]).await {
            Err(LeaseError::Lost) => {}
            other => panic!("the lease ran out, yet the claim says {other:?}"),
        }
    }

    pub(super) async fn page(&self, list: &List, after: Option<&Position>, limit: usize) -> Page {
        self.store.list(list, after, limit).await.expect("a page")
    }

    /// A whole list, read in pages.
    pub(super) async fn list_all(&self, list: &List, limit: usize) -> Vec<Document> {
        let mut documents = Vec::new();
        let mut after = None;
        loop {
            let page = self.page(list, after.as_ref(), limit).await;
            assert!(page.documents.len() <= limit, "a page over its limit");
            documents.extend(page.documents);
            let Some(next) = page.next else {
                return documents;
            };
            let place = |position: &Position| (position.value.clone(), position.key.clone());
            let onward = after
                .as_ref()
                .is_none_or(|after| place(&next) > place(after));
            assert!(onward, "the list goes back to {next:?}");
            after = Some(next);
        }
    }

    pub(super) async fn operations(&self, filter: OperationFilter) -> Vec<OperationId> {
        let list = OperationList {
            filter,
            before: None,
            limit: 1000,
        };
        let rows = self.store.operations(&list).await.expect("a list");
        rows.into_iter().map(|row| row.id).collect()
    }

    pub(super) async fn stats(&self) -> Stats {
        let stats = self.store.stats().await.expect("counts");
        assert_eq!(
            stats.accepted,
            stats.live + stats.terminal + stats.cleaned,
            "accepted = live + terminal + cleaned"
        );
        stats
    }

    /// The feed from a cursor to its end, without a gap.
    pub(super) async fn feed(&self, from: &Cursor) -> (Vec<Change>, Cursor) {
        let mut all = Vec::new();
        let mut cursor = from.clone();
        loop {
            let part = self.store.changes(&cursor, 50).await.expect("changes");
            assert!(!part.gap, "a gap though nothing was trimmed");
            assert!(part.next >= cursor, "the cursor went back");
            if part.changes.is_empty() {
                return (all, part.next);
            }
            assert!(part.next > cursor, "the cursor stands still");
            cursor = part.next;
            all.extend(part.changes);
        }
    }

    pub(super) async fn log(&self, id: OperationId) -> Vec<LogChunk> {
        let chunks = self.store.read_log(id, 0, 10_000).await;
        chunks.expect("a log")
    }

    pub(super) async fn now(&self) -> StoreTime {
        self.store.now().await.expect("the time")
    }

    /// Reads all documents and operations.
    pub(super) async fn snapshot(&self) -> Snapshot {
        let mut operations = Vec::new();
        for id in self.operations(OperationFilter::All).await {
            operations.push(self.operation(id).await);
        }
        Snapshot {
            documents: self.list_all(&List::Prefix(Vec::new()), 100).await,
            operations,
            stats: self.stats().await,
            changes: self.feed(&Cursor::default()).await.0,
        }
    }
}

/// Pseudo-random numbers that are the same in every run.
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        // SplitMix64: a constant step through all 64-bit numbers, then mixed twice.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((n ^ (n >> 31)) % sides.max(1) as u64) as usize
    }

    /// One of these; `None` if the slice is empty.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.roll(from.len()))
    }
}
