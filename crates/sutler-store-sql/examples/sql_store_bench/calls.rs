//! The measured calls. Not here: their number and schedule (`main.rs`, `sweep.rs`).

use crate::BenchError;
use bytes::Bytes;
use sutler_journal::{
    Commit, Fence, Key, Kind, NewOperation, Next, OperationId, Outcome, Queue, Realm, Start, Store,
    Term, Version, WorkerId,
};
use uuid::Uuid;

const KIND: Kind = Kind::new("instance");
const BODY: usize = 400;
/// Number of operations to poll.
pub(crate) const POLLED: u64 = 10_000;

/// An accepted operation and its lease.
pub(crate) struct AcceptedOperation {
    pub(crate) key: Key,
    pub(crate) id: OperationId,
    version: Version,
}

fn key(id: &str) -> Result<Key, BenchError> {
    Ok(Key::new(&Realm::new("broker")?, KIND, &[id])?)
}

fn operation(id: OperationId, lane: Key, start: Start) -> NewOperation {
    NewOperation {
        id,
        lane,
        verb: "provision",
        queue: Queue::named("broker"),
        start,
        detail: Bytes::from_static(&[7; 100]),
        request: Bytes::from_static(&[7; BODY]),
    }
}

fn terms(id: OperationId) -> Vec<Term> {
    vec![
        Term::new("service", "service-1"),
        Term::new("plan", "plan-1"),
        Term::new("created", id.0.as_bytes().to_vec()),
    ]
}

/// A commit of a new document and its operation.
pub(crate) async fn accept(
    store: &dyn Store,
    worker: WorkerId,
) -> Result<AcceptedOperation, BenchError> {
    let id = OperationId::fresh();
    let key = key(&Uuid::new_v4().to_string())?;
    let commit = Commit::new()
        .insert(key.clone(), terms(id), Bytes::from_static(&[7; BODY]))
        .start(operation(id, key.clone(), Start::Claimed(worker)));
    store.commit(&commit).await?;
    let version = Version(commit.id());
    Ok(AcceptedOperation { key, id, version })
}

/// The commit of an operation's result.
pub(crate) async fn end(store: &dyn Store, accepted: AcceptedOperation) -> Result<(), BenchError> {
    let AcceptedOperation { key, id, version } = accepted;
    let body = Bytes::from_static(&[8; BODY]);
    let detail = Some(Bytes::from_static(&[8; 100]));
    let result = Commit::new()
        .replace(key, version, terms(id), body)
        .advance(id, Next::Done(Outcome::Succeeded), detail, None)
        .fenced(id, Fence(1));
    Ok(store.commit(&result).await?)
}

/// Polls the n-th of the operations that `prepare` created.
pub(crate) async fn poll(store: &dyn Store, n: u64) -> Result<(), BenchError> {
    let (lane, id) = polled(n % POLLED)?;
    let found = store.poll(&lane, id).await?;
    found.ok_or("nothing to poll: run `prepare` first")?;
    Ok(())
}

fn polled(n: u64) -> Result<(Key, OperationId), BenchError> {
    let id = Uuid::from_u128(u128::from(n) + (1 << 100));
    Ok((key("polled")?, OperationId(id)))
}

/// Creates the operations to poll.
pub(crate) async fn prepare(store: &dyn Store) -> Result<(), BenchError> {
    for first in (0..POLLED).step_by(100) {
        let mut commit = Commit::new();
        for n in first..first + 100 {
            let (lane, id) = polled(n)?;
            commit = commit.start(operation(id, lane, Start::Waiting));
        }
        store.commit(&commit).await?;
    }
    Ok(())
}
