//! The file with the removed keys of a key file, next to it: a key that was removed by mistake can be put back.
//!
//! Only its owner can read it. Lines are only added; the operator deletes the file. Nothing reads keys from it.
//! Not here: which keys are removed (`edit.rs`).

use super::{KeyFileError, read, set_owner, sync_folder};
use std::fs::{Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Path of the file: that of the key file with `.retired`.
pub(super) fn path_of(key_file: &Path) -> PathBuf {
    let mut name = key_file.as_os_str().to_owned();
    name.push(".retired");
    name.into()
}

/// Adds lines that the file lacks, durably. A new file gets mode 600 and this owner.
pub(super) fn append(key_file: &Path, lines: &str, owner: &Metadata) -> Result<(), KeyFileError> {
    let path = path_of(key_file);
    let io = |error| KeyFileError::Io(path.clone(), error);
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let mut file = options.open(&path).map_err(io)?;
    let present = read(&path, &file)?;
    let mut text = Zeroizing::new(String::new());
    for line in lines.lines() {
        if !present.lines().any(|it| it == line) {
            text.push_str(line);
            text.push('\n');
        }
    }
    set_owner(&file, owner)
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_folder(&path))
        .map_err(io)
}
