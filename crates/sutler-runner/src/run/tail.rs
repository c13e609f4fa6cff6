//! Follows a run: its output from the beginning, and its progress as it changes.
//!
//! A slow or absent reader stops neither the run nor the watch.

use crate::run_result::{ResultDir, RunProgress};
use crate::runner::RunEvent;
use bytes::Bytes;
use std::convert::Infallible;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes per read.
const CHUNK: usize = 32 << 10;
/// Shortest pause after new output, and longest pause without.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a reader may take for the rest of the output.
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// Position in output and progress of a run.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    output: PathBuf,
    result: PathBuf,
    offset: u64,
    progress: Option<RunProgress>,
}

impl Tail {
    pub(crate) fn new(output: PathBuf, result: PathBuf) -> Self {
        Self {
            output,
            result,
            offset: 0,
            progress: None,
        }
    }

    /// Forwards the rest of a run that ended.
    pub(crate) async fn rest(&mut self, lines: &mpsc::Sender<RunEvent>) {
        self.pass_on(lines, REST_TIMEOUT).await;
    }

    /// Forwards output and progress until it is dropped.
    pub(crate) async fn follow(&mut self, lines: &mpsc::Sender<RunEvent>) -> Infallible {
        let mut pause = PAUSE_MIN;
        loop {
            // A run has no output at once, and the rest of one that has ended by then is forwarded at the end.
            tokio::time::sleep(pause).await;
            pause = match self.pass_on(lines, Duration::ZERO).await {
                true => PAUSE_MIN,
                false => (pause * 2).min(PAUSE_MAX),
            };
        }
    }

    /// Forwards new events. Returns whether there were any.
    async fn pass_on(&mut self, lines: &mpsc::Sender<RunEvent>, patience: Duration) -> bool {
        let mut any = false;
        loop {
            let Ok(room) = tokio::time::timeout(patience, lines.reserve()).await else {
                return any;
            };
            let Ok(room) = room else {
                return any;
            };
            let at = self.clone();
            let Ok(next) = tokio::task::spawn_blocking(move || at.next()).await else {
                return any;
            };
            let Some(line) = next else {
                return any;
            };
            any = true;
            match &line {
                RunEvent::Output(bytes) => self.offset += bytes.len() as u64,
                RunEvent::Progress(progress) => self.progress = Some(progress.clone()),
            }
            room.send(line);
        }
    }

    fn next(&self) -> Option<RunEvent> {
        let mut chunk = vec![0; CHUNK];
        let read = File::open(&self.output).and_then(|file| file.read_at(&mut chunk, self.offset));
        if let Ok(read @ 1..) = read {
            chunk.truncate(read);
            return Some(RunEvent::Output(Bytes::from(chunk)));
        }
        let progress = ResultDir::open(&self.result).ok()?.progress()?;
        (self.progress.as_ref() != Some(&progress)).then_some(RunEvent::Progress(progress))
    }
}
