//! Placeholder for a runner that is not configured any more, while its runs may exist.
//!
//! Every call is unavailable: a started run is neither found nor given up until a runner is configured again or the
//! retry budget is used up (`run_driver.rs`).

use async_trait::async_trait;
use sutler_runner::{RunError, RunEvent, RunName, RunResult, RunSpec, RunStatus, Runner};
use tokio::sync::mpsc;

/// The text says what to do.
pub(super) struct MissingRunner(pub(super) String);

impl MissingRunner {
    fn answer<T>(&self) -> Result<T, RunError> {
        Err(RunError::Unavailable(self.0.clone()))
    }
}

#[async_trait]
impl Runner for MissingRunner {
    async fn status(&self, _: RunName) -> Result<RunStatus, RunError> {
        self.answer()
    }

    async fn start(&self, _: &RunSpec) -> Result<(), RunError> {
        self.answer()
    }

    async fn watch(&self, _: RunName, _: mpsc::Sender<RunEvent>) -> Result<RunStatus, RunError> {
        self.answer()
    }

    async fn result(&self, _: RunName) -> Result<RunResult, RunError> {
        self.answer()
    }

    async fn stop(&self, _: RunName) -> Result<(), RunError> {
        self.answer()
    }

    async fn remove(&self, _: RunName) -> Result<(), RunError> {
        self.answer()
    }

    async fn list(&self) -> Result<Vec<RunName>, RunError> {
        self.answer()
    }
}
