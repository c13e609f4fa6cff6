//! Settings of a store, and the errors of opening it.
//!
//! Not here: the pragmas, which are fixed (`schema.rs`).

#[cfg(any(test, feature = "testing"))]
use crate::faults::Faults;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use sutler_journal::{Clock, SystemClock};

/// Settings of a store. The defaults are right for a broker.
#[derive(Clone)]
pub struct SqliteSettings {
    /// Clock for leases and due times.
    pub clock: Arc<dyn Clock>,
    /// Page cache of the writer, in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each reader, in KiB.
    pub reader_cache_kib: u32,
    /// Cuts and stalls for tests.
    #[cfg(any(test, feature = "testing"))]
    pub faults: Faults,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::default()),
            writer_cache_kib: 8 * 1024,
            reader_cache_kib: 512,
            #[cfg(any(test, feature = "testing"))]
            faults: Faults::default(),
        }
    }
}

impl fmt::Debug for SqliteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSettings")
            .field("writer_cache_kib", &self.writer_cache_kib)
            .field("reader_cache_kib", &self.reader_cache_kib)
            .finish_non_exhaustive()
    }
}

/// Why a file cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// Another process has locked it.
    #[error(
        "{} is in use by another process; stop that one, or give this one a file of its own",
        path.display()
    )]
    InUse {
        /// Path of the file.
        path: PathBuf,
    },
    /// It is not a store.
    #[error(
        "{} is not a Sutler store; name another file, this one was left as it is",
        path.display()
    )]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// A later version of this program wrote it.
    #[error(
        "{} has layout {found}, this program knows layouts up to {known}: use the newer program, or \
         a backup made before it was upgraded",
        path.display()
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Layout version of the file.
        found: i64,
        /// Newest layout version that this program knows.
        known: i64,
    },
    /// The file system or the database failed.
    #[error("{} cannot be opened ({doing})", path.display())]
    Failed {
        /// Path of the file.
        path: PathBuf,
        /// Step that failed.
        doing: &'static str,
        /// Cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SqliteOpenError {
    /// The same error with the name that the file was opened by.
    pub(crate) fn named(mut self, given: PathBuf) -> Self {
        match &mut self {
            Self::InUse { path }
            | Self::Foreign { path }
            | Self::Newer { path, .. }
            | Self::Failed { path, .. } => *path = given,
        }
        self
    }

    pub(crate) fn failed(
        path: &std::path::Path,
        doing: &'static str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Failed {
            path: path.to_owned(),
            doing,
            cause: cause.into(),
        }
    }
}
