//! Lock of the file: leases are in the memory of one process, so a second one could not see them.
//!
//! The lock is on a separate file next to the database, because SQLite's own locks are released after each
//! transaction. The operating system releases it when the process ends, however it ends.

use crate::settings::SqliteOpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to lock while another process ends, and the pause between two. A process that was killed during
/// a fork leaves the lock in its child for a moment, until the child executes its program.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Held while the store is open.
#[derive(Debug)]
pub(crate) struct FileLock {
    _lock: File,
}

impl FileLock {
    /// Locks the file for this store, or fails if another process holds it.
    pub(crate) fn of(path: &Path) -> Result<Self, SqliteOpenError> {
        let lock_path = with_suffix(path, ".lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
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

/// The same path with a suffix on the file's name.
pub(crate) fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
