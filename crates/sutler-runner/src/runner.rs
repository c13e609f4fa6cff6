//! The trait of runners. Processes and containers implement it and pass one conformance suite.
//!
//! A runner decides nothing: it starts, finds, watches and ends runs by name. It keeps no state of its own, so that
//! a restarted broker finds every run.

use crate::run_result::{RunProgress, RunResult};
use crate::run_spec::{RunName, RunSpec};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With this code: 0 is done, 8 means that there is no such action.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Ended by us at its deadline.
    Deadline,
    /// Ended by us because the operation was cancelled.
    Stopped,
    /// Ended for using too much memory.
    Memory,
}

/// Status of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStatus {
    /// It provably never started: it may be started.
    NeverStarted,
    /// It runs.
    Running,
    /// It ended; what it gave back can be read until it is removed.
    Finished(Exit),
    /// It was started, and how it ended cannot be told; the sentence says why.
    Lost(String),
}

/// Event of a running run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// Output, as it comes.
    Output(Bytes),
    /// How far it is.
    Progress(RunProgress),
}

/// A run cannot be started, found or read. The text is for operators and names no secret.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It will not work however often it is tried: a missing image, an unreadable folder.
    #[error("{0}")]
    Refused(String),
    /// The host or the engine does not answer now.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs bundles.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Looks for a run by its name. A start of it by this runner that is under way is waited for.
    async fn status(&self, name: RunName) -> Result<RunStatus, RunError>;

    /// Starts a run. One that is there already, under way or ended, is left as it is. Whoever does not wait for
    /// it does not know whether it is started: see [`Runner::stop`].
    async fn start(&self, spec: &RunSpec) -> Result<(), RunError>;

    /// Watches a run until it ends or is lost. What it says goes to `lines`, from the beginning after a
    /// restart too; nobody reading is no reason to stop.
    async fn watch(
        &self,
        name: RunName,
        lines: mpsc::Sender<RunEvent>,
    ) -> Result<RunStatus, RunError>;

    /// Reads what a run gave back that finished, and whatever can still be read of one that is lost.
    async fn result(&self, name: RunName) -> Result<RunResult, RunError>;

    /// Ends a run, and everything it started; also what is left of one that is lost. Nothing happens to one
    /// that is not there.
    ///
    /// # Guarantees
    /// After `Ok` nothing of the run runs any more, and no start of it by this runner is under way. Where that is not certain there is a fault, and it is
    /// worth another try.
    async fn stop(&self, name: RunName) -> Result<(), RunError>;

    /// Removes all that is left of a run that does not run. Nothing happens if nothing is there.
    async fn remove(&self, name: RunName) -> Result<(), RunError>;

    /// Every run that left something.
    async fn list(&self) -> Result<Vec<RunName>, RunError>;
}
