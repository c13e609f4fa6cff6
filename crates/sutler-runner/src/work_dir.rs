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

/// How often somebody who goes is waited for, and how long between two looks. A process that was killed while
/// it started another lives on in that one until its program begins, lock and all: for a moment only.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Longest name of a host that is read.
const HOST_BYTES_MAX: usize = 40;

/// Why a working directory cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    /// Another process has it.
    #[error(
        "{0} is in use by another process: stop that one, or give each broker a folder of its own"
    )]
    InUse(PathBuf),
    /// The disk does not do its part.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] io::Error),
}

/// A working directory, for as long as it lives.
#[derive(Debug)]
pub struct WorkDir {
    path: PathBuf,
    host: String,
    _lock: File,
}

impl WorkDir {
    /// Opens it, and makes it if it is not there. Blocks for a moment.
    ///
    /// # Errors
    /// Another process has it, or the disk does not do its part.
    pub fn open(path: &Path) -> Result<Self, WorkDirError> {
        let disk = |error| WorkDirError::Disk(path.to_owned(), error);
        // Runs of another user must be able to pass through, and to list nothing.
        create_traversable_dir(path).map_err(disk)?;
        let path = path.canonicalize().map_err(disk)?;
        let lock = own_file(&path.join("lock")).map_err(disk)?;
        let take = || match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        };
        if !patiently(take, std::thread::sleep).map_err(disk)? {
            return Err(WorkDirError::InUse(path));
        }
        let host = host(&path.join("host")).map_err(disk)?;
        Ok(Self {
            path,
            host,
            _lock: lock,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of this host, made when the directory was.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// Tries until it is taken; false: somebody has it who stays.
fn patiently(
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

/// The host's name: what the system calls it, for people, and something that no other has.
fn host(path: &Path) -> io::Result<String> {
    let known = fs::read_to_string(path).unwrap_or_default();
    let known = known.trim();
    if !known.is_empty() && known.len() <= HOST_BYTES_MAX {
        return Ok(known.to_owned());
    }
    let called = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let called: String = called
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(20)
        .collect();
    let own = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("{called}-{}", &own[..16]);
    let aside = path.with_extension("new");
    let mut file = own_file(&aside)?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::{TRIES, WorkDir, WorkDirError, patiently};

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
    fn whoever_is_about_to_go_is_waited_for_and_whoever_stays_is_not() {
        let tries = std::cell::Cell::new(0);
        let taken_at = |nth: u32| {
            tries.set(0);
            let take = || {
                tries.set(tries.get() + 1);
                Ok(tries.get() >= nth)
            };
            patiently(take, |_| {}).expect("a disk")
        };
        assert!(taken_at(1) && tries.get() == 1);
        assert!(taken_at(3) && tries.get() == 3);
        assert!(taken_at(TRIES) && tries.get() == TRIES);
        assert!(!taken_at(TRIES + 1) && tries.get() == TRIES);
    }
}
