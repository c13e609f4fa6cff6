//! Backup of the database while it is in use, streamed to the operator.
//!
//! The copy is written to a file of its own in the same directory, opened, and unlinked at once, so that no copy
//! is left behind; the incomplete one of a crash is removed at the next start. The copy itself is made by the store.

use super::response::AdminError;
use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use hyper::Response;
use std::fs::{DirEntry, File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler_journal::OperationId;
use sutler_server::{ChunkSender, streamed_response};

/// Beginning of the name of a copy; the rest is a fresh id.
const PREFIX: &str = "backup-";
/// End of the name while the store writes it.
const PARTIAL: &str = ".partial";
/// Bytes sent at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A store that can be copied while it is in use.
#[async_trait]
pub trait Backup: Send + Sync + 'static {
    /// Writes a complete copy to a path that does not exist yet, or leaves no file there. Until it is complete, its
    /// name may end in `.partial`; such a file is locked, and one that a crash left is removed at the next start.
    async fn copy_to(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// A store, and the folder for temporary copies.
#[derive(Clone)]
pub(crate) struct BackupSource {
    pub store: Arc<dyn Backup>,
    pub folder: PathBuf,
}

impl BackupSource {
    /// Removes incomplete copies that a crash has left. One that is being made is locked and stays.
    pub(crate) fn remove_leftovers(&self) {
        let folder = match self.folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.folder,
        };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(is_partial_copy) {
            let path = entry.path();
            let file = path.display();
            match remove_unlocked(&path) {
                Ok(true) => {
                    tracing::info!(%file, "an incomplete copy of the database was removed")
                }
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%file, %error, "an incomplete copy of the database cannot be removed");
                }
            }
        }
    }

    /// Makes a copy and streams it.
    pub(crate) async fn send(&self) -> Result<Response<Body>, AdminError> {
        let source = self.clone();
        // In a task of its own: a client that goes away must not leave a copy behind.
        let made = tokio::spawn(async move { source.make_unnamed().await });
        let made = made.await;
        let file = made.map_err(|error| AdminError::internal(&error.to_string()))??;
        let (response, pieces) = streamed_response("application/vnd.sqlite3");
        tokio::task::spawn_blocking(move || send(file, &pieces));
        Ok(response)
    }

    /// Makes a copy, opens it, and removes its name.
    async fn make_unnamed(&self) -> Result<File, AdminError> {
        let name = format!("{PREFIX}{}", OperationId::fresh());
        let path = self.folder.join(name);
        if let Err(error) = self.store.copy_to(&path).await {
            let cause = std::iter::successors(error.source(), |it| it.source())
                .fold(error.to_string(), |text, it| format!("{text}: {it}"));
            return Err(AdminError::internal(&cause));
        }
        let opened = File::open(&path);
        let removed = std::fs::remove_file(&path);
        let file = opened.map_err(|error| AdminError::internal(&error.to_string()))?;
        if let Err(error) = removed {
            tracing::warn!(%error, "a copy of the database was left behind; remove it");
        }
        Ok(file)
    }
}

/// Whether an entry of the folder is a regular file with the name of an incomplete copy.
fn is_partial_copy(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let id = name.to_str().and_then(|it| it.strip_prefix(PREFIX));
    let id = id.and_then(|it| it.strip_suffix(PARTIAL));
    let is_named = id.and_then(OperationId::parse).is_some();
    // Does not follow a link.
    is_named && entry.file_type().is_ok_and(|it| it.is_file())
}

/// Removes an incomplete copy and its journal; `false` if it is in use.
fn remove_unlocked(path: &Path) -> io::Result<bool> {
    match File::open(path)?.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    std::fs::remove_file(path)?;
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    // There may be none.
    let _ = std::fs::remove_file(journal);
    Ok(true)
}

fn send(mut file: File, pieces: &ChunkSender) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read(&mut piece).map(|count| {
            piece.truncate(count);
            Bytes::from(piece)
        });
        let last = read.as_ref().map_or(true, Bytes::is_empty);
        let ended = matches!(&read, Ok(piece) if piece.is_empty());
        // The client may have disconnected.
        if ended || pieces.blocking_send(read.map_err(log_read_error)).is_err() || last {
            return;
        }
    }
}

fn log_read_error(error: io::Error) -> io::Error {
    tracing::warn!(%error, "a copy of the database could not be read to its end");
    error
}
