//! A key ring in a file that only its owner can read; created on first use.
//!
//! Without the file, everything sealed with it is lost: back it up separately from the store.
//! `key_file/edit.rs` adds, orders and removes keys, `key_file/retired_keys.rs` keeps the removed ones.

mod edit;
mod retired_keys;

pub use edit::{EditKeyFileError, KeyFileEdit};

use crate::seal::{KeyRing, KeyRingError};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
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
    /// It is a link, or belongs to somebody else.
    #[error("no key was written to {0}, which is a link or belongs to another user: remove it")]
    Foreign(PathBuf),
    /// It is larger than a key ring can be.
    #[error("the key file {0} is larger than {FILE_BYTES_MAX} bytes: is it the right file?")]
    TooLarge(PathBuf),
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
        match create(path, FIRST_KEY) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(KeyFileError::Io(path.to_owned(), error)),
        }
        Self::existing_file(path)
    }

    /// Reads a key file that exists.
    ///
    /// # Errors
    /// It cannot be read, others can read it, or it is not a key ring.
    pub fn existing_file(path: impl AsRef<Path>) -> Result<Self, KeyFileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| KeyFileError::Io(path.to_owned(), error))?;
        let text = read(path, &file)?;
        Self::parse(&text).map_err(|error| KeyFileError::Content(path.to_owned(), error))
    }
}

/// The text of a key file that only its owner can read.
fn read(path: &Path, file: &File) -> Result<Zeroizing<String>, KeyFileError> {
    let io = |error| KeyFileError::Io(path.to_owned(), error);
    if file.metadata().map_err(io)?.mode() & 0o077 != 0 {
        return Err(KeyFileError::Open(path.to_owned()));
    }
    let mut text = Zeroizing::new(String::new());
    // One byte more, so that a larger file is not cut off without notice.
    let mut some = file.take(FILE_BYTES_MAX + 1);
    some.read_to_string(&mut text).map_err(io)?;
    check_size(path, &text)?;
    Ok(text)
}

fn check_size(path: &Path, text: &str) -> Result<(), KeyFileError> {
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(KeyFileError::TooLarge(path.to_owned())),
        false => Ok(()),
    }
}

/// Gives a new file the owner of another one.
fn set_owner(file: &File, of: &Metadata) -> std::io::Result<()> {
    let own = file.metadata()?;
    match (own.uid(), own.gid()) == (of.uid(), of.gid()) {
        true => Ok(()),
        false => fchown(file, Some(of.uid()), Some(of.gid())),
    }
}

/// Creates the file completely or not at all: another process may be doing the same.
fn create(path: &Path, id: &str) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let (mut file, draft) = draft_of(path)?;
    let made = file
        .write_all(KeyRing::fresh_line(id).as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft)?;
    sync_folder(path)?;
    made
}

/// A new file in the same folder that only its owner can read.
fn draft_of(path: &Path) -> std::io::Result<(File, PathBuf)> {
    let draft = path.with_extension(format!("new-{}", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    Ok((file, draft))
}

/// Makes the entry of a file in its folder durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}
