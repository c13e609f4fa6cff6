//! A key ring in a file that only its owner can read; created on first use.
//!
//! Without the file, everything sealed with it is lost: back it up separately from the store.

use crate::seal::{KeyRing, KeyRingError};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Largest key file read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// The name of the first key.
const FIRST_KEY: &str = "k1";

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or created.
    #[error("the key file {0} cannot be used: {1}")]
    Io(PathBuf, #[source] std::io::Error),
    /// Others could read it.
    #[error("the key file {0} can be read by others: run `chmod 600 {0}`")]
    Open(PathBuf),
    /// Its content is not a key ring.
    #[error("the key file {0} is not a key ring: {1}")]
    Content(PathBuf, #[source] KeyRingError),
}

impl KeyRing {
    /// Reads a key file, or creates one with a fresh key if there is none.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it is not a key ring.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, KeyFileError> {
        let path = path.as_ref();
        let io = |error| KeyFileError::Io(path.to_owned(), error);
        match create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(error)),
        }
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.mode() & 0o077 != 0 {
            return Err(KeyFileError::Open(path.to_owned()));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(io)?;
        Self::parse(&text).map_err(|error| KeyFileError::Content(path.to_owned(), error))
    }
}

/// Creates the file completely or not at all: another process may be doing the same.
fn create(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let draft = path.with_extension(format!("new-{}", uuid::Uuid::new_v4()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    let made = file
        .write_all(KeyRing::fresh_line(FIRST_KEY).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    if let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    made
}
