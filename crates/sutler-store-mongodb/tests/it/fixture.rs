//! Short functions for the tests of this crate.

use bytes::Bytes;
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, Key, Kind, NewOperation, OperationId, Queue, Realm, Start, Store, Term, WorkerId,
};

/// Queue of the operations.
pub(crate) const WORK: Queue = Queue::named("work");
pub(crate) const THING: Kind = Kind::new("thing");

pub(crate) fn realm() -> Realm {
    Realm::new("test").expect("a realm")
}

pub(crate) fn key(id: &str) -> Key {
    Key::new(&realm(), THING, &[id]).expect("a key")
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A commit that creates a document with this many terms.
pub(crate) fn insert(id: &str, terms: usize) -> Commit {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let terms = names.iter().take(terms).map(|name| Term::new(name, id));
    Commit::new().insert(key(id), terms.collect(), bytes("body"))
}

pub(crate) fn new_operation(lane: &str, start: Start) -> NewOperation {
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

/// A worker with a lease.
pub(crate) async fn worker(store: &dyn Store) -> WorkerId {
    let worker = WorkerId::fresh();
    let renewed = store.renew(worker, Duration::from_secs(60)).await;
    renewed.expect("a lease");
    worker
}

/// Polls until a condition holds; returns how long that took.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    mut is_so: impl FnMut() -> F,
) -> Duration {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(90), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}
