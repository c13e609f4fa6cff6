//! Conformance suite of runners. Compiled with the feature `testing` only.
//!
//! The tests of a runner implement [`Candidate`] and call
//! `sutler_runner::runner_conformance!(Mine::fresh().await)`, which generates one test per case. The bundle under
//! test is a shell that runs the text in its variable `SCRIPT`. Helpers are in `fixture.rs`, the cases in the other
//! files.

pub mod exits;
pub mod lifecycle;
pub mod limits;
pub mod results;

mod cases;
mod fixture;

use crate::run_spec::{RunName, Runnable};
use crate::runner::Runner;
use async_trait::async_trait;
use std::sync::Arc;

/// A runner under test, with operations that bypass it. Created for every test.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// Creates another runner over the same runs each time, as after a restart of the broker. Its grace between
    /// termination and kill is at most half a second.
    async fn runner(&self) -> Arc<dyn Runner>;

    /// A runnable whose entry point evaluates `$SCRIPT` with a POSIX shell.
    fn shell(&self) -> Runnable;

    /// A runnable that cannot be run.
    fn missing(&self) -> Runnable;

    /// Creates the file `go` in the result directory of a run.
    async fn create_go_file(&self, name: RunName);

    /// Makes the end of a running run unknown.
    async fn lose(&self, name: RunName);

    /// Removes the directory of a running run.
    async fn remove_run_dir(&self, name: RunName);

    /// Leaves the files that a broker leaves when it is killed while it creates one run and removes another.
    async fn leave_interrupted_runs(&self);

    /// Number of processes of a run, and of other leftovers if it is not running.
    async fn leftovers_of(&self, name: RunName) -> usize;
}
