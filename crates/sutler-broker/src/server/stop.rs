//! When to stop: SIGTERM or Ctrl-C once to drain, twice to leave at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, listened for from the moment this is made.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits until so many have come since.
    pub(super) async fn nth(mut self, count: u32) {
        for _ in 0..count {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        }
    }
}
