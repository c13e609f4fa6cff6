//! Copies a bundle's folder and computes the digest of its content.
//!
//! The digest covers names, contents, links and executable bits only, so the same bundle has the same digest on
//! every host. Links that leave the folder are refused, and so is everything that is not a file, folder or link.
//! Sizes are bounded.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Maximum bytes of a bundle.
pub(super) const BYTES_MAX: u64 = 256 << 20;
/// Maximum files, folders and links of a bundle.
pub(super) const ENTRIES_MAX: usize = 10_000;
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 32;
/// First bytes of the hashed data; another layout of that data would get another number.
const LAYOUT: &[u8] = b"sutler bundle 1\n";
/// Folders of tools that are not part of the bundle.
pub(crate) const LEFT_OUT: [&str; 3] = [".git", ".sutler", "__pycache__"];

/// Why a folder cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum FolderTreeError {
    /// Something that is neither file, folder nor link.
    #[error("{0} is neither a file nor a folder: remove it from the bundle")]
    Strange(PathBuf),
    /// A link that leaves the folder.
    #[error("{0} is a link that leaves the bundle: copy what it points to into the bundle")]
    Leaves(PathBuf),
    /// A name that is not UTF-8.
    #[error("{0:?} has a name that is not UTF-8: rename it")]
    Name(PathBuf),
    /// A limit is exceeded.
    #[error(
        "{0} is larger than a bundle may be ({ENTRIES_MAX} entries, {DEPTH_MAX} levels, \
         {BYTES_MAX} bytes): leave out what is not needed to run it"
    )]
    TooLarge(PathBuf),
    /// A file cannot be read or written.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] io::Error),
}

/// One entry of a folder.
enum TreeEntry {
    Folder,
    Link(String),
    File { executable: bool },
}

/// Copies a folder, read-only, and returns its digest. The target must not exist. The contents are synced to disk;
/// the target's own name is not.
pub(super) fn copy(from: &Path, to: &Path) -> Result<String, FolderTreeError> {
    let mut walk = TreeWalk::new(from, Some(to));
    walk.folder(Path::new(""), 0)?;
    Ok(walk.name())
}

/// Digest of a folder's content.
pub(super) fn digest(folder: &Path) -> Result<String, FolderTreeError> {
    let mut walk = TreeWalk::new(folder, None);
    walk.folder(Path::new(""), 0)?;
    Ok(walk.name())
}

struct TreeWalk<'a> {
    from: &'a Path,
    to: Option<&'a Path>,
    hash: Sha256,
    entries: usize,
    bytes: u64,
}

impl<'a> TreeWalk<'a> {
    fn new(from: &'a Path, to: Option<&'a Path>) -> Self {
        let mut hash = Sha256::new();
        hash.update(LAYOUT);
        Self {
            from,
            to,
            hash,
            entries: 0,
            bytes: 0,
        }
    }

    fn name(self) -> String {
        let digest = self.hash.finalize();
        digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Processes all entries of a folder, in the order of names.
    fn folder(&mut self, at: &Path, depth: usize) -> Result<(), FolderTreeError> {
        let path = self.from.join(at);
        if depth > DEPTH_MAX {
            return Err(FolderTreeError::TooLarge(path));
        }
        let disk = |error| FolderTreeError::Disk(path.clone(), error);
        if let Some(to) = self.to {
            fs::create_dir(to.join(at)).map_err(disk)?;
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(disk)? {
            let entry = entry.map_err(disk)?;
            let name = entry.file_name().into_string();
            names.push(name.map_err(|_| FolderTreeError::Name(entry.path()))?);
        }
        names.retain(|name| !LEFT_OUT.contains(&name.as_str()));
        names.sort_unstable();
        for name in names {
            self.entry(&at.join(name), depth)?;
        }
        if let Some(to) = self.to {
            let read_only = fs::Permissions::from_mode(0o555);
            fs::set_permissions(to.join(at), read_only).map_err(disk)?;
            let folder = fs::File::open(to.join(at)).map_err(disk)?;
            folder.sync_all().map_err(disk)?;
        }
        Ok(())
    }

    fn entry(&mut self, at: &Path, depth: usize) -> Result<(), FolderTreeError> {
        let path = self.from.join(at);
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(FolderTreeError::TooLarge(self.from.to_owned()));
        }
        match entry_kind(&path, at)? {
            TreeEntry::Folder => {
                self.count(b"d", at, 0);
                self.folder(at, depth + 1)
            }
            TreeEntry::Link(target) => {
                self.count(b"l", at, target.len() as u64);
                self.hash.update(target.as_bytes());
                let Some(to) = self.to else { return Ok(()) };
                std::os::unix::fs::symlink(&target, to.join(at))
                    .map_err(|error| FolderTreeError::Disk(path, error))
            }
            TreeEntry::File { executable } => {
                let read = self.file(&path, at, executable);
                read.map_err(|error| FolderTreeError::Disk(path.clone(), error))?
                    .then_some(())
                    .ok_or(FolderTreeError::TooLarge(path))
            }
        }
    }

    /// Reads a file once, for hash and copy. `false`: it is too large.
    fn file(&mut self, path: &Path, at: &Path, executable: bool) -> io::Result<bool> {
        let mut bytes = Vec::new();
        let left = BYTES_MAX - self.bytes;
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(path)?;
        file.take(left + 1).read_to_end(&mut bytes)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > BYTES_MAX {
            return Ok(false);
        }
        let kind: &[u8] = if executable { b"x" } else { b"f" };
        self.count(kind, at, bytes.len() as u64);
        self.hash.update(&bytes);
        if let Some(to) = self.to {
            let mode = if executable { 0o555 } else { 0o444 };
            let mut copy = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(to.join(at))?;
            copy.write_all(&bytes)?;
            copy.set_permissions(fs::Permissions::from_mode(mode))?;
            copy.sync_all()?;
        }
        Ok(true)
    }

    /// Hashes the header of an entry, so that different trees never give the same bytes.
    fn count(&mut self, kind: &[u8], at: &Path, length: u64) {
        let name = at.as_os_str().as_encoded_bytes();
        self.hash.update(kind);
        self.hash.update((name.len() as u64).to_be_bytes());
        self.hash.update(name);
        self.hash.update(length.to_be_bytes());
    }
}

/// Kind of an entry.
fn entry_kind(path: &Path, at: &Path) -> Result<TreeEntry, FolderTreeError> {
    let disk = |error| FolderTreeError::Disk(path.to_owned(), error);
    let found = fs::symlink_metadata(path).map_err(disk)?;
    let kind = found.file_type();
    if kind.is_dir() {
        return Ok(TreeEntry::Folder);
    }
    if kind.is_file() {
        let executable = found.permissions().mode() & 0o111 != 0;
        return Ok(TreeEntry::File { executable });
    }
    if kind.is_symlink() {
        let target = fs::read_link(path).map_err(disk)?;
        if leaves(at, &target) {
            return Err(FolderTreeError::Leaves(path.to_owned()));
        }
        let target = target.into_os_string().into_string();
        return target
            .map(TreeEntry::Link)
            .map_err(|_| FolderTreeError::Name(path.to_owned()));
    }
    Err(FolderTreeError::Strange(path.to_owned()))
}

/// Whether a link at this path leaves the folder.
fn leaves(at: &Path, target: &Path) -> bool {
    let mut depth = at.components().count().saturating_sub(1);
    for component in target.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => return true,
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::leaves;
    use std::path::Path;

    #[test]
    fn links_within_the_folder_stay_and_others_leave() {
        for (at, target, expected) in [
            ("a", "b", false),
            ("a", "./b/../c", false),
            ("d/a", "../b", false),
            ("d/e/a", "../../b", false),
            ("a", "../b", true),
            ("d/a", "../../b", true),
            ("d/a", "x/../../../b", true),
            ("a", "/etc/passwd", true),
        ] {
            let found = leaves(Path::new(at), Path::new(target));
            assert_eq!(found, expected, "{at} -> {target}");
        }
    }
}
