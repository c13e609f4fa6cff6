//! The suite every store must pass: ours, and yours if you write one.
//!
//! A store's tests implement [`Candidate`] and say `sutler_journal::store_conformance!(MyCandidate::fresh())`;
//! that makes one test of every behaviour. There is no filter: a store that fails one case is not
//! a store. The cases only demand what the contract in `store.rs` says, so they hold for a process's
//! own memory as for a cluster. Read `cases.rs` for the list, then any file named there; `fixture.rs`
//! and `samples.rs` are the vocabulary in which they are written. Not here: how fast a store is.

pub mod claims;
pub mod commits;
pub mod concurrency;
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
pub mod restarts;
pub mod samples;
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

/// A store under test, and what the tests must be able to do to it. Made anew for every test.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// The store: empty at first, and the same one every time within one test.
    async fn store(&self) -> Arc<dyn Store>;

    /// Lets at least this much time pass on the store's clock. An embedded store moves a
    /// `ManualClock`; for a server there is nothing but to wait.
    async fn pass(&self, time: Duration);

    /// Closes the store as a crash would and opens it again over the same data. The store handed
    /// out before is used no more. Whether leases outlive this is the store's affair: a store that
    /// belongs to one process voids them, a shared one keeps them.
    async fn reopen(&self) -> Arc<dyn Store>;

    /// Breaks the connection under the next commit, at this point of it. A store without a
    /// connection puts a [`UnreliableStore`] between itself and the suite, or better breaks its own disk.
    async fn cut(&self, cut: Cut);

    /// Begins a commit that waits at the last moment before it becomes visible: with whatever
    /// place in the order it gets, and nothing acknowledged. A server does this with an open
    /// transaction. Other commits must get through meanwhile, so a store with a single writer
    /// holds the commit back before it takes the writer.
    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit>;
}

/// Where in a commit the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the store was asked to make it durable: it certainly does not happen.
    BeforeCommit,
    /// While it was being made durable: it may have happened or not.
    DuringCommit,
    /// After it was made durable, before the answer arrived: it has happened.
    AfterCommit,
}

/// A commit under way.
#[async_trait]
pub trait StalledCommit: Send {
    /// Lets it end, and tells how.
    async fn finish(self: Box<Self>) -> Result<(), CommitError>;
}
