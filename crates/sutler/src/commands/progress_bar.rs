//! One progress bar on a terminal. If standard error is not a terminal, one line every ten seconds in place of it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use std::io::{IsTerminal as _, Write};
use std::time::Duration;
use tokio::time::Instant;

/// Time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar with the given length. Its position and message are what is shown; clear it at the end.
pub(crate) fn progress_bar(things: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        let bar = ProgressBar::with_draw_target(Some(things), ProgressDrawTarget::hidden());
        tokio::spawn(write_lines(bar.downgrade(), std::io::stderr()));
        return bar;
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
    let bar = ProgressBar::new(things);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Writes a line about a bar every ten seconds, until it is finished or dropped.
async fn write_lines(bar: WeakProgressBar, mut out: impl Write) {
    let start = Instant::now();
    loop {
        tokio::time::sleep(LINE_EVERY).await;
        let Some(bar) = bar.upgrade().filter(|it| !it.is_finished()) else {
            return;
        };
        let (done, all) = (bar.position(), bar.length().unwrap_or_default());
        let seconds = start.elapsed().as_secs();
        let _ = writeln!(out, "{done}/{all} {} {seconds}s", bar.message());
    }
}

#[cfg(test)]
mod tests {
    use super::write_lines;
    use indicatif::{ProgressBar, ProgressDrawTarget};
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Bytes that a test can read while they are written.
    #[derive(Clone, Default)]
    struct SharedBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_is_written_every_ten_seconds_until_the_bar_is_cleared() {
        let bar = ProgressBar::with_draw_target(Some(50), ProgressDrawTarget::hidden());
        let out = SharedBytes::default();
        let lines = tokio::spawn(write_lines(bar.downgrade(), out.clone()));
        bar.set_message("read");
        bar.set_position(7);
        tokio::time::sleep(Duration::from_secs(11)).await;
        bar.set_position(20);
        tokio::time::sleep(Duration::from_secs(10)).await;
        bar.finish_and_clear();
        lines.await.expect("it ends");
        let written = out.0.lock().expect("no test panics").clone();
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written, "7/50 read 10s\n20/50 read 20s\n");
    }
}
