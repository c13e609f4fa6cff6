//! Folders that change while they are watched.

use super::{BundleFolders, OfferSettings, Snapshot};
use crate::version_store::VersionStore;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Fixture {
    root: TempDir,
    folders: BundleFolders,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let bundles = root.path().join("bundles");
        fs::create_dir(&bundles).expect("a folder");
        let version_store =
            Arc::new(VersionStore::open(&root.path().join("work")).expect("a version store"));
        let folders = BundleFolders::new(vec![bundles], version_store, OfferSettings::default());
        Self { root, folders }
    }

    fn bundles(&self) -> PathBuf {
        self.root.path().join("bundles")
    }

    fn write(&self, folder: &str, name: &str, description: &str) {
        write(&self.bundles().join(folder), name, description);
    }

    /// Scans twice, so that finished changes are taken.
    fn look(&mut self) -> Snapshot {
        self.folders.look();
        self.folders.look()
    }
}

fn write(folder: &Path, name: &str, description: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let text = format!(
        "version: 1.0\nname: {name}\ndescription: {description}\nplans:\n  - name: one\n    description: The only one.\n"
    );
    fs::write(folder.join("bundle.yml"), text).expect("a manifest");
}

fn offered(snapshot: &Snapshot) -> Vec<(String, String)> {
    let catalog = snapshot.catalog().expect("a catalog");
    let text = |it: &sutler_osb::ServiceOffering| {
        (
            it.name.as_str().to_owned(),
            it.description.as_str().to_owned(),
        )
    };
    catalog.services().iter().map(text).collect()
}

fn pair(name: &str, description: &str) -> (String, String) {
    (name.to_owned(), description.to_owned())
}

/// Regression: R18.
#[test]
fn no_bundle_at_all_is_an_empty_catalog() {
    let mut fixture = Fixture::new();
    assert_eq!(offered(&fixture.folders.look()), []);
    fs::create_dir(fixture.bundles().join("not-a-bundle")).expect("a folder");
    assert_eq!(offered(&fixture.look()), []);
}

#[test]
fn bundles_of_the_first_scan_are_offered_at_once() {
    let mut fixture = Fixture::new();
    fixture.write("b", "beta", "Second.");
    fixture.write("a", "alpha", "First.");
    let snapshot = fixture.folders.look();
    let expected = [pair("alpha", "First."), pair("beta", "Second.")];
    assert_eq!(offered(&snapshot), expected);
    let catalog = snapshot.catalog().expect("a catalog");
    let origins: Vec<_> = catalog.plans().map(|it| it.pin().origin).collect();
    let digests: Vec<_> = snapshot
        .digests()
        .iter()
        .map(|it| Some((*it).to_owned()))
        .collect();
    assert_eq!(origins, digests);
}

#[test]
fn a_change_is_taken_in_once_it_has_come_to_rest() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    let before = fixture.folders.look();
    fixture.write("a", "alpha", "Changed.");
    assert!(
        fixture.folders.look().is_like(&before),
        "it may still be changing"
    );
    let after = fixture.folders.look();
    assert_eq!(offered(&after), [pair("alpha", "Changed.")]);
    assert!(!after.is_like(&before));
    assert!(fixture.folders.look().is_like(&after));
}

/// Regression: R17.
#[test]
fn a_broken_manifest_keeps_the_last_good_version_and_says_so() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    fixture.folders.look();
    fs::write(fixture.bundles().join("a/bundle.yml"), "version: [").expect("a slip");
    let snapshot = fixture.look();
    assert_eq!(offered(&snapshot), [pair("alpha", "First.")]);
    let [fault] = &snapshot.faults[..] else {
        panic!("one fault, and not {:?}", snapshot.faults);
    };
    assert!(fault.contains("bundle.yml"), "{fault}");
    assert!(fault.contains("last good version"), "{fault}");
    fixture.write("a", "alpha", "Mended.");
    let snapshot = fixture.look();
    assert_eq!(offered(&snapshot), [pair("alpha", "Mended.")]);
    assert_eq!(snapshot.faults, [] as [String; 0]);
}

/// Regression: R16.
#[test]
fn a_folder_that_cannot_be_listed_keeps_its_bundles() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    fixture.folders.look();
    let away = fixture.root.path().join("away");
    fs::rename(fixture.bundles(), &away).expect("it moves");
    let snapshot = fixture.look();
    assert_eq!(offered(&snapshot), [pair("alpha", "First.")]);
    assert!(
        snapshot
            .faults
            .iter()
            .any(|it| it.contains("cannot be listed"))
    );
    fs::create_dir(fixture.bundles()).expect("a folder");
    let snapshot = fixture.look();
    assert_eq!(offered(&snapshot), [], "now it is known to be gone");
}

#[test]
fn of_two_that_collide_the_first_stays_and_both_are_named() {
    let mut fixture = Fixture::new();
    fixture.write("a", "same", "First.");
    fixture.write("b", "same", "Second.");
    let snapshot = fixture.folders.look();
    assert_eq!(offered(&snapshot), [pair("same", "First.")]);
    let [fault] = &snapshot.faults[..] else {
        panic!("one fault, and not {:?}", snapshot.faults);
    };
    assert!(
        fault.contains("bundles/a") && fault.contains("bundles/b"),
        "{fault}"
    );
}

/// As done by an editor that removes and rewrites the file, or a checkout of another branch and back.
#[test]
fn a_bundle_that_is_without_its_manifest_for_a_moment_stays() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    let before = fixture.folders.look();
    let manifest = fixture.bundles().join("a/bundle.yml");
    let text = fs::read(&manifest).expect("a manifest");
    fs::remove_file(&manifest).expect("it goes");
    let snapshot = fixture.folders.look();
    assert_eq!(offered(&snapshot), [pair("alpha", "First.")]);
    let [fault] = &snapshot.faults[..] else {
        panic!("one fault, and not {:?}", snapshot.faults);
    };
    assert!(fault.contains("no manifest any more"), "{fault}");
    fs::write(&manifest, text).expect("it is back");
    let snapshot = fixture.look();
    assert!(snapshot.is_like(&before), "{:?}", snapshot.faults);
    fs::remove_dir_all(fixture.bundles().join("a")).expect("it goes");
    assert_eq!(
        offered(&fixture.look()),
        [],
        "twice in a row it was not there"
    );
}

#[test]
fn a_missing_bundle_stays_for_the_configured_time() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    let grace = Duration::from_secs(5);
    fixture.folders = std::mem::replace(&mut fixture.folders, elsewhere()).withdrawn_after(grace);
    let now = Instant::now();
    fixture.folders.look_at(now);
    fs::remove_dir_all(fixture.bundles().join("a")).expect("it goes");
    for seconds in [1, 2, 5] {
        let snapshot = fixture.folders.look_at(now + Duration::from_secs(seconds));
        assert_eq!(offered(&snapshot), [pair("alpha", "First.")], "{seconds}");
    }
    let snapshot = fixture.folders.look_at(now + Duration::from_secs(6));
    assert_eq!(offered(&snapshot), []);
}

fn elsewhere() -> BundleFolders {
    let root = tempfile::tempdir().expect("a folder");
    let version_store = Arc::new(VersionStore::open(root.path()).expect("a version store"));
    BundleFolders::new(Vec::new(), version_store, OfferSettings::default())
}

#[test]
fn a_bundle_that_is_moved_is_offered_all_along() {
    let mut fixture = Fixture::new();
    fixture.write("a", "alpha", "First.");
    fixture.folders.look();
    let (from, to) = (fixture.bundles().join("a"), fixture.bundles().join("b"));
    fs::rename(from, to).expect("it moves");
    for _ in 0..3 {
        let snapshot = fixture.folders.look();
        assert_eq!(offered(&snapshot), [pair("alpha", "First.")]);
        let collides = |it: &String| it.contains("bundles/b");
        assert!(
            !snapshot.faults.iter().any(collides),
            "{:?}",
            snapshot.faults
        );
    }
    assert_eq!(fixture.folders.look().faults, [] as [String; 0]);
}
