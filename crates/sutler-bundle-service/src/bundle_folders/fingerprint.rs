//! Fingerprints of folders: names, sizes and times show whether a bundle must be read again.
//!
//! Contents are read by `version_store.rs`.

use crate::version_store::manifest_file;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind::NotADirectory, ErrorKind::NotFound, ErrorKind::PermissionDenied};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sutler_bundle::MANIFEST_FILES;
use sutler_registry::ListError;

/// Maximum entries read per bundle.
const ENTRIES_MAX: usize = 20_000;
/// Maximum entries read per folder of bundles.
const SIBLINGS_MAX: usize = 10_000;

/// Hash of a folder that changes when an entry changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

/// Bundles of a folder, in the order of names: the folder itself, or its sub-folders that have a manifest.
pub(super) fn listing(root: &Path) -> Result<Vec<PathBuf>, ListError> {
    if manifest_file(root).is_some() {
        return Ok(vec![root.to_owned()]);
    }
    let failed = |error: io::Error| {
        let sentence = format!(
            "{} cannot be listed: {error}. What it had before stays offered; make it readable, or \
             leave it out of the configuration",
            root.display()
        );
        match error.kind() {
            PermissionDenied => ListError::Denied(sentence),
            _ => ListError::Unreachable(sentence),
        }
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        found.push(entry.map_err(failed)?.path());
        if found.len() > SIBLINGS_MAX {
            return Err(ListError::TooMuch(format!(
                "{} has too much in it: more than {SIBLINGS_MAX} things. What it had before stays offered; \
                 move what is no bundle elsewhere",
                root.display()
            )));
        }
    }
    found.retain(|path| may_be_bundle(path));
    found.sort_unstable();
    Ok(found)
}

/// Whether a path may be a bundle's folder. An unreadable one may be: reading it reports the fault.
pub(super) fn may_be_bundle(path: &Path) -> bool {
    let is = |found: io::Result<fs::Metadata>, is: fn(&fs::Metadata) -> bool| match found {
        Ok(found) => is(&found),
        Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
    };
    is(fs::metadata(path), fs::Metadata::is_dir)
        && MANIFEST_FILES
            .iter()
            .any(|name| is(fs::metadata(path.join(name)), fs::Metadata::is_file))
}

/// Fingerprint of a bundle's folder.
pub(super) fn fingerprint(folder: &Path) -> Result<Fingerprint, String> {
    let mut hasher = DefaultHasher::new();
    let mut left = ENTRIES_MAX;
    mark(folder, &mut hasher, &mut left)
        .map_err(|error| format!("{} cannot be looked at: {error}", folder.display()))?;
    Ok(Fingerprint(hasher.finish()))
}

fn mark(path: &Path, hasher: &mut DefaultHasher, left: &mut usize) -> std::io::Result<()> {
    // Folders over the limit are refused when they are read.
    if *left == 0 {
        return Ok(());
    }
    *left -= 1;
    let found = fs::symlink_metadata(path)?;
    path.hash(hasher);
    (found.mode(), found.ino()).hash(hasher);
    if !found.is_dir() {
        (found.len(), found.mtime(), found.mtime_nsec()).hash(hasher);
        (found.ctime(), found.ctime_nsec()).hash(hasher);
        return Ok(());
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(path)?.take(*left) {
        let entry = entry?;
        let name = entry.file_name();
        if !crate::version_store::LEFT_OUT.iter().any(|it| name == *it) {
            inside.push(entry.path());
        }
    }
    inside.sort_unstable();
    inside.iter().try_for_each(|it| mark(it, hasher, left))
}
