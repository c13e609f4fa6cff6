//! Modes of the files of a store: only their owner can read them.
//!
//! New files are created in that way (`file_lock.rs`); an earlier program or a copy may have left others.

use crate::file_lock::with_suffix;
use crate::schema;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Makes a store's files private that belong to the user of this process. A file that is not a store stays as it is.
///
/// To be called before SQLite opens the file: closing a descriptor of it releases SQLite's locks.
pub(crate) fn make_private(database: &Path) {
    let files = ["", "-wal", "-shm", ".lock"].map(|it| with_suffix(database, it));
    let exposed = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|it| is_exposed(&it));
    let exposed: Vec<&Path> = files.iter().map(AsRef::as_ref).filter(exposed).collect();
    if exposed.is_empty() || !schema::is_store(database) {
        return;
    }
    for path in exposed {
        let file = path.display();
        match make_file_private(path) {
            Ok(()) => {
                tracing::warn!(%file, "others could read a file of the store; its mode is 600 now")
            }
            // SQLite removes its log when a connection is closed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%file, %error, "others can read a file of the store"),
        }
    }
}

/// Follows no link: users who can write to the folder choose what is at the path.
fn make_file_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.read(true);
    let options = options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(path)?;
    if is_exposed(&file.metadata()?) {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Whether a file of this process's user can be read or written by others.
fn is_exposed(file: &Metadata) -> bool {
    file.is_file() && file.uid() == geteuid().as_raw() && file.mode() & 0o077 != 0
}
