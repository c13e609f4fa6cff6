//! Copies of bundles: digests, refusals, and the removal of unused ones.

use super::{FolderTreeError, VersionStore, VersionStoreError};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MANIFEST: &str = "version: 1.0\nname: hello\ndescription: Says hello.\nplans:\n  - name: one\n    description: The only one.\n";

struct Fixture {
    root: TempDir,
    version_store: VersionStore,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let version_store = VersionStore::open(&root.path().join("work")).expect("a version store");
        Self {
            root,
            version_store,
        }
    }

    /// A bundle with a script.
    fn bundle(&self, name: &str, script: &str) -> std::path::PathBuf {
        let folder = self.root.path().join(name);
        fs::create_dir_all(folder.join("actions")).expect("a folder");
        fs::write(folder.join("bundle.yml"), MANIFEST).expect("a manifest");
        let path = folder.join("actions/provision");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permissions");
        folder
    }
}

fn mode(path: &Path) -> u32 {
    let found = fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o777
}

#[test]
fn the_same_content_has_the_same_digest_in_every_folder() {
    let fixture = Fixture::new();
    let one = fixture
        .version_store
        .take_in(&fixture.bundle("one", "true"))
        .expect("it");
    let other = fixture
        .version_store
        .take_in(&fixture.bundle("other", "true"))
        .expect("it");
    let changed = fixture
        .version_store
        .take_in(&fixture.bundle("changed", "false"))
        .expect("it");
    assert_eq!(one.digest, other.digest);
    assert_ne!(one.digest, changed.digest);
    let plain = fixture.bundle("plain", "true");
    let script = plain.join("actions/provision");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).expect("permissions");
    let plain = fixture.version_store.take_in(&plain).expect("it");
    assert_ne!(one.digest, plain.digest, "what may be executed counts");
}

#[test]
fn a_copy_stays_as_it_was_and_cannot_be_written() {
    let fixture = Fixture::new();
    let folder = fixture.bundle("one", "true");
    fs::create_dir(folder.join(".git")).expect("a folder");
    let bundle = fixture.version_store.take_in(&folder).expect("it");
    fs::write(folder.join("actions/provision"), "changed").expect("a change");
    let script = bundle.folder.join("actions/provision");
    assert_eq!(fs::read_to_string(&script).expect("the copy"), "true");
    assert_eq!(mode(&script), 0o555);
    assert_eq!(mode(&bundle.folder), 0o555);
    assert_eq!(mode(&bundle.folder.join("bundle.yml")), 0o444);
    assert!(!bundle.folder.join(".git").exists());
    let again = VersionStore::open(&fixture.root.path().join("work")).expect("a version store");
    let found = again.get(&bundle.digest).expect("another process finds it");
    assert_eq!(*found, *bundle);
}

#[test]
fn links_out_of_the_folder_and_special_files_are_refused_and_no_copy_stays() {
    let fixture = Fixture::new();
    let leaving = fixture.bundle("leaving", "true");
    std::os::unix::fs::symlink("/etc/passwd", leaving.join("link")).expect("a link");
    let refused = fixture
        .version_store
        .take_in(&leaving)
        .expect_err("refused");
    assert!(
        matches!(refused, VersionStoreError::Tree(FolderTreeError::Leaves(_))),
        "{refused}"
    );
    let strange = fixture.bundle("strange", "true");
    let made = std::process::Command::new("mkfifo")
        .arg(strange.join("pipe"))
        .status();
    assert!(made.expect("mkfifo").success());
    let refused = fixture
        .version_store
        .take_in(&strange)
        .expect_err("refused");
    assert!(
        matches!(
            refused,
            VersionStoreError::Tree(FolderTreeError::Strange(_))
        ),
        "{refused}"
    );
    let bundles = fixture.root.path().join("work/bundles");
    assert_eq!(
        fs::read_dir(bundles).expect("the folder of copies").count(),
        0
    );
    let none = fixture
        .version_store
        .take_in(fixture.root.path())
        .expect_err("no manifest");
    assert!(none.to_string().contains("sutler bundle new"), "{none}");
}

#[test]
fn a_damaged_copy_is_noticed() {
    let fixture = Fixture::new();
    let bundle = fixture
        .version_store
        .take_in(&fixture.bundle("one", "true"))
        .expect("it");
    let script = bundle.folder.join("actions/provision");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    fs::write(&script, "rm -rf").expect("an accident");
    let again = VersionStore::open(&fixture.root.path().join("work")).expect("a version store");
    let refused = again.get(&bundle.digest).expect_err("damaged");
    assert!(
        matches!(refused, VersionStoreError::Damaged(..)),
        "{refused}"
    );
    for wrong in ["sha256:../../etc", "", "sha256:abc"] {
        let refused = again.get(wrong).expect_err("no digest");
        assert!(
            matches!(refused, VersionStoreError::Missing(..)),
            "{refused}"
        );
    }
}

#[test]
fn a_damaged_copy_is_replaced_by_the_folder_it_came_from() {
    let fixture = Fixture::new();
    let folder = fixture.bundle("one", "true");
    let bundle = fixture.version_store.take_in(&folder).expect("it");
    let script = bundle.folder.join("actions/provision");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    fs::write(&script, "rm -rf").expect("an accident");
    let again = VersionStore::open(&fixture.root.path().join("work")).expect("a version store");
    let mended = again.take_in(&folder).expect("it");
    assert_eq!(mended.digest, bundle.digest);
    assert_eq!(fs::read_to_string(&script).expect("the copy"), "true");
    let bundles = fixture.root.path().join("work/bundles");
    assert_eq!(
        fs::read_dir(bundles).expect("the folder of copies").count(),
        1
    );
}

#[test]
fn a_glance_at_a_manifest_reads_nothing_else() {
    let fixture = Fixture::new();
    let bundle = fixture
        .version_store
        .take_in(&fixture.bundle("one", "true"))
        .expect("it");
    let again = VersionStore::open(&fixture.root.path().join("work")).expect("a version store");
    let script = bundle.folder.join("actions/provision");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    fs::write(&script, "rm -rf").expect("an accident");
    let name = |digest: &str| again.read_manifest(digest, |it| it.name.clone());
    assert_eq!(name(&bundle.digest).as_deref(), Some("hello"));
    assert_eq!(name("sha256:../../etc"), None);
    assert!(
        again.get(&bundle.digest).is_err(),
        "it was not taken for sound"
    );
}

#[test]
fn only_unused_copies_are_swept() {
    let fixture = Fixture::new();
    let used = fixture
        .version_store
        .take_in(&fixture.bundle("one", "true"))
        .expect("it");
    let unused = fixture
        .version_store
        .take_in(&fixture.bundle("two", "false"))
        .expect("it");
    let names = BTreeSet::from([used.digest.clone()]);
    let (begun, grace) = (Instant::now(), Duration::from_secs(60));
    let sweep = |now| {
        fixture
            .version_store
            .sweep(&names, now, grace)
            .expect("a sweep")
    };
    assert_eq!(sweep(begun), BTreeSet::new(), "too young");
    assert_eq!(
        sweep(begun + grace),
        BTreeSet::from([unused.digest.clone()])
    );
    assert!(used.folder.exists());
    assert!(!unused.folder.exists());
    assert!(fixture.version_store.get(&unused.digest).is_err());
}
