//! One process owns the file: leases live in its memory, so a second one could not see them.
//!
//! The lock is on a separate file next to the database, because SQLite's own locks come and go with each
//! transaction. The system lets go of it when the process ends, however it ends.

use crate::settings::SqliteOpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to lock while another process ends, and the pause between two. A process that was killed while
/// it started another lives on in that one until its program begins, lock and all: for a moment only.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Held for as long as the store is open.
#[derive(Debug)]
pub(crate) struct FileLock {
    _lock: File,
}

impl FileLock {
    /// Takes the file for this store, or says who has it.
    pub(crate) fn of(path: &Path) -> Result<Self, SqliteOpenError> {
        let beside = beside(path, ".lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&beside)
            .map_err(|cause| SqliteOpenError::failed(path, "its lock file", cause))?;
        for _ in 0..TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { _lock: lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(cause)) => {
                    return Err(SqliteOpenError::failed(path, "its lock", cause));
                }
            }
        }
        Err(SqliteOpenError::InUse {
            path: path.to_owned(),
        })
    }
}

/// The same path with something appended to the file's name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
