//! Who hears of a run while it goes on: the operation behind a broker, or a person at a terminal.

use async_trait::async_trait;
use sutler_broker::{Cx, Result};
use sutler_runner::Progress;
use tokio_util::sync::CancellationToken;

/// Hears of a run.
#[async_trait]
pub trait RunObserver: Send + Sync {
    /// What it said, from byte `from` of all it says. After a restart everything is said again.
    ///
    /// # Errors
    /// Nobody may go on here: the claim was lost.
    async fn output(&self, from: u64, text: &str) -> Result<()>;

    /// How far it is.
    ///
    /// # Errors
    /// Nobody may go on here: the claim was lost.
    async fn progress(&self, progress: &Progress) -> Result<()>;

    /// It was found running, started by somebody who is gone.
    ///
    /// # Errors
    /// Nobody may go on here: the claim was lost.
    async fn adopted(&self) -> Result<()>;

    /// Fires when it should be stopped.
    fn cancelled(&self) -> &CancellationToken;
}

#[async_trait]
impl RunObserver for Cx {
    async fn output(&self, from: u64, text: &str) -> Result<()> {
        self.log(from, text).await
    }

    async fn progress(&self, progress: &Progress) -> Result<()> {
        let text = match (progress.percent, progress.text.trim()) {
            (None, text) => text.to_owned(),
            (Some(percent), "") => format!("{percent} %"),
            (Some(percent), text) => format!("{text} ({percent} %)"),
        };
        Cx::progress(self, text).await
    }

    async fn adopted(&self) -> Result<()> {
        // Whatever is noted counts as progress: a run that outlives many brokers is not given up.
        Cx::progress(self, "The run goes on after a restart of the broker.").await
    }

    fn cancelled(&self) -> &CancellationToken {
        self.cancellation()
    }
}
