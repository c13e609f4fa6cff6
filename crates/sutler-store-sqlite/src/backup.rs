//! Backup of the file while it is in use.
//!
//! Written under a temporary name, checked, and only then renamed: a file with the final name is
//! a complete copy. Copies some pages at a time, so commits continue. Not here: restoring, which is
//! stopping the program and replacing the file by the copy.

use crate::file_lock::with_suffix;
use crate::sql;
use crate::store::{SqliteShared, SqliteStore};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::StoreError;
use tokio::task;

/// Pages copied in one step; writers and closing proceed between two steps: 4 MiB.
const STEP_PAGES: i32 = 1024;

/// Progress of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages copied.
    pub copied: u64,
    /// Pages in all.
    pub total: u64,
}

/// Why a backup failed. Nothing is left under its name.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The target exists.
    #[error("{} exists already; name another file, or remove it first", .0.display())]
    Exists(PathBuf),
    /// The copy is invalid.
    #[error("the copy was thrown away because it is not whole: {0}")]
    NotWhole(String),
    /// The store was closed during the backup.
    #[error("the store was closed before the copy was done")]
    Closed,
    /// The file system or the database failed.
    #[error("the copy could not be made ({doing})")]
    Failed {
        /// Step that failed.
        doing: &'static str,
        /// Cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl BackupError {
    fn failed<E>(doing: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |cause| Self::Failed {
            doing,
            cause: cause.into(),
        }
    }
}

impl SqliteStore {
    /// Copies the store to a new file while it is in use, and checks the copy.
    ///
    /// # Guarantees
    /// The copy contains every commit acknowledged before the call, and none partially. The name
    /// appears only when the copy is complete and on the disk.
    ///
    /// # Errors
    /// See [`BackupError`]; none of them harms the store itself.
    pub async fn backup(
        &self,
        to: impl AsRef<Path>,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<(), BackupError> {
        let to = to.as_ref().to_owned();
        let shared = Arc::clone(&self.shared);
        task::spawn_blocking(move || {
            let partial = with_suffix(&to, ".partial");
            let made = make(&shared, &to, &partial, progress);
            if made.is_err() {
                // It may not exist.
                let _ = fs::remove_file(&partial);
            }
            made
        })
        .await
        .unwrap_or_else(|cause| Err(BackupError::failed("the runtime is ending")(cause)))
    }
}

fn make(
    shared: &SqliteShared,
    to: &Path,
    partial: &Path,
    progress: impl FnMut(BackupProgress),
) -> Result<(), BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // Left by an interrupted backup.
    let _ = fs::remove_file(partial);
    // Held until the end: closing a descriptor of a file releases SQLite's locks on it.
    let file = create(partial).map_err(BackupError::failed("making the file"))?;
    copy(shared, partial, progress)?;
    verify(partial)?;
    file.sync_all().map_err(BackupError::failed("syncing it"))?;
    fs::rename(partial, to).map_err(BackupError::failed("naming it"))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))
        .and_then(|folder| folder.sync_all())
        .map_err(BackupError::failed("syncing its directory"))
}

/// Creates the file, which only its owner can read. On Linux it is locked, so that nobody takes it for one that an
/// interrupted backup has left.
fn create(partial: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)?;
    if cfg!(target_os = "linux") {
        file.try_lock()?;
    }
    Ok(file)
}

fn copy(
    shared: &SqliteShared,
    partial: &Path,
    mut progress: impl FnMut(BackupProgress),
) -> Result<(), BackupError> {
    let reader = shared
        .readers
        .take()
        .map_err(|reason| BackupError::failed("reading the store")(StoreError::from(reason)))?;
    // One snapshot for all steps: otherwise every commit in between would restart the copy.
    let view = reader
        .unchecked_transaction()
        .map_err(BackupError::failed("reading the store"))?;
    view.query_row(sql::TALLY_READ, [], |_| Ok(()))
        .map_err(BackupError::failed("reading the store"))?;
    let mut copy = Connection::open_with_flags(partial, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(BackupError::failed("making the file"))?;
    let backup = Backup::new(&view, &mut copy).map_err(BackupError::failed("beginning"))?;
    loop {
        let step = backup
            .step(STEP_PAGES)
            .map_err(BackupError::failed("copying"))?;
        let so_far = backup.progress();
        let total = so_far.pagecount.unsigned_abs().into();
        progress(BackupProgress {
            copied: total - u64::from(so_far.remaining.unsigned_abs()),
            total,
        });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More if shared.readers.is_open() => {}
            StepResult::More => return Err(BackupError::Closed),
            StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(5)),
            _ => return Err(BackupError::NotWhole("it ended in an unknown way".into())),
        }
    }
}

/// Checks the copy independently: its structure, its indexes, its counts.
fn verify(partial: &Path) -> Result<(), BackupError> {
    let checking = || BackupError::failed("checking it");
    let copy = Connection::open_with_flags(partial, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(checking())?;
    // A copy of a file with a write-ahead log is marked to have one; a backup is a single file.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
        .map_err(checking())?;
    let verdict: String = copy
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(checking())?;
    if verdict != "ok" {
        return Err(BackupError::NotWhole(verdict));
    }
    let (operations, counted): (i64, i64) = copy
        .query_row(sql::COUNTS, [], |row| Ok((row.get(1)?, row.get(2)?)))
        .map_err(checking())?;
    if operations != counted {
        return Err(BackupError::NotWhole(format!(
            "it has {operations} operations where {counted} were counted"
        )));
    }
    Ok(())
}
