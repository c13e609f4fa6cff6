//! The folder registry passes the conformance suite of registries; and tests of its own behaviour.

use async_trait::async_trait;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sutler_bundle_service::{FolderRegistry, VersionStore};
use sutler_registry::conformance::Candidate;
use sutler_registry::{DEFAULT_TAG, Digest, Item, ItemError, ListError, Listing, Registry, Spec};
use tempfile::TempDir;

/// Counts the bundles read from a folder.
struct Counted {
    registry: FolderRegistry,
    reads: AtomicUsize,
}

#[async_trait]
impl Registry for Counted {
    fn name(&self) -> &str {
        self.registry.name()
    }

    async fn list(&self) -> Result<Listing, ListError> {
        self.registry.list().await
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        self.registry.look_up(item).await
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        self.reads.fetch_add(1, Ordering::AcqRel);
        self.registry.fetch(item).await
    }
}

/// A folder of bundles that a test changes without the registry.
struct Fixture {
    home: TempDir,
    registry: Counted,
}

impl Fixture {
    fn fresh() -> Option<Self> {
        let home = tempfile::tempdir().expect("a folder");
        for name in ["bundles", "away"] {
            fs::create_dir(home.path().join(name)).expect("a folder");
        }
        let version_store = VersionStore::open(&home.path().join("work")).expect("a version store");
        let registry = FolderRegistry::new(home.path().join("bundles"), Arc::new(version_store));
        Some(Self {
            registry: Counted {
                registry,
                reads: AtomicUsize::new(0),
            },
            home,
        })
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("bundles")
    }

    fn away(&self, name: &str) -> PathBuf {
        self.home.path().join("away").join(name)
    }

    fn write(&self, name: &str, manifest: &str) {
        let folder = self.root().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("bundle.yml"), manifest).expect("a manifest");
    }
}

fn moved(from: &Path, to: &Path) {
    fs::rename(from, to).expect("it moves");
}

#[async_trait]
impl Candidate for Fixture {
    fn registry(&self) -> &dyn Registry {
        &self.registry
    }

    async fn put(&self, name: &str, manifest: &str) {
        self.write(name, manifest);
    }

    async fn spoil(&self, name: &str) {
        self.write(name, "name: spoiled\n");
        let link = self.root().join(name).join("out");
        symlink("/etc/passwd", link).expect("a link that leaves the bundle");
    }

    async fn remove(&self, name: &str) {
        fs::remove_dir_all(self.root().join(name)).expect("it goes");
    }

    async fn break_listings(&self) {
        moved(&self.root(), &self.away("all"));
    }

    async fn break_item(&self, name: &str) -> bool {
        let place = self.root().join(name);
        moved(&place, &self.away(name));
        // The link points to itself, so the entry cannot be read.
        symlink(name, place).expect("a link");
        true
    }

    async fn mend(&self) {
        if !self.root().exists() {
            moved(&self.away("all"), &self.root());
        }
        for entry in fs::read_dir(self.home.path().join("away")).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            let place = self.root().join(&name);
            fs::remove_file(&place).expect("the link goes");
            moved(&self.home.path().join("away").join(&name), &place);
        }
    }

    fn reads(&self) -> usize {
        self.registry.reads.load(Ordering::Acquire)
    }

    fn item(&self, name: &str) -> Item {
        Item::new(name, DEFAULT_TAG)
    }
}

sutler_registry::registry_conformance!(Fixture::fresh());

#[tokio::test]
async fn a_folder_that_is_a_bundle_itself_lists_itself() {
    let fixture = Fixture::fresh().expect("a yard");
    fs::write(fixture.root().join("apb.yml"), "name: one\n").expect("a manifest");
    let listing = fixture.registry.list().await.expect("a listing");
    assert_eq!(listing.items(), [fixture.item("bundles")]);
    let spec = fixture.registry.fetch(&fixture.item("bundles")).await;
    let spec = spec.expect("it is read");
    assert_eq!((spec.file.as_str(), spec.image), ("apb.yml", None));
    let other = fixture.registry.look_up(&fixture.item("other")).await;
    assert!(matches!(other, Err(ItemError::Gone(_))), "{other:?}");
}

#[tokio::test]
async fn no_item_leads_out_of_the_folder() {
    let fixture = Fixture::fresh().expect("a yard");
    fixture.write("apple", "name: one\n");
    fs::write(fixture.away("bundle.yml"), "name: two\n").expect("a manifest");
    for name in ["../away", "..", ".", "/etc", "apple/../apple", ""] {
        let found = fixture.registry.look_up(&fixture.item(name)).await;
        assert!(
            matches!(found, Err(ItemError::Gone(_))),
            "{name}: {found:?}"
        );
    }
    let tagged = fixture.registry.look_up(&Item::new("apple", "v1")).await;
    assert!(matches!(tagged, Err(ItemError::Gone(_))), "{tagged:?}");
}

#[tokio::test]
async fn every_file_of_a_bundle_is_part_of_its_version() {
    let fixture = Fixture::fresh().expect("a yard");
    fixture.write("apple", "name: one\n");
    let before = fixture.registry.look_up(&fixture.item("apple")).await;
    fs::write(fixture.root().join("apple/run"), "#!/bin/sh\n").expect("a file");
    let after = fixture.registry.look_up(&fixture.item("apple")).await;
    assert_ne!(before.expect("a version"), after.expect("a version"));
}

#[tokio::test]
async fn a_missing_folder_proves_nothing_about_its_bundles() {
    let fixture = Fixture::fresh().expect("a yard");
    fixture.write("apple", "name: one\n");
    fixture.break_listings().await;
    for name in ["apple", "never"] {
        let found = fixture.registry.look_up(&fixture.item(name)).await;
        assert!(
            matches!(found, Err(ItemError::Transient(_))),
            "{name}: {found:?}"
        );
    }
}
