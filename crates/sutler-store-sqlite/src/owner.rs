//! One process owns the file: leases live in its memory, so a second one could not see them.
//!
//! The lock is on a file beside the database, because SQLite's own locks come and go with each
//! transaction. The system lets go of it when the process ends, however it ends.

use crate::settings::OpenError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Held for as long as the store is open.
#[derive(Debug)]
pub(crate) struct Owner {
    _lock: File,
}

impl Owner {
    /// Takes the file for this store, or says who has it.
    pub(crate) fn of(path: &Path) -> Result<Self, OpenError> {
        let beside = beside(path, ".lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&beside)
            .map_err(|cause| OpenError::failed(path, "its lock file", cause))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(cause)) => Err(OpenError::failed(path, "its lock", cause)),
        }
    }
}

/// The same path with something appended to the file's name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
