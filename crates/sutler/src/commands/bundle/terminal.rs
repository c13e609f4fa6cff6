//! A person who watches a run, or somebody who only wants to know what it said if it fails.

use async_trait::async_trait;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use sutler_bundle_service::RunObserver;
use sutler_runner::Progress;
use tokio_util::sync::CancellationToken;

/// How much is kept of what a run said that nobody watches, in bytes.
const KEPT_MAX: usize = 16 << 10;

/// Hears what a run says.
#[derive(Default)]
pub(super) struct Terminal {
    pub(super) cancel: CancellationToken,
    /// Kept in place of being printed.
    kept: Option<Mutex<String>>,
}

impl Terminal {
    /// One that nobody looks at.
    pub(super) fn quiet() -> Self {
        Self {
            kept: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// The end of what it heard, if nobody looked.
    pub(super) fn heard(&self) -> String {
        let kept = self.kept.as_ref().map(|it| it.lock());
        kept.map(|it| it.unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    fn hear(&self, text: &str) {
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
impl RunObserver for Terminal {
    async fn output(&self, _from: u64, text: &str) -> sutler_broker::Result<()> {
        self.hear(text);
        Ok(())
    }

    async fn progress(&self, progress: &Progress) -> sutler_broker::Result<()> {
        let percent = progress.percent.map(|it| format!("{it:>3} % "));
        self.hear(&format!(
            "{}{}\n",
            percent.unwrap_or_default(),
            progress.text
        ));
        Ok(())
    }

    async fn adopted(&self) -> sutler_broker::Result<()> {
        if self.kept.is_none() {
            self.hear("an earlier run was found: it goes on\n");
        }
        Ok(())
    }

    fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, Terminal};

    #[test]
    fn of_what_nobody_looks_at_the_end_is_kept() {
        let terminal = Terminal::quiet();
        terminal.hear("ä first line\n");
        for _ in 0..KEPT_MAX {
            terminal.hear("ä\n");
        }
        terminal.hear("last line\n");
        let heard = terminal.heard();
        assert!(heard.len() <= KEPT_MAX);
        assert!(heard.ends_with("ä\nlast line\n") && !heard.contains("first"));
    }
}
