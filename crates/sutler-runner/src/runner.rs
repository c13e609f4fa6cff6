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

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Exit code: 0 is success, 8 means that the bundle does not have the action.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Ended by the runner at its deadline.
    Deadline,
    /// Ended by the runner because the operation was cancelled.
    Stopped,
    /// Killed for using too much memory.
    Memory,
}

/// Status of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStatus {
    /// It provably never started: it may be started.
    NeverStarted,
    /// It is running.
    Running,
    /// It ended; its result can be read until it is removed.
    Finished(Exit),
    /// It was started, but its end is unknown; the sentence says why.
    Lost(String),
}

/// Event of a running run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// Output, as it comes.
    Output(Bytes),
    /// Progress.
    Progress(RunProgress),
}

/// A run cannot be started, found or read. The text is for operators and names no secret.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Permanent: a missing image, an unreadable folder.
    #[error("{0}")]
    Refused(String),
    /// The host or the engine does not answer now.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs bundles.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Status of a run by its name. Waits for a pending start of it by this runner.
    async fn status(&self, name: RunName) -> Result<RunStatus, RunError>;

    /// Starts a run. An existing one, running or ended, is left unchanged. A caller that drops this future does not
    /// know whether the run is started: see [`Runner::stop`].
    async fn start(&self, spec: &RunSpec) -> Result<(), RunError>;

    /// Watches a run until it ends or is lost. Its events are sent to `lines`, also after a restart from the
    /// beginning; a missing reader does not end the watch.
    async fn watch(
        &self,
        name: RunName,
        lines: mpsc::Sender<RunEvent>,
    ) -> Result<RunStatus, RunError>;

    /// Reads the result of a finished run, or what can still be read of a lost one.
    async fn result(&self, name: RunName) -> Result<RunResult, RunError>;

    /// Ends a run and all its processes, including leftovers of a lost run. Does nothing if there is no such run.
    ///
    /// # Guarantees
    /// After `Ok` no process of the run is left, and no start of it by this runner is pending. If that is not
    /// certain, an error is returned, and the call can be repeated.
    async fn stop(&self, name: RunName) -> Result<(), RunError>;

    /// Removes everything of a run that is not running. Does nothing if there is none.
    async fn remove(&self, name: RunName) -> Result<(), RunError>;

    /// All runs that have not been removed.
    async fn list(&self) -> Result<Vec<RunName>, RunError>;
}
