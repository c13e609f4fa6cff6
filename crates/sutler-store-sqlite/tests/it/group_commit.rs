//! Commits that wait together are made durable together, and do not affect each other.

use crate::fixture::{directory, file, ids, insert, key};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use sutler_journal::{Commit, CommitError, Store};
use sutler_store_sqlite::faults::{Fault, FaultPoint, Faults};
use sutler_store_sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

/// A store whose first group is stalled, and a count of its groups.
struct StalledWriter {
    store: Arc<SqliteStore>,
    gate: Arc<Barrier>,
    groups: Arc<AtomicUsize>,
    _directory: TempDir,
}

async fn stalled() -> StalledWriter {
    let directory = directory();
    let gate = Arc::new(Barrier::new(2));
    let groups = Arc::new(AtomicUsize::new(0));
    let (at_gate, counted) = (Arc::clone(&gate), Arc::clone(&groups));
    let settings = SqliteSettings {
        faults: Faults::with(move |point| {
            if point == FaultPoint::BeforeCommit && counted.fetch_add(1, Ordering::SeqCst) == 1 {
                at_gate.wait();
                at_gate.wait();
            }
            Fault::None
        }),
        ..SqliteSettings::default()
    };
    let store = SqliteStore::open_with(file(&directory), settings).await;
    let store = Arc::new(store.expect("a store"));
    // The first commit interns its strings, so that later ones need one job each.
    store.commit(&insert("first")).await.expect("a commit");
    StalledWriter {
        store,
        gate,
        groups,
        _directory: directory,
    }
}

impl StalledWriter {
    /// Sends one commit, waits until its group is stalled, then sends the others and continues.
    async fn run(&self, commits: Vec<Commit>) -> Vec<Result<(), CommitError>> {
        let send = |commit: Commit| {
            let store = Arc::clone(&self.store);
            tokio::spawn(async move { store.commit(&commit).await })
        };
        let held = send(insert("held"));
        let gate = Arc::clone(&self.gate);
        tokio::task::spawn_blocking(move || gate.wait())
            .await
            .expect("the gate");
        let waiting: Vec<_> = commits.into_iter().map(send).collect();
        // Each has run up to its wait for the writer once this single-threaded runtime is idle.
        for _ in 0..waiting.len() {
            tokio::task::yield_now().await;
        }
        let gate = Arc::clone(&self.gate);
        tokio::task::spawn_blocking(move || gate.wait())
            .await
            .expect("the gate");
        held.await.expect("a task").expect("a commit");
        let mut results = Vec::new();
        for commit in waiting {
            results.push(commit.await.expect("a task"));
        }
        results
    }
}

#[tokio::test]
async fn sixty_four_commits_that_wait_share_one_transaction() {
    let stalled = stalled().await;
    let commits = (0..64).map(|n| insert(&format!("{n:02}"))).collect();
    for result in stalled.run(commits).await {
        result.expect("a commit");
    }
    assert_eq!(stalled.groups.load(Ordering::SeqCst), 3);
    assert_eq!(ids(&*stalled.store).await.len(), 66);
}

#[tokio::test]
async fn a_stale_commit_leaves_nothing_in_the_group_it_shares() {
    let stalled = stalled().await;
    let half = insert("half").absent(key("first"));
    let results = stalled
        .run(vec![insert("before"), half, insert("after")])
        .await;
    assert!(matches!(results[1], Err(CommitError::Stale(_))));
    assert!(results[0].is_ok() && results[2].is_ok());
    assert_eq!(
        ids(&*stalled.store).await,
        ["after", "before", "first", "held"]
    );
}

#[tokio::test]
async fn one_commit_sees_another_of_its_group() {
    let stalled = stalled().await;
    let results = stalled.run(vec![insert("same"), insert("same")]).await;
    assert!(results[0].is_ok());
    assert!(matches!(results[1], Err(CommitError::Stale(_))));
}
