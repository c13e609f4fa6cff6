//! The file with the removed keys of a key file, next to it: a key that was removed by mistake can be put back.
//!
//! Only its owner can read it. Lines are only added; the operator deletes the file. Nothing reads keys from it.
//! Not here: which keys are removed (`edit.rs`).

use super::{KeyFileError, read, set_owner, sync_folder};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Path of the file: that of the key file with `.retired`.
pub(super) fn path_of(key_file: &Path) -> PathBuf {
    let mut name = key_file.as_os_str().to_owned();
    name.push(".retired");
    name.into()
}

/// Adds lines that the file lacks, durably.
pub(super) fn append(key_file: &Path, lines: &str, owner: &Metadata) -> Result<(), KeyFileError> {
    let path = path_of(key_file);
    let io = |error| KeyFileError::Io(path.clone(), error);
    let mut file = open(&path, owner)?;
    let present = read(&path, &file)?;
    let mut text = Zeroizing::new(String::new());
    for line in lines.lines() {
        if !present.lines().any(|it| it == line) {
            text.push_str(line);
            text.push('\n');
        }
    }
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_folder(&path))
        .map_err(io)
}

/// Opens the file, or creates it with mode 600 and this owner.
///
/// The folder may belong to the broker's user while root runs this: a link is not followed, only a new file is
/// given to another owner, and a file of anybody else is not written.
fn open(path: &Path, owner: &Metadata) -> Result<File, KeyFileError> {
    let io = |error| KeyFileError::Io(path.to_owned(), error);
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).mode(0o600);
    let options = options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            set_owner(&file, owner).map_err(io)?;
            return Ok(file);
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error)),
    }
    let foreign = || KeyFileError::Foreign(path.to_owned());
    let is_link = |error: &Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    let file = match options.open(path) {
        Err(error) if is_link(&error) => return Err(foreign()),
        opened => opened.map_err(io)?,
    };
    let found = file.metadata().map_err(io)?;
    let is_own = [owner.uid(), geteuid().as_raw()].contains(&found.uid());
    match found.is_file() && found.nlink() == 1 && is_own {
        true => Ok(file),
        false => Err(foreign()),
    }
}
