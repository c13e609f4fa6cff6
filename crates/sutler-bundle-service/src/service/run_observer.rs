//! Receives output and progress of a run: the operation behind a broker, or a terminal.

use async_trait::async_trait;
use sutler_broker::{Cx, Result};
use sutler_runner::RunProgress;
use tokio_util::sync::CancellationToken;

/// Receives output and progress of a run.
#[async_trait]
pub trait RunObserver: Send + Sync {
    /// Output of the run, from byte `from` of all its output. After a restart the output is sent again.
    ///
    /// # Errors
    /// The claim of the operation was lost; stop here.
    async fn output(&self, from: u64, text: &str) -> Result<()>;

    /// Progress of the run.
    ///
    /// # Errors
    /// The claim of the operation was lost; stop here.
    async fn progress(&self, progress: &RunProgress) -> Result<()>;

    /// The run was found running, started by an earlier process.
    ///
    /// # Errors
    /// The claim of the operation was lost; stop here.
    async fn adopted(&self) -> Result<()>;

    /// Fires when it should be stopped.
    fn cancelled(&self) -> &CancellationToken;
}

#[async_trait]
impl RunObserver for Cx {
    async fn output(&self, from: u64, text: &str) -> Result<()> {
        self.log(from, text).await
    }

    async fn progress(&self, progress: &RunProgress) -> Result<()> {
        let text = match (progress.percent, progress.text.trim()) {
            (None, text) => text.to_owned(),
            (Some(percent), "") => format!("{percent} %"),
            (Some(percent), text) => format!("{text} ({percent} %)"),
        };
        Cx::progress(self, text).await
    }

    async fn adopted(&self) -> Result<()> {
        // A note counts as progress: a run that outlives many brokers is not given up.
        Cx::progress(self, "The run goes on after a restart of the broker.").await
    }

    fn cancelled(&self) -> &CancellationToken {
        self.cancellation()
    }
}
