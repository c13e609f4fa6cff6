//! Forwards the output of a container from the beginning, within a limit, across reconnects to the engine.
//!
//! Output of process runs is `run/tail.rs`.

use super::engine::Engine;
use crate::run_spec::RunName;
use crate::runner::RunEvent;
use bytes::Bytes;
use futures_util::stream::StreamExt;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;

/// Pause between two connections.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a reader may take for the rest of the output.
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// Position in the output of a container.
#[derive(Debug)]
pub(super) struct LogStream {
    most: u64,
    position: u64,
    cut: bool,
}

impl LogStream {
    pub(super) const fn new(most: u64) -> Self {
        Self {
            most,
            position: 0,
            cut: false,
        }
    }

    /// Forwards output until it is dropped.
    pub(super) async fn follow(
        &mut self,
        engine: &Engine,
        name: RunName,
        lines: &mpsc::Sender<RunEvent>,
    ) -> Infallible {
        while !self.cut && !lines.is_closed() {
            self.listen(engine, name, lines, true).await;
            tokio::time::sleep(PAUSE).await;
        }
        // The output has ended, or there is no reader.
        std::future::pending().await
    }

    /// Forwards the rest of the output of a container that ended.
    pub(super) async fn rest(
        &mut self,
        engine: &Engine,
        name: RunName,
        lines: &mpsc::Sender<RunEvent>,
    ) {
        if self.cut {
            return;
        }
        let listening = self.listen(engine, name, lines, false);
        // Output that is not read in time is still available from the engine.
        tokio::time::timeout(REST_TIMEOUT, listening)
            .await
            .unwrap_or_default();
    }

    async fn listen(
        &mut self,
        engine: &Engine,
        name: RunName,
        lines: &mpsc::Sender<RunEvent>,
        follow: bool,
    ) {
        let mut logs = std::pin::pin!(engine.logs(name, follow));
        let mut passed = 0;
        while let Some(piece) = logs.next().await {
            let from = passed;
            passed += piece.len() as u64;
            if passed <= self.position {
                continue;
            }
            // Reserved before the position changes: the future may be dropped here, and is repeated then.
            let Ok(room) = lines.reserve().await else {
                return;
            };
            if let Some(new) = self.new_of(from, &piece) {
                room.send(RunEvent::Output(new));
            }
            self.position = self.position.max(passed);
            if self.cut {
                return;
            }
        }
    }

    /// Part of a chunk that was not forwarded yet and is within the limit.
    fn new_of(&mut self, from: u64, piece: &Bytes) -> Option<Bytes> {
        let end = from + piece.len() as u64;
        if end <= self.position || self.cut {
            return None;
        }
        let within = |place: u64| usize::try_from(place.saturating_sub(from)).unwrap_or(usize::MAX);
        let start = within(self.position).min(piece.len());
        let stop = within(self.most).min(piece.len()).max(start);
        let mut new = piece[start..stop].to_vec();
        if end > self.most {
            self.cut = true;
            new.extend_from_slice(crate::run::cut_line(self.most).as_bytes());
        }
        Some(Bytes::from(new))
    }
}

#[cfg(test)]
mod tests {
    use super::LogStream;
    use bytes::Bytes;

    fn forward(stream: &mut LogStream, from: u64, piece: &'static str) -> Option<String> {
        let new = stream.new_of(from, &Bytes::from_static(piece.as_bytes()))?;
        stream.position = stream.position.max(from + piece.len() as u64);
        Some(String::from_utf8_lossy(&new).into_owned())
    }

    #[test]
    fn forwarded_output_is_not_forwarded_again() {
        let mut stream = LogStream::new(100);
        assert_eq!(forward(&mut stream, 0, "abc").as_deref(), Some("abc"));
        // The engine closed the connection, and starts again from the beginning.
        assert_eq!(forward(&mut stream, 0, "ab"), None);
        assert_eq!(forward(&mut stream, 2, "cde").as_deref(), Some("de"));
    }

    #[test]
    fn output_beyond_the_limit_is_replaced_by_one_line() {
        let mut stream = LogStream::new(4);
        assert_eq!(forward(&mut stream, 0, "abc").as_deref(), Some("abc"));
        let last = forward(&mut stream, 3, "def").expect("something");
        assert!(last.starts_with("d\n[cut here"), "{last}");
        assert_eq!(forward(&mut stream, 6, "ghi"), None);
    }
}
