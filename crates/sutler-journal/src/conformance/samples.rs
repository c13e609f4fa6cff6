//! Sample records, and small steps of tests against a store: used by the suite and by the tests of every store.
//!
//! A step that does something panics when the store does not do it. Not here: any behaviour, and steps that only
//! the suite needs (`fixture.rs`).

use super::StalledCommit;
use crate::commit::{Commit, CommitError, NewOperation, Start};
use crate::document::Term;
use crate::key::{Key, Kind, Realm};
use crate::operation::{OperationId, Queue, WorkerId};
use crate::store::{Store, StoreError};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Kind of most documents and lanes.
pub const THING: Kind = Kind::new("thing");
/// Queue of all operations, unless a test is about queues.
pub const WORK: Queue = Queue::named("work");

/// Realm of all records, unless a test is about realms.
pub fn realm() -> Realm {
    Realm::new("suite").expect("a realm")
}

/// The key of a thing.
pub fn key(id: &str) -> Key {
    Key::new(&realm(), THING, &[id]).expect("a key")
}

/// Content.
pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A commit that creates a document with this number of terms, at most eight.
pub fn insert_with_terms(id: &str, count: usize) -> Commit {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let terms = names.iter().take(count).map(|name| Term::new(name, id));
    Commit::new().insert(key(id), terms.collect(), bytes("body"))
}

/// A new operation in a lane.
pub fn new_operation(lane: &str, start: Start) -> NewOperation {
    NewOperation {
        id: OperationId::fresh(),
        lane: key(lane),
        verb: "provision",
        queue: WORK,
        start,
        detail: bytes("detail"),
        request: bytes("request"),
    }
}

/// A new worker with a lease of this length.
pub async fn worker(store: &dyn Store, ttl: Duration) -> WorkerId {
    let worker = WorkerId::fresh();
    store.renew(worker, ttl).await.expect("a lease");
    worker
}

/// Waits until a condition holds, and returns how long that took.
///
/// # Panics
/// If it does not hold in time.
pub async fn until<F: Future<Output = bool>>(
    what: &str,
    within: Duration,
    mut holds: impl FnMut() -> F,
) -> Duration {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < within, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

/// Lets time pass on a server, whose clock cannot be moved.
pub async fn wait_until_passed(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Begins a commit that a proxy holds back: `arrived` reports that it was sent, `go` lets it pass.
pub async fn stall_at_proxy(
    store: Arc<dyn Store>,
    commit: Commit,
    arrived: oneshot::Receiver<()>,
    go: oneshot::Sender<()>,
) -> Box<dyn StalledCommit> {
    let commit = tokio::spawn(async move { store.commit(&commit).await });
    arrived.await.expect("the commit is sent");
    Box::new(CommitAtProxy { commit, go })
}

struct CommitAtProxy {
    commit: JoinHandle<Result<(), CommitError>>,
    go: oneshot::Sender<()>,
}

#[async_trait]
impl StalledCommit for CommitAtProxy {
    async fn finish(self: Box<Self>) -> Result<(), CommitError> {
        let _ = self.go.send(());
        let ended = self.commit.await;
        ended.unwrap_or_else(|_| Err(CommitError::Unknown(StoreError::new("it panicked"))))
    }
}
