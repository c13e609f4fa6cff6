//! Output of a run: printed to the terminal, or kept to be printed if the run fails.

use async_trait::async_trait;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use sutler_bundle_service::RunObserver;
use sutler_runner::RunProgress;
use tokio_util::sync::CancellationToken;

/// Maximum of output that is kept, in bytes.
const KEPT_MAX: usize = 16 << 10;

/// Receives the output of a run.
#[derive(Default)]
pub(super) struct TerminalObserver {
    pub(super) cancel: CancellationToken,
    /// Output that is kept instead of printed.
    kept: Option<Mutex<String>>,
}

impl TerminalObserver {
    /// Keeps the output instead of printing it.
    pub(super) fn quiet() -> Self {
        Self {
            kept: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// The end of the kept output.
    pub(super) fn output_text(&self) -> String {
        let kept = self.kept.as_ref().map(|it| it.lock());
        kept.map(|it| it.unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    fn write(&self, text: &str) {
        match &self.kept {
            None => {
                let _ = std::io::stderr().lock().write_all(text.as_bytes());
            }
            Some(kept) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(text);
                let mut from = kept.len().saturating_sub(KEPT_MAX);
                while !kept.is_char_boundary(from) {
                    from += 1;
                }
                kept.drain(..from);
            }
        }
    }
}

#[async_trait]
impl RunObserver for TerminalObserver {
    async fn output(&self, _from: u64, text: &str) -> sutler_broker::Result<()> {
        self.write(text);
        Ok(())
    }

    async fn progress(&self, progress: &RunProgress) -> sutler_broker::Result<()> {
        let percent = progress.percent.map(|it| format!("{it:>3} % "));
        self.write(&format!(
            "{}{}\n",
            percent.unwrap_or_default(),
            progress.text
        ));
        Ok(())
    }

    async fn adopted(&self) -> sutler_broker::Result<()> {
        if self.kept.is_none() {
            self.write("an earlier run was found: it continues\n");
        }
        Ok(())
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, TerminalObserver};

    #[test]
    fn of_hidden_output_only_the_end_is_kept() {
        let terminal = TerminalObserver::quiet();
        terminal.write("ä first line\n");
        for _ in 0..KEPT_MAX {
            terminal.write("ä\n");
        }
        terminal.write("last line\n");
        let kept = terminal.output_text();
        assert!(kept.len() <= KEPT_MAX);
        assert!(kept.ends_with("ä\nlast line\n") && !kept.contains("first"));
    }
}
