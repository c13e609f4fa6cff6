//! Files of a bundle's folder: finds the manifest and lists every entry, within limits.
//!
//! Checks are `inspect.rs`, images `pack.rs`.

use crate::manifest::{MANIFEST_BYTES_MAX, MANIFEST_FILES, Manifest, ManifestError};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of files and folders of a bundle.
pub const FOLDER_ENTRIES_MAX: usize = 10_000;

/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 32;

/// Names that are left out at any depth: files of a checkout, and leftovers of runs.
const LEFT_OUT: [&str; 3] = [".git", ".sutler", "__pycache__"];

/// Why a bundle's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The path is not a folder, or cannot be read.
    #[error("{} cannot be read: see that it is there and that you may read it", .path.display())]
    Unreadable {
        /// Path that cannot be read.
        path: PathBuf,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The folder holds no manifest.
    #[error(
        "{} has no manifest: write a bundle.yml, or begin with `sutler bundle new`",
        .0.display()
    )]
    NoManifest(PathBuf),
    /// The folder exceeds a limit of bundles.
    #[error("{} {reason}", .path.display())]
    TooMuch {
        /// The folder.
        path: PathBuf,
        /// The exceeded limit, and what to do.
        reason: String,
    },
    /// The manifest has faults.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Manifest file of a folder.
#[derive(Clone, Debug)]
pub struct FoundManifest {
    /// Name of the file.
    pub file: &'static str,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Finds the manifest of a folder.
///
/// # Errors
/// The folder has no manifest, or it cannot be read.
pub fn find_manifest(folder: &Path) -> Result<FoundManifest, FolderError> {
    let unreadable = |path: &Path, source| FolderError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let there = std::fs::metadata(folder).map_err(|source| unreadable(folder, source))?;
    let file = MANIFEST_FILES
        .into_iter()
        .find(|file| folder.join(file).is_file());
    let Some(file) = file.filter(|_| there.is_dir()) else {
        return Err(FolderError::NoManifest(folder.to_owned()));
    };
    let path = folder.join(file);
    let opened = File::open(&path).map_err(|source| unreadable(&path, source))?;
    let mut bytes = Vec::new();
    // One byte over the limit is enough to refuse the manifest.
    opened
        .take(MANIFEST_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| unreadable(&path, source))?;
    Ok(FoundManifest { file, bytes })
}

/// Reads the manifest of a folder.
///
/// # Errors
/// The folder has no manifest, it cannot be read, or it has faults.
pub fn read_manifest(folder: &Path) -> Result<Manifest, FolderError> {
    let found = find_manifest(folder)?;
    Ok(Manifest::load(&found.bytes, found.file)?)
}

/// Kind of a folder entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Size in bytes.
        bytes: u64,
        /// Whether it may be executed.
        executable: bool,
        /// Whether all users may write to it.
        open: bool,
    },
    /// A symbolic link.
    Link {
        /// Target of the link, unresolved.
        target: PathBuf,
    },
    /// A pipe, a socket or a device.
    Strange,
}

/// An entry of a bundle's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its path below the folder, with `/` between its parts.
    pub path: String,
    /// Its kind.
    pub kind: EntryKind,
}

impl FolderEntry {
    /// Whether it is a link that leads out of the folder.
    #[must_use]
    pub fn leads_out(&self) -> bool {
        let EntryKind::Link { target } = &self.kind else {
            return false;
        };
        let mut depth = self.path.matches('/').count();
        for part in target.components() {
            match part {
                Component::Normal(_) => depth += 1,
                Component::CurDir => (),
                Component::ParentDir if depth > 0 => depth -= 1,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
            }
        }
        false
    }
}

/// Lists everything in a bundle's folder, sorted by path; links are listed, not followed.
///
/// # Errors
/// An entry cannot be read or has a name that is not UTF-8, or a limit is exceeded.
pub fn entries(folder: &Path) -> Result<Vec<FolderEntry>, FolderError> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        let path = folder.join(&below);
        let unreadable = |source| FolderError::Unreadable {
            path: path.clone(),
            source,
        };
        for entry in std::fs::read_dir(&path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let too_much = |reason: &str| FolderError::TooMuch {
                path: path.clone(),
                reason: reason.to_owned(),
            };
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                return Err(too_much("has a file whose name is no UTF-8: rename it"));
            };
            if LEFT_OUT.contains(&name) {
                continue;
            }
            let path = match below.as_str() {
                "" => name.to_owned(),
                below => format!("{below}/{name}"),
            };
            let kind = kind(&entry.path()).map_err(unreadable)?;
            if kind == EntryKind::Folder {
                open.push((path.clone(), depth + 1));
            }
            if depth >= DEPTH_MAX || found.len() >= FOLDER_ENTRIES_MAX {
                let reason = format!(
                    "has more than {FOLDER_ENTRIES_MAX} files, or folders more than {DEPTH_MAX} \
                     deep: keep only what the bundle needs in it"
                );
                return Err(too_much(&reason));
            }
            found.push(FolderEntry { path, kind });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn kind(path: &Path) -> std::io::Result<EntryKind> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mode = metadata.permissions().mode();
    Ok(if metadata.is_dir() {
        EntryKind::Folder
    } else if metadata.is_symlink() {
        EntryKind::Link {
            target: std::fs::read_link(path)?,
        }
    } else if metadata.is_file() {
        EntryKind::File {
            bytes: metadata.len(),
            executable: mode & 0o111 != 0,
            open: mode & 0o002 != 0,
        }
    } else {
        EntryKind::Strange
    })
}

#[cfg(test)]
mod tests {
    use super::{EntryKind, FolderEntry};

    #[test]
    fn links_within_the_folder_are_fine_and_others_are_not() {
        for (path, target, out) in [
            ("a", "b", false),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a", "../a", true),
            ("a/b/c", "../../x/../y", false),
            ("a", "/etc/passwd", true),
            ("a", "b/../../c", true),
        ] {
            let entry = FolderEntry {
                path: path.to_owned(),
                kind: EntryKind::Link {
                    target: target.into(),
                },
            };
            assert_eq!(entry.leads_out(), out, "{path} -> {target}");
        }
    }
}
