//! Reads during commits: the feed has every commit that no open one holds back.
//!
//! Not here: commits against each other (`concurrency.rs`), the feed without writers (`feed.rs`).

use super::Candidate;
use super::fixture::{Fixture, insert};
use crate::commit::CommitId;
use crate::query::{Change, Cursor};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Tasks that commit, and commits of each.
const COMMITTERS: usize = 12;
const COMMITS: usize = 100;

/// When commits began and ended, on one logical clock.
#[derive(Default)]
struct CommitTimes {
    now: u64,
    open: HashMap<CommitId, u64>,
    ended: Vec<(CommitId, u64)>,
}

impl CommitTimes {
    fn begin(&mut self, id: CommitId) {
        self.now += 1;
        self.open.insert(id, self.now);
    }

    fn end(&mut self, id: CommitId) {
        self.now += 1;
        self.open.remove(&id);
        self.ended.push((id, self.now));
    }

    /// Acknowledged commits that no open one can hold back: each open one began after their end.
    fn required(&self) -> Vec<CommitId> {
        let first_open = self.open.values().min().copied().unwrap_or(u64::MAX);
        let ended = self.ended.iter().filter(|(_, end)| *end < first_open);
        ended.map(|(id, _)| *id).collect()
    }
}

fn with<T>(times: &Mutex<CommitTimes>, change: impl FnOnce(&mut CommitTimes) -> T) -> T {
    change(&mut times.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A reader that follows the feed during commits always gets those acknowledged before its call, unless a
/// commit that is still open holds them back; the order never changes.
pub async fn the_feed_is_current_while_many_commit(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let times = Arc::new(Mutex::new(CommitTimes::default()));
    let (done, committing) = watch::channel(());
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        readers.spawn(follow(
            fixture.clone(),
            Arc::clone(&times),
            committing.clone(),
        ));
    }
    let mut writers = JoinSet::new();
    for writer in 0..COMMITTERS {
        let (fixture, times) = (fixture.clone(), Arc::clone(&times));
        writers.spawn(async move {
            for n in 0..COMMITS {
                let commit = insert(&format!("{writer}-{n}"), "x");
                with(&times, |times| times.begin(commit.id()));
                let id = fixture.commit(commit).await;
                with(&times, |times| times.end(id));
            }
        });
    }
    writers.join_all().await;
    drop(done);
    let (all, _) = fixture.feed(&Cursor::default()).await;
    assert_eq!(all.len(), COMMITTERS * COMMITS, "each change once");
    for received in readers.join_all().await {
        assert!(
            received == all,
            "the order a reader got is not the final one"
        );
    }
}

/// Follows the feed to its end, and checks that no call misses a commit that it must return.
async fn follow(
    fixture: Fixture,
    times: Arc<Mutex<CommitTimes>>,
    committing: watch::Receiver<()>,
) -> Vec<Change> {
    let mut received: Vec<Change> = Vec::new();
    let mut cursor = Cursor::default();
    loop {
        let last = committing.has_changed().is_err();
        let required = with(&times, |times| times.required());
        loop {
            let part = fixture.store.changes(&cursor, 1000).await.expect("changes");
            assert!(!part.gap, "a gap though nothing was trimmed");
            assert!(part.next >= cursor, "the cursor went back");
            if part.changes.is_empty() {
                break;
            }
            assert!(part.next > cursor, "the cursor stands still");
            cursor = part.next;
            received.extend(part.changes);
        }
        let known: HashSet<CommitId> = received.iter().map(|change| change.commit).collect();
        let missing = required.iter().filter(|id| !known.contains(id)).count();
        assert_eq!(missing, 0, "acknowledged commits are not in the feed");
        if last {
            return received;
        }
        tokio::task::yield_now().await;
    }
}
