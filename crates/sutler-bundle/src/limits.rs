//! Resource limits of a run: what a manifest may set and a runner enforces.
//!
//! Read from a manifest by `manifest/settings.rs`; enforced by the runners in `sutler-runner`.

use std::time::Duration;

/// Resource limits of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// How long it may take.
    pub deadline: Duration,
    /// Most bytes of memory.
    pub memory: u64,
    /// Most bytes of output that are kept.
    pub output: u64,
    /// Most open files of one process.
    pub open_files: u64,
    /// Most processes.
    pub processes: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(3600),
            memory: 1 << 30,
            output: 4 << 20,
            open_files: 1024,
            processes: 512,
        }
    }
}
