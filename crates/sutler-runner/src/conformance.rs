//! Conformance suite of runners. Compiled with the feature `testing` only.
//!
//! The tests of a runner implement [`Candidate`] and call
//! `sutler_runner::runner_conformance!(Mine::fresh().await)`, which generates one test per case. The bundle under
//! test is a shell that runs the text in its variable `SCRIPT`. Helpers are in `fixture.rs`, the cases in the other
//! files.

pub mod ends;
pub mod lifecycle;
pub mod limits;
pub mod results;

mod cases;
mod fixture;

use crate::run_spec::{RunName, Runnable};
use crate::runner::Runner;
use async_trait::async_trait;
use std::sync::Arc;

/// A runner under test, and what the tests must be able to do behind its back. Made anew for every test.
#[async_trait]
pub trait Candidate: Send + Sync {
    /// Another runner over the same runs each time, as after a restart of the broker. It gives runs at most
    /// half a second between the word to end and the blow.
    async fn runner(&self) -> Arc<dyn Runner>;

    /// Something whose entry point evaluates `$SCRIPT` with a POSIX shell.
    fn shell(&self) -> Runnable;

    /// Something that cannot be run.
    fn missing(&self) -> Runnable;

    /// Makes the file `go` in the result directory of a run.
    async fn let_go(&self, name: RunName);

    /// Makes it impossible to tell what became of a run that is under way.
    async fn lose(&self, name: RunName);

    /// Takes away the directory of a run that is under way, as somebody does who tidies up.
    async fn misplace(&self, name: RunName);

    /// Leaves what a broker leaves that is killed while it makes one run and removes another.
    async fn cut_short(&self);

    /// How many processes of a run there are, and whatever else takes up room while it does not run.
    async fn left_of(&self, name: RunName) -> usize;
}
