//! The history of one simulated run: readable lines with their simulated time in seconds, and the violations (at most
//! 20).
//!
//! Lines are formatted only for a replay (`--seed`). In them `r0.2` is the second process of replica 0, `i0/b1` a binding
//! of an instance, `…00001a` the end of an operation's id, and `fence 2` the number of its claim.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Lines and violations of a run.
pub(crate) struct History {
    began: Instant,
    recording: bool,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    lines: Vec<String>,
    violations: Vec<String>,
    /// Number of events, and a digest of their kinds and times: equal for equal runs.
    events: u64,
    digest: u64,
}

/// Totals of a run.
pub(crate) struct HistoryTotals {
    pub lines: Vec<String>,
    pub violations: Vec<String>,
    pub events: u64,
    pub digest: u64,
}

/// Violations after which a run stops recording more of them.
const VIOLATIONS_MAX: usize = 20;

impl History {
    pub(crate) fn begin(recording: bool) -> Self {
        Self {
            began: Instant::now(),
            recording,
            entries: Mutex::default(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Simulated time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records an event. `kind` takes part in the digest, `line` is formatted only when recording.
    pub(crate) fn record(&self, kind: &'static str, line: impl FnOnce() -> String) {
        let now = self.now();
        let mut entries = self.entries();
        entries.events += 1;
        let mixed = entries.digest ^ u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        entries.digest = kind.bytes().fold(mixed, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        if self.recording {
            let line = format!("{} {}", SimulatedTime(now), line());
            entries.lines.push(line);
        }
    }

    /// Records a broken invariant.
    pub(crate) fn violate(&self, sentence: String) {
        let now = self.now();
        let mut entries = self.entries();
        if self.recording {
            entries
                .lines
                .push(format!("{} VIOLATION {sentence}", SimulatedTime(now)));
        }
        if entries.violations.len() < VIOLATIONS_MAX {
            entries
                .violations
                .push(format!("at {}: {sentence}", SimulatedTime(now)));
        }
    }

    /// Whether an invariant is broken already.
    pub(crate) fn is_violated(&self) -> bool {
        !self.entries().violations.is_empty()
    }

    pub(crate) fn take(&self) -> HistoryTotals {
        let mut entries = self.entries();
        HistoryTotals {
            lines: std::mem::take(&mut entries.lines),
            violations: std::mem::take(&mut entries.violations),
            events: entries.events,
            digest: entries.digest,
        }
    }
}

/// A simulated time, in seconds with milliseconds, aligned.
struct SimulatedTime(Duration);

impl fmt::Display for SimulatedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5}.{:03}", self.0.as_secs(), self.0.subsec_millis())
    }
}
