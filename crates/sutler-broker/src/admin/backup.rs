//! A copy of the database while it is in use, sent to the operator who asks for it.
//!
//! The copy is made beside the database under a name of its own, opened, and its name removed at once:
//! whatever happens, no copy is left behind. How a store copies itself is the store's business.

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
    /// Makes a whole copy under a name that does not exist yet, or leaves nothing there.
    async fn copy_to(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// A store, and the folder where a copy may lie for a moment.
#[derive(Clone)]
pub(crate) struct BackupSource {
    pub store: Arc<dyn Backup>,
    pub folder: PathBuf,
}

impl BackupSource {
    /// Makes a copy and sends it.
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
        // Whoever reads may have gone.
        if ended || pieces.blocking_send(read.map_err(log_read_error)).is_err() || last {
            return;
        }
    }
}

fn log_read_error(error: io::Error) -> io::Error {
    tracing::warn!(%error, "a copy of the database could not be read to its end");
    error
}
