//! Backups made while the store is in use.

use crate::fixture::{directory, file, ids, insert};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sutler_journal::Store;
use sutler_store_sqlite::{BackupError, SqliteStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_others_write_is_whole() {
    let directory = directory();
    let store = Arc::new(SqliteStore::open(file(&directory)).await.expect("a store"));
    for n in 0..500 {
        store
            .commit(&insert(&format!("{n:06}")))
            .await
            .expect("a commit");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (writing, until) = (Arc::clone(&store), Arc::clone(&stop));
    let writer = tokio::spawn(async move {
        let mut n = 500;
        while !until.load(Ordering::Relaxed) {
            writing
                .commit(&insert(&format!("{n:06}")))
                .await
                .expect("a commit");
            n += 1;
        }
        n
    });
    let copy = directory.path().join("copy.db");
    let reported = Arc::new(AtomicU64::new(0));
    let total = Arc::clone(&reported);
    let report = move |so_far: sutler_store_sqlite::BackupProgress| {
        total.store(so_far.copied, Ordering::Relaxed);
    };
    store.backup(&copy, report).await.expect("a backup");
    stop.store(true, Ordering::Relaxed);
    let written = writer.await.expect("the writer");
    assert!(reported.load(Ordering::Relaxed) > 0);
    let copied = SqliteStore::open(&copy).await.expect("the copy is a store");
    let found = ids(&copied).await;
    assert!(found.len() >= 500 && found.len() <= written);
    let expected: Vec<String> = (0..found.len()).map(|n| format!("{n:06}")).collect();
    assert_eq!(found, expected, "no gaps: the copy is of one moment");
}

/// The umask of the tests allows others to read.
#[tokio::test]
async fn only_its_owner_reads_a_backup_at_any_time() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    let copy = directory.path().join("copy.db");
    let partial = directory.path().join("copy.db.partial");
    let mode = |path: &Path| {
        let mode = std::fs::metadata(path).expect("a file").permissions();
        mode.mode() & 0o777
    };
    // Left by an interrupted backup.
    std::fs::write(&partial, "half").expect("a file");
    std::fs::set_permissions(&partial, Permissions::from_mode(0o644)).expect("its mode");
    let during = partial.clone();
    let check = move |_| assert_eq!(mode(&during), 0o600);
    store.backup(&copy, check).await.expect("a backup");
    assert_eq!(mode(&copy), 0o600);
    assert!(!partial.exists());
}

#[tokio::test]
async fn a_backup_never_replaces_a_file() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    let copy = directory.path().join("copy.db");
    std::fs::write(&copy, "precious").expect("a file");
    let refusal = store.backup(&copy, |_| {}).await.expect_err("it exists");
    assert!(matches!(refusal, BackupError::Exists(_)));
    assert_eq!(std::fs::read(&copy).expect("a file"), b"precious");
}

#[tokio::test]
async fn a_backup_that_cannot_be_made_leaves_nothing() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    let copy = directory.path().join("missing").join("copy.db");
    store.backup(&copy, |_| {}).await.expect_err("no directory");
    assert!(!copy.exists());
}
