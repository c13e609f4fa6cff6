//! One progress bar on a terminal. Nothing is drawn if standard error is not a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// A bar with the given length; hidden if standard error is not a terminal.
pub(super) fn progress_bar(things: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
    let bar = ProgressBar::new(things);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
