//! Processor time of a process by its threads, and what it wrote to the disk, as the kernel counts them.

use std::collections::BTreeMap;
use std::fs;

/// Processor time in microseconds by kind of thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadTimes(BTreeMap<&'static str, f64>);

impl ThreadTimes {
    /// Those of a process. Threads that have ended are not counted.
    pub(super) fn of(process: u32) -> Self {
        let mut times = BTreeMap::new();
        let tasks = fs::read_dir(format!("/proc/{process}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let stat = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let nanos: f64 = stat
                .split_whitespace()
                .next()
                .and_then(|it| it.parse().ok())
                .unwrap_or(0.0);
            *times.entry(kind(name.trim())).or_default() += nanos / 1e3;
        }
        Self(times)
    }

    /// What was used after an earlier moment.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let difference = |(kind, micros): (&&'static str, &f64)| {
            let before = earlier.0.get(kind).copied().unwrap_or(0.0);
            (*kind, micros - before)
        };
        Self(self.0.iter().map(difference).collect())
    }

    /// Of all threads, in microseconds.
    pub(super) fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// Those of each of a number of things, on one line.
    pub(super) fn per(&self, number: f64) -> String {
        let one = |(kind, micros): (&&'static str, &f64)| format!("{kind} {:.1}", micros / number);
        let all: Vec<String> = self.0.iter().map(one).collect();
        all.join(", ")
    }
}

/// The store's writer is a thread of its own; the others run tasks, or read from the store.
fn kind(name: &str) -> &'static str {
    match name {
        it if it.starts_with("sutler-sqlite-w") => "store's writer",
        it if it.starts_with("sutler-sqlite-c") => "store's checkpoints",
        _ => "tasks and reads",
    }
}

/// Bytes that a process gave to the disk.
pub(super) fn written_bytes(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let line = text.lines().find_map(|it| it.strip_prefix("write_bytes: "));
    line.and_then(|it| it.trim().parse().ok()).unwrap_or(0.0)
}
