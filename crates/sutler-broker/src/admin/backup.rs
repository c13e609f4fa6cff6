//! Backup of the database while it is in use, streamed to the operator.
//!
//! The copy is written to a file of its own in the same directory, opened, and unlinked at once, so that no copy
//! is ever left behind. The copy itself is made by the store.

use super::response::AdminError;
use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use hyper::Response;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler_journal::OperationId;
use sutler_server::{ChunkSender, streamed_response};

/// Bytes sent at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A store that can be copied while it is in use.
#[async_trait]
pub trait Backup: Send + Sync + 'static {
    /// Writes a complete copy to a path that does not exist yet, or leaves no file there.
    async fn copy_to(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// A store, and the folder for temporary copies.
#[derive(Clone)]
pub(crate) struct BackupSource {
    pub store: Arc<dyn Backup>,
    pub folder: PathBuf,
}

impl BackupSource {
    /// Makes a copy and streams it.
    pub(crate) async fn send(&self) -> Result<Response<Body>, AdminError> {
        let path = self.folder.join(format!("backup-{}", OperationId::fresh()));
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
        let (response, pieces) = streamed_response("application/vnd.sqlite3");
        tokio::task::spawn_blocking(move || send(file, &pieces));
        Ok(response)
    }
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
