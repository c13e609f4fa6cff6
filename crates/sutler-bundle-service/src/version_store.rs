//! Immutable copies of bundles, each under the digest of its content.
//!
//! An instance is bound to the version that made it, so that version stays, even if its folder changes or
//! disappears. A copy is written under a temporary name, made read-only and renamed; its digest is checked when it
//! is first used. Allowed contents are `version_store/folder_digest.rs`; versions that are images are
//! `version_store/images.rs`. Watching folders is `bundle_folders.rs`.

mod folder_digest;
mod images;
mod spill_file;
mod unused;

pub(crate) use folder_digest::LEFT_OUT;
pub(crate) use images::ImageManifest;

use images::Images;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use sutler_bundle::{MANIFEST_BYTES_MAX, MANIFEST_FILES, Manifest, ManifestError};
use sutler_runner::create_traversable_dir;
use unused::UnusedVersions;

pub use folder_digest::FolderTreeError;

/// Name prefix of unfinished copies.
const TEMP_PREFIX: &str = ".new-";
/// Maximum manifests cached for copies that were not read otherwise; beyond that the cache is cleared.
const MANIFESTS_MAX: usize = 1_000;
/// Age at which an unfinished copy counts as left over.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// An immutable version of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Digest of the content: `sha256:…`.
    pub digest: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Folder of the copy.
    pub folder: PathBuf,
}

/// Why a version is not available. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum VersionStoreError {
    /// The folder has no manifest.
    #[error("{0} has no manifest: add a bundle.yml, or begin with `sutler bundle new`")]
    NoManifest(PathBuf),
    /// The manifest has faults.
    #[error("{0}")]
    Manifest(ManifestError),
    /// The folder holds an entry that a bundle may not have.
    #[error("{0}")]
    Tree(#[from] FolderTreeError),
    /// No copy on this host.
    #[error(
        "the bundle {0} is not on this host: bring back the folder it came from, or copy {1} from \
         a host that has it"
    )]
    Missing(String, PathBuf),
    /// The copy was changed.
    #[error(
        "the copy of the bundle {0} was damaged: remove {1} and bring back the folder it came from"
    )]
    Damaged(String, PathBuf),
    /// A file system error.
    #[error("{0} cannot be used: {1}")]
    Disk(PathBuf, #[source] io::Error),
}

impl VersionStoreError {
    /// Whether the error may be temporary.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Disk(..) | Self::Tree(FolderTreeError::Disk(..)) => true,
            Self::NoManifest(_)
            | Self::Manifest(_)
            | Self::Tree(_)
            | Self::Missing(..)
            | Self::Damaged(..) => false,
        }
    }
}

/// The versions of one host.
#[derive(Debug)]
pub struct VersionStore {
    root: PathBuf,
    /// Copies whose digest was verified.
    known: Mutex<HashMap<String, Arc<Bundle>>>,
    /// Manifests of copies that were not read otherwise.
    manifests: Mutex<HashMap<String, Arc<Manifest>>>,
    unused_versions: Mutex<UnusedVersions>,
    images: Images,
}

impl VersionStore {
    /// Opens the store in a working directory, and creates it if it is missing.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(work: &Path) -> Result<Self, VersionStoreError> {
        let root = work.join("bundles");
        // Runs of another user must be able to reach their bundle, but not to list the folder.
        create_traversable_dir(&root)
            .map_err(|error| VersionStoreError::Disk(root.clone(), error))?;
        let version_store = Self {
            known: Mutex::default(),
            manifests: Mutex::default(),
            unused_versions: Mutex::default(),
            images: Images::in_folder(&root),
            root,
        };
        version_store.clear_left_overs();
        Ok(version_store)
    }

    /// Copies a folder in its current state. Blocks.
    ///
    /// # Guarantees
    /// The copy under a digest has that content and is synced to disk. A damaged copy is replaced.
    ///
    /// # Errors
    /// See [`VersionStoreError`]; no copy is left.
    pub fn take_in(&self, folder: &Path) -> Result<Arc<Bundle>, VersionStoreError> {
        manifest_in(folder)?;
        let (digest, folder) = self.copy_folder(folder)?;
        let manifest = manifest_in(&folder)?;
        Ok(self.remember(Bundle {
            digest,
            manifest,
            folder,
        }))
    }

    /// Copies a folder in its current state without reading its manifest; returns digest and path of the copy.
    /// Blocks.
    pub(crate) fn copy_folder(
        &self,
        folder: &Path,
    ) -> Result<(String, PathBuf), VersionStoreError> {
        let mut digest = folder_digest::digest(folder)?;
        if !self.has(&digest) {
            let temp_dir = self
                .root
                .join(format!("{TEMP_PREFIX}{}", uuid::Uuid::new_v4()));
            // The folder may have changed meanwhile: the digest of the copy counts.
            let put = folder_digest::copy(folder, &temp_dir).map_err(VersionStoreError::from);
            let put = put.and_then(|copied| self.put(&temp_dir, &copied).map(|()| copied));
            remove(&temp_dir);
            digest = put?;
        }
        let place = self.place(&digest);
        Ok((digest, place))
    }

    /// Digest of a folder's current content. Blocks.
    pub(crate) fn digest_of(&self, folder: &Path) -> Result<String, VersionStoreError> {
        Ok(folder_digest::digest(folder)?)
    }

    /// Whether an undamaged copy exists. Each is verified once per process.
    fn has(&self, digest: &str) -> bool {
        let place = self.place(digest);
        place.is_dir()
            && (self.known().contains_key(digest)
                || folder_digest::digest(&place).is_ok_and(|it| it == digest))
    }

    /// Renames a finished copy to its digest, and syncs it.
    fn put(&self, temp_dir: &Path, digest: &str) -> Result<(), VersionStoreError> {
        let place = self.place(digest);
        let disk = |error| VersionStoreError::Disk(place.clone(), error);
        if self.has(digest) {
            return Ok(());
        }
        if place.exists() {
            tracing::warn!(%digest, "the copy of a bundle was damaged, and is replaced");
            let damaged = self
                .root
                .join(format!("{TEMP_PREFIX}{}", uuid::Uuid::new_v4()));
            fs::rename(&place, &damaged).map_err(disk)?;
            remove(&damaged);
        }
        // Another process that shares the folder may have been faster.
        match fs::rename(temp_dir, &place) {
            Err(error) if !self.has(digest) => return Err(disk(error)),
            Ok(()) | Err(_) => {}
        }
        fs::File::open(&self.root)
            .and_then(|root| root.sync_all())
            .map_err(disk)
    }

    /// Reads the manifest of a bundle without verifying the rest, so that it is fast. `None`: there is no copy.
    pub fn read_manifest<T>(&self, digest: &str, read: impl FnOnce(&Manifest) -> T) -> Option<T> {
        let known = self.known().get(digest).cloned();
        if let Some(bundle) = known.or_else(|| self.kept(digest)) {
            return Some(read(&bundle.manifest));
        }
        if let Some(manifest) = self.manifests().get(digest).cloned() {
            return Some(read(&manifest));
        }
        if !is_digest(digest) {
            return None;
        }
        let manifest = Arc::new(manifest_in(&self.place(digest)).ok()?);
        let mut manifests = self.manifests();
        if manifests.len() >= MANIFESTS_MAX {
            manifests.clear();
        }
        manifests.insert(digest.to_owned(), manifest.clone());
        drop(manifests);
        Some(read(&manifest))
    }

    /// Adds an image: its manifest and reference.
    pub(crate) fn keep(&self, digest: &str, written: &ImageManifest) {
        self.images.keep(digest, written);
    }

    /// Whether an image is known.
    pub(crate) fn keeps(&self, digest: &str) -> bool {
        self.images.has(digest)
    }

    /// The version of an image, or why it cannot be read.
    pub(crate) fn image(&self, digest: &str) -> Option<Result<Arc<Bundle>, String>> {
        self.images.get(digest)
    }

    /// The version of an image.
    pub(crate) fn kept(&self, digest: &str) -> Option<Arc<Bundle>> {
        self.image(digest)?.ok()
    }

    /// The bundle with this digest. Blocks the first time.
    ///
    /// # Errors
    /// There is no copy, or it is damaged.
    pub fn get(&self, digest: &str) -> Result<Arc<Bundle>, VersionStoreError> {
        if let Some(image) = self.kept(digest) {
            return Ok(image);
        }
        if let Some(bundle) = self.known().get(digest) {
            return Ok(bundle.clone());
        }
        let place = self.place(digest);
        if !is_digest(digest) || !place.is_dir() {
            return Err(VersionStoreError::Missing(digest.to_owned(), place));
        }
        if folder_digest::digest(&place)? != digest {
            return Err(VersionStoreError::Damaged(digest.to_owned(), place));
        }
        let manifest = manifest_in(&place)?;
        Ok(self.remember(Bundle {
            digest: digest.to_owned(),
            manifest,
            folder: place,
        }))
    }

    /// The digests of all copies. Blocks.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn digests(&self) -> Result<BTreeSet<String>, VersionStoreError> {
        let disk = |error| VersionStoreError::Disk(self.root.clone(), error);
        let mut digests = BTreeSet::new();
        for entry in fs::read_dir(&self.root).map_err(disk)? {
            let name = entry.map_err(disk)?.file_name();
            let digest = name.to_string_lossy().replacen('-', ":", 1);
            if is_digest(&digest) {
                digests.insert(digest);
            }
        }
        Ok(digests)
    }

    /// Removes copies that are unused now and were unused for `grace`; returns their digests. Blocks.
    ///
    /// # Assumptions
    /// `used` contains every copy that an instance or the catalog needs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn sweep(
        &self,
        used: &BTreeSet<String>,
        now: Instant,
        grace: Duration,
    ) -> Result<BTreeSet<String>, VersionStoreError> {
        let there = self.digests()?;
        let mut unused_versions = self
            .unused_versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let swept = unused_versions.update(there, used, now, grace);
        for digest in &swept {
            self.known().remove(digest);
            self.manifests().remove(digest);
            remove(&self.place(digest));
        }
        self.clear_left_overs();
        Ok(swept)
    }

    fn place(&self, digest: &str) -> PathBuf {
        self.root.join(digest.replace(':', "-"))
    }

    fn remember(&self, bundle: Bundle) -> Arc<Bundle> {
        let bundle = Arc::new(bundle);
        let mut known = self.known();
        known.insert(bundle.digest.clone(), bundle.clone());
        bundle
    }

    fn manifests(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Manifest>>> {
        self.manifests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Bundle>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes unfinished copies of processes that died.
    fn clear_left_overs(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX);
            if ours && age(&entry.path()) >= LEFT_OVER {
                remove(&entry.path());
            }
        }
    }
}

/// Name of the manifest file in a folder.
pub(crate) fn manifest_file(folder: &Path) -> Option<&'static str> {
    let mut names = MANIFEST_FILES.into_iter();
    names.find(|name| folder.join(name).is_file())
}

/// Reads the manifest of a folder.
///
/// # Errors
/// The folder has no manifest, or it has faults.
pub fn manifest_in(folder: &Path) -> Result<Manifest, VersionStoreError> {
    let name =
        manifest_file(folder).ok_or_else(|| VersionStoreError::NoManifest(folder.to_owned()))?;
    let path = folder.join(name);
    let mut bytes = Vec::new();
    // One byte over the limit is enough to refuse the manifest.
    let read = fs::File::open(&path).and_then(|file| {
        file.take(MANIFEST_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)
    });
    read.map_err(|error| VersionStoreError::Disk(path, error))?;
    Manifest::load(&bytes, name).map_err(VersionStoreError::Manifest)
}

fn is_digest(digest: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digits = digest.strip_prefix("sha256:");
    digits.is_some_and(|it| it.len() == 64 && it.bytes().all(hex))
}

fn age(path: &Path) -> Duration {
    let changed = fs::symlink_metadata(path).and_then(|it| it.modified());
    let since = |at: SystemTime| SystemTime::now().duration_since(at).unwrap_or_default();
    changed.map(since).unwrap_or_default()
}

/// Removes a copy, whose folders are read-only. Best effort: the next sweep tries again.
fn remove(path: &Path) {
    make_writable(path);
    let _ = fs::remove_dir_all(path);
}

fn make_writable(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    if is_folder {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            make_writable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
