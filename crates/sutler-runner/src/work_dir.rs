//! Working directory of one broker on one host: runs, copies of bundles, the host's name.
//!
//! One process owns it by a file lock that ends with the process: two brokers would take each other's runs for
//! leftovers.

use crate::run::process::create_traversable_dir;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to take the lock, and the pause between them. A process that was killed while it started another lives
/// on in the child, with its lock, until the child's program begins: only for a moment.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Longest host name that is read.
const HOST_BYTES_MAX: usize = 40;

/// Why a working directory cannot be used. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    /// Another process uses it.
    #[error(
        "{0} is in use by another process: stop that one, or give each broker a folder of its own"
    )]
    InUse(PathBuf),
    /// A file system error.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] io::Error),
}

/// An owned working directory; the lock is released on drop.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    host: String,
    _lock: File,
}

impl WorkDir {
    /// Opens the directory, and creates it if it is missing. Blocks for a moment.
    ///
    /// # Errors
    /// Another process uses it, or the file system fails.
    pub fn open(path: &Path) -> Result<Self, WorkDirError> {
        let disk = |error| WorkDirError::Disk(path.to_owned(), error);
        // Runs of another user must be able to traverse it, but not to list it.
        create_traversable_dir(path).map_err(disk)?;
        let path = path.canonicalize().map_err(disk)?;
        let lock = own_file(&path.join("lock")).map_err(disk)?;
        let take = || match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        };
        if !with_retries(take, std::thread::sleep).map_err(disk)? {
            return Err(WorkDirError::InUse(path));
        }
        let host = host(&path.join("host")).map_err(disk)?;
        Ok(Self {
            path,
            host,
            _lock: lock,
        })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of this host, created with the directory.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// Retries until the lock is taken; `false`: another process holds it.
fn with_retries(
    mut take: impl FnMut() -> io::Result<bool>,
    pause: impl Fn(Duration),
) -> io::Result<bool> {
    for _ in 1..TRIES {
        if take()? {
            return Ok(true);
        }
        pause(PAUSE);
    }
    take()
}

fn own_file(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Name of the host: the system's name, for people, and a unique suffix.
fn host(path: &Path) -> io::Result<String> {
    let known = fs::read_to_string(path).unwrap_or_default();
    let known = known.trim();
    if !known.is_empty() && known.len() <= HOST_BYTES_MAX {
        return Ok(known.to_owned());
    }
    let system_name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let system_name: String = system_name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(20)
        .collect();
    let own = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("{system_name}-{}", &own[..16]);
    let aside = path.with_extension("new");
    let mut file = own_file(&aside)?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::{TRIES, WorkDir, WorkDirError, with_retries};

    #[test]
    fn one_process_owns_a_working_directory_and_its_host_keeps_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("work");
        let first = WorkDir::open(&path).expect("it");
        let refused = WorkDir::open(&path).expect_err("somebody has it");
        assert!(matches!(refused, WorkDirError::InUse(_)), "{refused}");
        let host = first.host().to_owned();
        drop(first);
        let again = WorkDir::open(&path).expect("it is free");
        assert_eq!(again.host(), host);
        let other = WorkDir::open(&folder.path().join("other")).expect("it");
        assert_ne!(other.host(), host);
    }

    #[test]
    fn a_lock_that_is_released_soon_is_waited_for_and_a_lasting_one_is_not() {
        let tries = std::cell::Cell::new(0);
        let taken_at = |nth: u32| {
            tries.set(0);
            let take = || {
                tries.set(tries.get() + 1);
                Ok(tries.get() >= nth)
            };
            with_retries(take, |_| {}).expect("a disk")
        };
        assert!(taken_at(1) && tries.get() == 1);
        assert!(taken_at(3) && tries.get() == 3);
        assert!(taken_at(TRIES) && tries.get() == TRIES);
        assert!(!taken_at(TRIES + 1) && tries.get() == TRIES);
    }
}
