//! Resource limits of a run: what a manifest may set and a runner enforces.
//!
//! Read from a manifest by `manifest/settings.rs`; enforced by the runners in `sutler-runner`.

use std::time::Duration;

/// Resource limits of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Maximum duration.
    pub deadline: Duration,
    /// Maximum bytes of memory.
    pub memory: u64,
    /// Maximum bytes of output that are stored.
    pub output: u64,
    /// Maximum number of open files per process.
    pub open_files: u64,
    /// Maximum number of processes.
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
