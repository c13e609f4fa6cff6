//! Many documents: pages deep in a long list, and lists read while they grow.

use super::Candidate;
use super::fixture::{Fixture, THING, bytes, key, realm, things};
use crate::commit::{Commit, WRITES_MAX};
use crate::document::Term;
use crate::query::{List, Position};
use std::collections::BTreeMap;
use tokio::task::JoinSet;

/// Number of documents of a long list.
const MANY: usize = 100_000;
/// Number of documents that share a value of `group`.
const GROUP: usize = 1000;
/// Number of concurrent writers.
const WRITERS: usize = 8;

fn id(n: usize) -> String {
    format!("{n:06}")
}

/// Neighbours by rank are far apart by key, so the two orders differ.
fn rank(n: usize) -> usize {
    n * 7919 % MANY
}

fn batch(first: usize) -> Commit {
    let mut commit = Commit::new();
    for n in first..first + WRITES_MAX {
        let terms = vec![
            Term::new("rank", id(rank(n))),
            Term::new("group", id(n % (MANY / GROUP))),
        ];
        commit = commit.insert(key(&id(n)), terms, bytes(&id(n)));
    }
    commit
}

async fn fill(fixture: &Fixture) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let fixture = fixture.clone();
        writers.spawn(async move {
            let batches = (0..MANY).step_by(WRITES_MAX);
            for first in batches.skip(writer).step_by(WRITERS) {
                fixture.commit(batch(first)).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("a writer");
    }
}

/// Any page of a list of 100,000 documents is exact: by prefix, by value, by a range of values.
pub async fn pages_among_100_000_documents_are_exact(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fill(&fixture).await;
    let by_rank: BTreeMap<usize, usize> = (0..MANY).map(|n| (rank(n), n)).collect();
    assert_eq!(by_rank.len(), MANY, "ranks are a permutation");
    let ranks = List::Term {
        realm: realm(),
        kind: THING,
        name: "rank",
        from: id(10).into(),
        to: id(MANY - 10).into(),
    };
    for start in [0, 1, 49_999, 77_777, MANY - 31] {
        let after = Position {
            value: Vec::new(),
            key: key(&id(start)),
        };
        let page = fixture
            .page(&List::Prefix(things()), Some(&after), 30)
            .await;
        let found: Vec<&str> = page.documents.iter().map(|d| d.key.id(0)).collect();
        let expected: Vec<String> = (start + 1..start + 31).map(id).collect();
        assert_eq!(found, expected, "by key after {start}");
        assert_eq!(page.next.is_none(), start == MANY - 31);

        let after = Position {
            value: id(start).into(),
            key: key(&id(by_rank[&start])),
        };
        let page = fixture.page(&ranks, Some(&after), 30).await;
        let found: Vec<&str> = page.documents.iter().map(|d| d.key.id(0)).collect();
        let expected = by_rank.range(10.max(start + 1)..=MANY - 10).take(30);
        let expected: Vec<String> = expected.map(|(_, n)| id(*n)).collect();
        assert_eq!(found, expected, "by rank after {start}");
    }
    let group = List::term(&realm(), THING, "group", id(42).as_bytes());
    let members = fixture.list_all(&group, 300).await;
    let found: Vec<&str> = members.iter().map(|d| d.key.id(0)).collect();
    let expected: Vec<String> = (0..GROUP).map(|n| id(n * (MANY / GROUP) + 42)).collect();
    assert_eq!(found, expected, "by value");
}

/// Paging returns each document that exists all the time exactly once, while others are written and removed.
pub async fn paging_visits_each_document_once_while_others_are_written(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let lasting = |n: usize| format!("{n:04}-lasting");
    for first in (0..1000).step_by(100) {
        let mut commit = Commit::new();
        for n in first..first + 100 {
            let terms = vec![Term::new("list", "x")];
            commit = commit.insert(key(&lasting(n)), terms, bytes("x"));
        }
        fixture.commit(commit).await;
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let (fixture, stopped) = (fixture.clone(), stopped.clone());
        writers.spawn(async move {
            let mut n = writer;
            while !*stopped.borrow() {
                let passing = key(&format!("{:04}-passing-{writer}-{n}", n % 1000));
                let terms = vec![Term::new("list", "x")];
                let made = fixture
                    .commit(Commit::new().insert(passing.clone(), terms, bytes("y")))
                    .await;
                if n % 3 != 0 {
                    let version = crate::document::Version(made);
                    fixture.commit(Commit::new().remove(passing, version)).await;
                }
                n += 7 * 4 + 1;
                if n > 100_000 {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    let expected: Vec<String> = (0..1000).map(lasting).collect();
    for list in [
        List::Prefix(things()),
        List::term(&realm(), THING, "list", b"x"),
    ] {
        let found = fixture.list_all(&list, 17).await;
        let found: Vec<&str> = found.iter().map(|document| document.key.id(0)).collect();
        let mut each_once = found.clone();
        each_once.dedup();
        assert_eq!(found, each_once, "a document came twice");
        let found: Vec<&str> = found
            .into_iter()
            .filter(|id| id.ends_with("lasting"))
            .collect();
        assert_eq!(found, expected);
    }
    stop.send_replace(true);
    while let Some(done) = writers.join_next().await {
        done.expect("a writer");
    }
}
