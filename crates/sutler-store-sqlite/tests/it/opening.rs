//! Opening: accepted files, and files that are refused and left unchanged.

use crate::child::Child;
use crate::fixture::{directory, file, ids, insert};
use rusqlite::Connection;
use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use sutler_journal::Store;
use sutler_store_sqlite::{SqliteOpenError, SqliteStore};
use tempfile::TempDir;

#[tokio::test]
async fn committed_data_is_there_after_closing() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    store.close().await;
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    assert_eq!(ids(&store).await, ["a"]);
}

fn mode(path: &Path) -> u32 {
    let mode = fs::metadata(path).expect("a file").permissions().mode();
    mode & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode");
}

/// All files of a folder.
fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a folder");
    entries.map(|it| it.expect("an entry").path()).collect()
}

#[tokio::test]
async fn only_its_owner_reads_a_new_file() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    let files = files(&directory);
    assert!(files.len() >= 2, "database and lock: {files:?}");
    for path in &files {
        assert_eq!(mode(path), 0o600, "{path:?}");
    }
}

#[tokio::test]
async fn a_store_that_others_can_read_is_made_private_when_it_is_opened() {
    let directory = directory();
    let mut crashed = Child::start("hold", &directory, &[]);
    crashed.line("open");
    crashed.kill();
    let before = files(&directory);
    assert!(before.len() >= 4, "with its log: {before:?}");
    before.iter().for_each(|path| set_mode(path, 0o644));
    let link = directory.path().join("link.db");
    symlink(file(&directory), &link).expect("a link");
    let store = SqliteStore::open(&link).await.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    for path in files(&directory) {
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
}

#[tokio::test]
async fn the_mode_of_a_file_that_is_no_store_stays() {
    let directory = directory();
    let db = Connection::open(file(&directory)).expect("a file");
    db.execute_batch("CREATE TABLE theirs (x)")
        .expect("a table");
    drop(db);
    set_mode(&file(&directory), 0o644);
    let refusal = SqliteStore::open(file(&directory)).await;
    refusal.expect_err("foreign");
    assert_eq!(mode(&file(&directory)), 0o644);
}

#[tokio::test]
async fn a_newer_layout_is_refused_and_left_as_it_is() {
    let directory = directory();
    drop(SqliteStore::open(file(&directory)).await.expect("a store"));
    let db = Connection::open(file(&directory)).expect("a file");
    db.execute_batch("PRAGMA user_version = 99")
        .expect("a layout");
    drop(db);
    let refusal = SqliteStore::open(file(&directory))
        .await
        .expect_err("newer");
    assert!(matches!(refusal, SqliteOpenError::Newer { found: 99, .. }));
    assert!(refusal.to_string().contains("use the newer program"));
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let directory = directory();
    let db = Connection::open(file(&directory)).expect("a file");
    db.execute_batch("CREATE TABLE theirs (x)")
        .expect("a table");
    drop(db);
    let before = fs::read(file(&directory)).expect("bytes");
    let refusal = SqliteStore::open(file(&directory))
        .await
        .expect_err("foreign");
    assert!(matches!(refusal, SqliteOpenError::Foreign { .. }));
    assert_eq!(fs::read(file(&directory)).expect("bytes"), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let directory = directory();
    let text = "a letter to a friend, longer than a header: ".repeat(20);
    fs::write(file(&directory), &text).expect("a letter");
    let refusal = SqliteStore::open(file(&directory))
        .await
        .expect_err("foreign");
    assert!(matches!(refusal, SqliteOpenError::Foreign { .. }));
    assert_eq!(fs::read(file(&directory)).expect("bytes"), text.as_bytes());
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let directory = directory();
    let path = directory.path().join("missing").join("store.db");
    let refusal = SqliteStore::open(&path).await.expect_err("missing");
    assert!(refusal.to_string().contains("missing/store.db"));
    assert!(refusal.source().is_some());
}

#[tokio::test]
async fn a_second_opening_in_the_same_process_is_refused() {
    let directory = directory();
    let first = SqliteStore::open(file(&directory)).await.expect("a store");
    let refusal = SqliteStore::open(file(&directory))
        .await
        .expect_err("in use");
    assert!(matches!(refusal, SqliteOpenError::InUse { .. }));
    drop(first);
    SqliteStore::open(file(&directory))
        .await
        .expect("it is free");
}

#[tokio::test]
async fn a_second_process_is_refused_until_the_first_is_killed() {
    let directory = directory();
    let mut first = Child::start("hold", &directory, &[]);
    first.line("open");
    let refusal = SqliteStore::open(file(&directory))
        .await
        .expect_err("in use");
    assert!(refusal.to_string().contains("in use by another process"));
    first.kill();
    SqliteStore::open(file(&directory))
        .await
        .expect("it is free");
}

/// Each name of a file that another process has open is refused.
async fn is_in_use(path: &Path) {
    let refusal = SqliteStore::open(path).await.expect_err("in use");
    assert!(matches!(refusal, SqliteOpenError::InUse { .. }));
    let text = refusal.to_string();
    assert!(text.contains("in use by another process"), "{text}");
}

#[tokio::test]
async fn a_symbolic_link_to_an_open_file_is_refused() {
    let (directory, other) = (directory(), directory());
    let mut first = Child::start("hold", &directory, &[]);
    first.line("open");
    let link = other.path().join("link.db");
    symlink(file(&directory), &link).expect("a link");
    is_in_use(&link).await;
    let folder = other.path().join("folder");
    symlink(directory.path(), &folder).expect("a link");
    is_in_use(&folder.join(file(&directory).file_name().expect("a name"))).await;
    first.kill();
    let store = SqliteStore::open(&link).await.expect("it is free");
    let refusal = SqliteStore::open(file(&directory)).await;
    let refusal = refusal.expect_err("open in this process");
    assert!(matches!(refusal, SqliteOpenError::InUse { .. }));
    store.commit(&insert("a")).await.expect("a commit");
}

#[tokio::test]
async fn a_symbolic_link_to_a_new_file_can_be_opened() {
    let directory = directory();
    let link = directory.path().join("link.db");
    symlink(file(&directory), &link).expect("a link");
    drop(SqliteStore::open(&link).await.expect("a store"));
    assert!(
        file(&directory).exists(),
        "the file is where the link points"
    );
    drop(
        SqliteStore::open(file(&directory))
            .await
            .expect("it is free"),
    );
}

#[tokio::test]
async fn a_lock_file_that_is_a_link_is_refused_and_its_target_stays() {
    let directory = directory();
    let target = directory.path().join("target");
    symlink(&target, directory.path().join("store.db.lock")).expect("a link");
    let refusal = SqliteStore::open(file(&directory)).await;
    let refusal = refusal.expect_err("a link");
    let cause = refusal.source().expect("a cause").to_string();
    assert!(cause.contains("symbolic link"), "{cause}");
    assert!(!target.exists(), "a missing target is not created");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_open_file_is_refused_without_its_lock_file_and_by_another_hard_link() {
    let directory = directory();
    let mut first = Child::start("hold", &directory, &[]);
    first.line("open");
    let link = directory.path().join("hard.db");
    fs::hard_link(file(&directory), &link).expect("a link");
    is_in_use(&link).await;
    let mut lock = file(&directory).into_os_string();
    lock.push(".lock");
    fs::remove_file(lock).expect("a lock file");
    is_in_use(&file(&directory)).await;
    first.kill();
    drop(
        SqliteStore::open(file(&directory))
            .await
            .expect("it is free"),
    );
}
