//! Samples of the suite, with the time limits of this store.

use std::time::Duration;
use sutler_journal::conformance::samples;
pub(crate) use sutler_journal::conformance::samples::{
    WORK, bytes, insert_with_terms as insert, key, new_operation, realm,
};
use sutler_journal::{Store, WorkerId};

/// A worker with a lease.
pub(crate) async fn worker(store: &dyn Store) -> WorkerId {
    samples::worker(store, Duration::from_secs(60)).await
}

/// Polls until a condition holds; returns how long that took.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    holds: impl FnMut() -> F,
) -> Duration {
    samples::until(what, Duration::from_secs(60), holds).await
}
