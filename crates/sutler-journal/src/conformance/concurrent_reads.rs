//! Reads during commits: the feed has every commit that no open one holds back, and a page shows one moment.
//!
//! Not here: commits against each other (`concurrency.rs`), the feed without writers (`feed.rs`).

use super::Candidate;
use super::fixture::{Fixture, bytes, insert, key, realm};
use super::samples::THING;
use crate::commit::{Commit, CommitId};
use crate::document::{Term, Version};
use crate::query::{Change, Cursor, List};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Tasks that commit, and commits of each.
const COMMITTERS: usize = 12;
const COMMITS: usize = 100;
/// The term of documents that move, and its two values.
const SIDE: &str = "side";
const LEFT: &str = "left";
const RIGHT: &str = "right";
/// Tasks that exchange the sides of documents, documents of each on each side, and exchanges of each.
const MOVERS: usize = 6;
const DOCUMENTS: usize = 40;
const EXCHANGES: usize = 60;

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

/// A commit that puts documents, each with its side as a term and in its body.
fn place(documents: impl Iterator<Item = (String, &'static str, Option<Version>)>) -> Commit {
    let mut commit = Commit::new();
    for (id, side, read) in documents {
        let terms = vec![Term::new(SIDE, side)];
        commit = match read {
            None => commit.insert(key(&id), terms, bytes(side)),
            Some(read) => commit.replace(key(&id), read, terms, bytes(side)),
        };
    }
    commit
}

/// A page by term, during commits that move documents between terms, shows one moment: no document is under a
/// term that it does not have, and of the documents that one commit exchanges it shows exactly half.
pub async fn a_page_during_commits_shows_one_moment(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut versions = Vec::new();
    for mover in 0..MOVERS {
        let sides = |n| if n < DOCUMENTS { LEFT } else { RIGHT };
        let documents = (0..2 * DOCUMENTS).map(|n| (id(mover, n), sides(n), None));
        versions.push(Version(fixture.commit(place(documents)).await));
    }
    let (done, committing) = watch::channel(());
    let mut readers = JoinSet::new();
    for side in [LEFT, RIGHT] {
        readers.spawn(list_side(fixture.clone(), side, committing.clone()));
    }
    let mut movers = JoinSet::new();
    for (mover, mut version) in versions.into_iter().enumerate() {
        let fixture = fixture.clone();
        movers.spawn(async move {
            for round in 1..=EXCHANGES {
                let documents = (0..2 * DOCUMENTS).map(|n| {
                    let left = (n < DOCUMENTS) == round.is_multiple_of(2);
                    (id(mover, n), if left { LEFT } else { RIGHT }, Some(version))
                });
                version = Version(fixture.commit(place(documents)).await);
            }
        });
    }
    movers.join_all().await;
    drop(done);
    readers.join_all().await;
}

fn id(mover: usize, n: usize) -> String {
    format!("{n:03}-{mover}")
}

async fn list_side(fixture: Fixture, side: &'static str, committing: watch::Receiver<()>) {
    let all = MOVERS * DOCUMENTS;
    let list = List::term(&realm(), THING, SIDE, side.as_bytes());
    loop {
        let last = committing.has_changed().is_err();
        let page = fixture.page(&list, None, 2 * all).await;
        assert_eq!(page.next, None, "all are on one page");
        for document in &page.documents {
            assert_eq!(
                document.body, side,
                "{:?} is listed as {side}",
                document.key
            );
        }
        assert_eq!(page.documents.len(), all, "documents that are {side}");
        if last {
            return;
        }
    }
}
