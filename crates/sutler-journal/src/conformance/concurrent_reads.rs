//! Reads during commits: the feed has every commit that no open one holds back, and a page shows one moment.
//!
//! Not here: commits against each other (`concurrency.rs`), the feed without writers (`feed.rs`).

use super::Candidate;
use super::fixture::{Fixture, bytes, insert, key, realm, things};
use super::samples::THING;
use crate::commit::{Commit, CommitId};
use crate::document::{Document, Term, Version};
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
/// In place of a mover: documents that no commit changes, as many as those of a mover.
const STAYING: usize = MOVERS;
/// Documents that each mover adds and removes.
const PASSING: usize = 8;
/// Limit of a page that holds a few documents of each mover.
const SMALL_PAGE: usize = 25;

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

/// A page, during commits that move documents between terms, shows one moment. By term: no document is under a term
/// that it does not have, and of the documents that one commit exchanges it shows exactly half. By prefix: the
/// documents that one commit writes have one version, and those that it adds or removes are all there or none.
/// Pages that follow each other are of different moments: a document that stays is on exactly one of them, and any
/// other one on at most one.
pub async fn a_page_during_commits_shows_one_moment(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut versions = Vec::new();
    for mover in 0..MOVERS {
        let sides = |n| if n < DOCUMENTS { LEFT } else { RIGHT };
        let documents = (0..2 * DOCUMENTS).map(|n| (id(mover, n), sides(n), None));
        versions.push(Version(fixture.commit(place(documents)).await));
    }
    let staying = |n| if n % 2 == 0 { LEFT } else { RIGHT };
    let documents = (0..2 * DOCUMENTS).map(|n| (id(STAYING, n), staying(n), None));
    fixture.commit(place(documents)).await;
    let (done, committing) = watch::channel(());
    let mut readers = JoinSet::new();
    for side in [LEFT, RIGHT] {
        readers.spawn(list_side(fixture.clone(), side, committing.clone()));
    }
    readers.spawn(list_prefix(fixture.clone(), committing));
    let mut movers = JoinSet::new();
    for (mover, mut version) in versions.into_iter().enumerate() {
        let fixture = fixture.clone();
        movers.spawn(async move {
            for round in 1..=EXCHANGES {
                let even = round.is_multiple_of(2);
                let documents = (0..2 * DOCUMENTS).map(|n| {
                    let left = (n < DOCUMENTS) == even;
                    (id(mover, n), if left { LEFT } else { RIGHT }, Some(version))
                });
                let mut commit = place(documents);
                for n in 0..PASSING {
                    let key = key(&passing(mover, n));
                    commit = match even {
                        false => commit.insert(key, Vec::new(), bytes("passing")),
                        true => commit.remove(key, version),
                    };
                }
                version = Version(fixture.commit(commit).await);
                // A store in memory never waits, so that nothing would be read in between.
                tokio::task::yield_now().await;
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

/// A document that every other commit of a mover adds, and the next one removes. They are spread over the list.
fn passing(mover: usize, n: usize) -> String {
    format!("{:03}-{mover}-passing", n * 2 * DOCUMENTS / PASSING)
}

fn is_passing(document: &Document) -> bool {
    document.key.id(0).ends_with("passing")
}

fn mover_of(document: &Document) -> Option<usize> {
    let mover = document.key.id(0).split('-').nth(1)?;
    mover.parse().ok()
}

/// Lists the documents on a side, on one page and on many.
async fn list_side(fixture: Fixture, side: &'static str, committing: watch::Receiver<()>) {
    let all = MOVERS * DOCUMENTS + DOCUMENTS;
    let list = List::term(&realm(), THING, SIDE, side.as_bytes());
    let have_their_side = |documents: &[Document]| {
        for Document { key, body, .. } in documents {
            assert_eq!(body, side, "{key:?} is listed as {side}");
        }
    };
    loop {
        let last = committing.has_changed().is_err();
        let page = fixture.page(&list, None, 2 * all).await;
        assert_eq!(page.next, None, "all are on one page");
        have_their_side(&page.documents);
        assert_eq!(page.documents.len(), all, "documents that are {side}");
        let documents = fixture.list_all(&list, SMALL_PAGE).await;
        have_their_side(&documents);
        let listed = each_once(&documents);
        let staying = listed
            .iter()
            .filter(|id| id.ends_with(&format!("-{STAYING}")));
        assert_eq!(staying.count(), DOCUMENTS, "documents that stay {side}");
        if last {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Lists all documents by prefix, on one page and on many.
async fn list_prefix(fixture: Fixture, committing: watch::Receiver<()>) {
    let staying = 2 * DOCUMENTS * (MOVERS + 1);
    let list = List::Prefix(things());
    loop {
        let last = committing.has_changed().is_err();
        for limit in [2 * staying, SMALL_PAGE] {
            let mut documents = Vec::new();
            let mut after = None;
            loop {
                let page = fixture.page(&list, after.as_ref(), limit).await;
                assert!(page.documents.len() <= limit, "a page over its limit");
                is_of_one_moment(&page.documents);
                documents.extend(page.documents);
                assert!(documents.len() < 2 * staying, "the list has no end");
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            each_once(&documents);
            let kept = documents.iter().filter(|document| !is_passing(document));
            assert_eq!(kept.count(), staying, "pages of {limit}");
            if limit > documents.len() {
                for mover in 0..MOVERS {
                    let passing = |it: &&Document| is_passing(it) && mover_of(it) == Some(mover);
                    let count = documents.iter().filter(passing).count();
                    assert!([0, PASSING].contains(&count), "{count} of {PASSING}");
                }
            }
        }
        if last {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Each mover writes all its documents by one commit, so those on a page have one version.
fn is_of_one_moment(page: &[Document]) {
    let mut versions = HashMap::new();
    for document in page {
        let mover = mover_of(document).expect("a mover");
        let version = versions.entry(mover).or_insert(document.version);
        assert_eq!(*version, document.version, "of {:?}", document.key);
    }
}

/// The ids of documents, none of which is listed twice.
fn each_once(documents: &[Document]) -> HashSet<&str> {
    let ids: HashSet<&str> = documents.iter().map(|it| it.key.id(0)).collect();
    assert_eq!(ids.len(), documents.len(), "a document is listed twice");
    ids
}
