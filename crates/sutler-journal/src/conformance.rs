//! The conformance suite of all stores, including those of other authors.
//!
//! A store's tests implement [`Candidate`] and call `sutler_journal::store_conformance!(MyCandidate::fresh())`,
//! which makes one test per behaviour. There is no filter: a store that fails one case is not
//! conformant. The cases only require the contract in `store.rs`, so they apply to memory and to a
//! cluster. Read `cases.rs` for the list, then any file named there; `fixture.rs` and
//! `samples.rs` define the functions that they use. Not here: performance.

pub mod claims;
pub mod commits;
pub mod concurrency;
pub mod concurrent_reads;
pub mod expectations;
pub mod faults;
pub mod feed;
pub mod fences;
pub mod histories;
pub mod leases;
pub mod limits;
pub mod lists;
pub mod logs;
pub mod names;
pub mod operations;
pub mod owners;
pub mod restarts;
pub mod samples;
pub mod stalls;
pub mod sweeps;
pub mod volume;

mod cases;
mod fault_injection;
mod fixture;
mod history_model;
mod intercepting_store;
mod unreliable_store;

pub use fault_injection::check_under_faults;
pub use intercepting_store::{Call, Intercept, InterceptingStore};
pub use unreliable_store::UnreliableStore;

use crate::commit::{Commit, CommitError};
use crate::store::Store;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// A store under test, and the faults that the tests can inject. Created for every test.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// The store: empty at first, and the same one on every call within a test.
    async fn store(&self) -> Arc<dyn Store>;

    /// Lets at least this much time pass on the store's clock. An embedded store moves a
    /// `ManualClock`; a server has to wait.
    async fn pass(&self, time: Duration);

    /// Closes the store as a crash would and opens it again over the same data. The store returned
    /// before is not used again. Whether leases survive depends on the store: one that belongs to a
    /// single process voids them, a shared one keeps them.
    async fn reopen(&self) -> Arc<dyn Store>;

    /// Opens the same data a second time while the first store is in use: a shared store as another replica, a file
    /// by another name, through a symbolic link. A store in memory is shared as it is.
    ///
    /// # Errors
    /// The sentence with which a store that belongs to one owner refuses; it says that the data is in use.
    async fn open_again(&self) -> Result<Arc<dyn Store>, String>;

    /// Breaks the connection during the next commit, at this point of it. A store without a
    /// connection wraps itself in an [`UnreliableStore`], or better breaks its own disk.
    async fn cut(&self, cut: Cut);

    /// Begins a commit that waits just before it becomes visible: its position in the order is
    /// assigned if the store does so, and nothing is acknowledged. A server does this with an open
    /// transaction. Other commits must succeed meanwhile, so a store with a single writer
    /// holds the commit back before it takes the writer.
    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit>;

    /// Stalls everything below the store, or lets it continue, beginning with everything that was held back. A
    /// proxy to a server forwards nothing in either direction, and keeps its connections; the disk of an embedded
    /// store completes no write. A store in memory has nothing that can stall.
    async fn set_stalled(&self, stalled: bool);
}

/// Point of a commit at which the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the store was asked to make it durable: it is certainly not applied.
    BeforeCommit,
    /// While it was being made durable: it may or may not be applied.
    DuringCommit,
    /// After it was made durable, before the response arrived: it is applied.
    AfterCommit,
}

/// A commit in progress.
#[async_trait]
pub trait StalledCommit: Send {
    /// Lets it finish, and returns its result.
    async fn finish(self: Box<Self>) -> Result<(), CommitError>;
}
