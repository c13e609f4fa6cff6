//! Lock of the file: leases are in the memory of one process, so a second one could not see them.
//!
//! The lock is on a separate file next to the database, because SQLite's own locks are released after each
//! transaction. Symbolic links are resolved first, so that every path leads to the same lock file. On Linux the
//! database file is locked as well, by `flock`, which does not affect SQLite's own locks there: that lock also
//! holds if the lock file was removed, or if the file has another hard link. The operating system releases both
//! when the process ends, however it ends.

use crate::settings::SqliteOpenError;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Attempts to lock while another process ends, and the pause between two. A process that was killed during
/// a fork leaves the lock in its child for a moment, until the child executes its program.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Device and inode of a file.
type FileId = (u64, u64);

/// Database files that this process has locked. Such a file must not be opened once more: when any
/// descriptor of a file is closed, the operating system releases all of SQLite's locks on it.
static OWNED: Mutex<Option<HashSet<FileId>>> = Mutex::new(None);

/// Held while the store is open.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    file: FileId,
    _lock: File,
    _database: File,
}

impl FileLock {
    /// Locks the file for this store, or fails if a process holds it. Creates the file if there is none.
    pub(crate) fn of(path: &Path) -> Result<Self, SqliteOpenError> {
        for _ in 0..TRIES {
            if let Some(lock) = Self::attempt(path)? {
                return Ok(lock);
            }
            std::thread::sleep(PAUSE);
        }
        Err(SqliteOpenError::InUse {
            path: path.to_owned(),
        })
    }

    /// Path of the file without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `None` if the file is in use.
    fn attempt(path: &Path) -> Result<Option<Self>, SqliteOpenError> {
        let failed = |doing| move |cause| SqliteOpenError::failed(path, doing, cause);
        let mut owned = owned();
        let owned = owned.get_or_insert_default();
        if fs::metadata(path).is_ok_and(|file| owned.contains(&id_of(&file))) {
            return Ok(None);
        }
        let database = open(path, OFlags::empty()).map_err(failed("opening"))?;
        if cfg!(target_os = "linux") && !locked(&database).map_err(failed("its lock"))? {
            return Ok(None);
        }
        let path = fs::canonicalize(path).map_err(failed("opening"))?;
        let lock_path = with_suffix(&path, ".lock");
        let lock = open_lock(&lock_path).map_err(failed("its lock file"))?;
        let is_free = locked(&lock).map_err(failed("its lock"))?;
        // One of them may have been removed or replaced since it was opened.
        if !is_free || !is_at(&lock, &lock_path) || !is_at(&database, &path) {
            return Ok(None);
        }
        let file = database.metadata().map_err(failed("opening"))?;
        let file = id_of(&file);
        owned.insert(file);
        Ok(Some(Self {
            path,
            file,
            _lock: lock,
            _database: database,
        }))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(owned) = &mut *owned() {
            owned.remove(&self.file);
        }
    }
}

fn owned() -> MutexGuard<'static, Option<HashSet<FileId>>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id_of(file: &fs::Metadata) -> FileId {
    (file.dev(), file.ino())
}

/// Opens a file, or creates an empty one that only its owner can read. SQLite gives the mode of the database to its
/// other files.
fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let options = options.mode(0o600).custom_flags(flags.bits() as i32);
    options.open(path)
}

/// Opens or creates the lock file, and follows no link: users who can write to the folder could otherwise let root
/// create a file anywhere.
fn open_lock(path: &Path) -> io::Result<File> {
    let is_link = |error: &io::Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    match open(path, OFlags::NOFOLLOW) {
        Err(error) if is_link(&error) => Err(io::Error::new(
            error.kind(),
            "it is a symbolic link: remove it",
        )),
        opened => opened,
    }
}

/// Locks a file; `false` if another one holds it.
fn locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => id_of(&open) == id_of(&there),
        _ => false,
    }
}

/// The same path with a suffix on the file's name.
pub(crate) fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
