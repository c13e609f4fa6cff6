//! Ends runs from outside: processes left by a lost run, and a supervisor that does not react.
//!
//! A run with a supervisor is ended by it (`supervise.rs`); this only requests it.

use super::process_tree;
use super::run_dir::RunDir;
use super::run_markers::{self, StartMarker};
use crate::run_spec::RunName;
use crate::runner::RunError;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// Attempts and interval of the search for leftovers of a lost run.
const TRIES: usize = 150;
const AGAIN: Duration = Duration::from_millis(20);

/// Kills all processes of a lost run, so that another attempt is safe. They are found by the marker in their
/// environment, and by the user if the run had its own.
pub(super) fn kill_leftovers(name: RunName, user: Option<u32>) -> Result<(), RunError> {
    let run = name.to_string();
    for _ in 0..TRIES {
        let mut left = process_tree::marked(&run);
        left.extend(user.map(process_tree::abandoned_by).unwrap_or_default());
        if left.is_empty() {
            return Ok(());
        }
        process_tree::signal(&left, Signal::KILL);
        std::thread::sleep(AGAIN);
    }
    Err(RunError::Unavailable(format!(
        "Processes of run {name} do not end: find them by {}={name} in their environment and see what holds them.",
        process_tree::MARK
    )))
}

/// The run's own user, if it had one.
pub(super) fn own_user(folder: &RunDir) -> Option<u32> {
    let started = run_markers::read::<StartMarker>(&folder.path, "started");
    started.ok().flatten().and_then(|started| started.user)
}

/// Requests a stop. The file is written first, so that a supervisor that does not read the pipe yet sees it too.
pub(super) fn request_stop(folder: &RunDir) -> io::Result<()> {
    std::fs::File::create(folder.stop())?;
    let mut options = OpenOptions::new();
    options.write(true);
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    match options.open(folder.wake()) {
        Ok(mut wake) => wake.write_all(b"s"),
        // No reader of the pipe yet, or not any more.
        Err(fault) if fault.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(())
        }
        Err(fault) => Err(fault),
    }
}

pub(super) fn kill_supervisor(folder: &RunDir) {
    if let Ok(Some(started)) = run_markers::read::<StartMarker>(&folder.path, "started") {
        process_tree::signal(&[started.supervisor], Signal::KILL);
    }
}
