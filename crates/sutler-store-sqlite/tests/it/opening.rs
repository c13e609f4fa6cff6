//! Opening: accepted files, and files that are refused and left unchanged.

use crate::child::Child;
use crate::fixture::{directory, file, ids, insert};
use rusqlite::Connection;
use std::error::Error;
use std::fs;
use sutler_journal::Store;
use sutler_store_sqlite::{SqliteOpenError, SqliteStore};

#[tokio::test]
async fn committed_data_is_there_after_closing() {
    let directory = directory();
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    store.commit(&insert("a")).await.expect("a commit");
    store.close().await;
    let store = SqliteStore::open(file(&directory)).await.expect("a store");
    assert_eq!(ids(&store).await, ["a"]);
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
