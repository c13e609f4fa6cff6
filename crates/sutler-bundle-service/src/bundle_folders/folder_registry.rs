//! One folder of bundles as a registry; it passes the same conformance suite.
//!
//! The version of a bundle is the digest of its copy in the version store, so it cannot change after it was read.
//! [`super::BundleFolders`] decides what this host offers, from the same listing and the same copies.

use super::fingerprint;
use crate::version_store::{Bundle, VersionStore, VersionStoreError, manifest_file};
use async_trait::async_trait;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use sutler_bundle::{MANIFEST_BYTES_MAX, find_manifest};
use sutler_registry::{DEFAULT_TAG, Digest, Item, ItemError, ListError, Listing, Registry, Spec};

/// Registry of a folder that is a bundle, or that has bundles as its sub-folders.
#[derive(Clone)]
pub struct FolderRegistry {
    name: String,
    root: PathBuf,
    version_store: Arc<VersionStore>,
}

impl FolderRegistry {
    /// Registry of a folder, with the version store for copies of its bundles. Its name is the folder's path.
    #[must_use]
    pub fn new(root: PathBuf, version_store: Arc<VersionStore>) -> Self {
        Self {
            name: root.display().to_string(),
            root,
            version_store,
        }
    }

    /// The folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The folders of its bundles, in the order of names. Blocks.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, ListError> {
        fingerprint::listing(&self.root)
    }

    /// Copies one of its bundles into the version store in its current state. Blocks.
    pub(super) fn take_in(&self, folder: &Path) -> Result<Arc<Bundle>, VersionStoreError> {
        self.version_store.take_in(folder)
    }

    fn listed(&self) -> Result<Listing, ListError> {
        let folders = self.folders()?;
        let items = folders
            .iter()
            .map(|it| Item::new(&name_of(it), DEFAULT_TAG));
        Ok(Listing::complete(items.collect()))
    }

    /// Path of an item.
    fn place(&self, item: &Item) -> Result<PathBuf, ItemError> {
        let who = item.to_string();
        let gone = || {
            let name = &self.name;
            ItemError::Gone(format!(
                "{who} is not in {name}: put it there, or leave it out of the configuration"
            ))
        };
        if item.image.contains(char::REPLACEMENT_CHARACTER) {
            return Err(ItemError::Malformed {
                digest: None,
                sentence: format!("{who} has a name that is not UTF-8: rename it"),
            });
        }
        let path = match manifest_file(&self.root).is_some() {
            true if name_of(&self.root) == item.image => self.root.clone(),
            true => return Err(gone()),
            false => self.root.join(&item.image),
        };
        let mut parts = Path::new(&item.image).components();
        let is_name = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
        if !is_name || item.tag != DEFAULT_TAG {
            return Err(gone());
        }
        if fingerprint::may_be_bundle(&path) {
            return Ok(path);
        }
        // Only if the folder can be listed is an absent item known to be absent.
        match fingerprint::listing(&self.root) {
            Ok(_) => Err(gone()),
            Err(fault) => Err(ItemError::Transient(fault.to_string())),
        }
    }

    fn version(&self, item: &Item) -> Result<Digest, ItemError> {
        let folder = self.place(item)?;
        let digest = self.version_store.digest_of(&folder);
        digest_in(&digest.map_err(|fault| item_error(item, &fault))?)
    }

    fn read(&self, item: &Item) -> Result<Spec, ItemError> {
        let folder = self.place(item)?;
        let copied = self.version_store.copy_folder(&folder);
        let (digest, copy) = copied.map_err(|fault| item_error(item, &fault))?;
        let digest = digest_in(&digest)?;
        let changed = || {
            ItemError::Transient(format!(
                "{item} changed while it was read: it is looked at again the next time"
            ))
        };
        if item.digest.as_ref().is_some_and(|it| *it != digest) {
            return Err(changed());
        }
        let found = find_manifest(&copy).map_err(|_| changed())?;
        if found.bytes.len() > MANIFEST_BYTES_MAX {
            return Err(ItemError::Malformed {
                digest: Some(digest),
                sentence: format!(
                    "{item} has a manifest of more than {MANIFEST_BYTES_MAX} bytes: write less into it"
                ),
            });
        }
        Ok(Spec {
            item: Item::new(&item.image, &item.tag).at(digest.clone()),
            digest,
            manifest: found.bytes.into(),
            file: found.file.to_owned(),
            runtime: None,
            image: None,
        })
    }

    /// Runs a blocking function on a separate thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> T + Send + 'static,
    ) -> Option<T> {
        let own = self.clone();
        tokio::task::spawn_blocking(move || work(own)).await.ok()
    }
}

/// Name of a bundle.
fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

fn digest_in(text: &str) -> Result<Digest, ItemError> {
    Digest::parse(text).map_err(|fault| ItemError::Transient(format!("{text} {fault}")))
}

fn item_error(item: &Item, fault: &VersionStoreError) -> ItemError {
    let sentence = format!("{item}: {fault}");
    match fault.is_passing() {
        true => ItemError::Transient(sentence),
        false => ItemError::Malformed {
            digest: None,
            sentence,
        },
    }
}

const CUT_SHORT: &str = "it was not looked at to the end; the next look does it again";

#[async_trait]
impl Registry for FolderRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListError> {
        let listed = self.run_blocking(|it| it.listed()).await;
        let cut_short = || {
            Err(ListError::Unreachable(format!(
                "{}: {CUT_SHORT}",
                self.name
            )))
        };
        listed.unwrap_or_else(cut_short)
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        let requested = item.clone();
        let found = self.run_blocking(move |it| it.version(&requested)).await;
        let cut_short = || Err(ItemError::Transient(format!("{item}: {CUT_SHORT}")));
        found.unwrap_or_else(cut_short)
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        let requested = item.clone();
        let read = self.run_blocking(move |it| it.read(&requested)).await;
        let cut_short = || Err(ItemError::Transient(format!("{item}: {CUT_SHORT}")));
        read.unwrap_or_else(cut_short)
    }
}
