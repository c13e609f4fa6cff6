//! Short functions for the tests of this crate.

use bytes::Bytes;
use std::future::Future;
use std::time::{Duration, Instant};
use sutler_journal::conformance::samples;
pub(crate) use sutler_journal::conformance::samples::{key, new_operation as operation};
use sutler_journal::{Commit, Due, Start, Store, Term, WorkerId};

pub(crate) const LASTING: Duration = Duration::from_secs(600);
/// Time limit of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A commit that creates a document with one term.
pub(crate) fn insert(id: &str) -> Commit {
    let terms = vec![Term::new("plan", "small")];
    Commit::new().insert(key(id), terms, Bytes::from_static(b"body"))
}

/// A commit that creates a ready operation, due now.
pub(crate) fn ready(lane: &str) -> Commit {
    Commit::new().start(operation(lane, Start::Ready(Due::Now)))
}

pub(crate) async fn worker(store: &dyn Store) -> WorkerId {
    samples::worker(store, LASTING).await
}

/// Repeats until it succeeds.
pub(crate) async fn until_ok<T, E: std::fmt::Debug, F>(what: &str, attempt: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let began = Instant::now();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{what}: {error:?}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The cut of the proxy for a cut of the suite.
pub(crate) fn point_of(cut: sutler_journal::conformance::Cut) -> sutler_servers::CutPoint {
    match cut {
        sutler_journal::conformance::Cut::BeforeCommit => sutler_servers::CutPoint::Before,
        sutler_journal::conformance::Cut::DuringCommit => sutler_servers::CutPoint::During,
        sutler_journal::conformance::Cut::AfterCommit => sutler_servers::CutPoint::After,
    }
}
