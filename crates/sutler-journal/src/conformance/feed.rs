//! The feed: every commit once, unsplit, in commit order, and nothing appears before a cursor later.

use super::Candidate;
use super::fixture::{Fixture, LASTING, advance, bytes, finish, insert, key, new_operation, only};
use crate::commit::{Commit, CommitId, Due, Next, Start, WRITES_MAX, Write};
use crate::document::Version;
use crate::operation::{Fence, OperationId, Outcome};
use crate::query::{Change, Cursor, Subject, Sweep};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time within which a commit must cause a hint.
const HINT_WITHIN: Duration = Duration::from_secs(10);

/// The commits of some changes; each occurs once if it is not split.
fn commits(changes: &[Change]) -> Vec<CommitId> {
    let mut commits: Vec<CommitId> = changes.iter().map(|change| change.commit).collect();
    commits.dedup();
    commits
}

/// The feed contains commits in the order in which they were acknowledged.
pub async fn the_feed_is_in_commit_order(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut made = Vec::new();
    for n in 0..120 {
        // Ids out of order: the order of the commits counts, not that of their ids.
        let id = CommitId(uuid::Uuid::from_u128(u128::MAX - n * 7919 % 127));
        let commit = insert(&format!("{:03}", n * 31 % 120), "x").with_id(id);
        made.push(fixture.commit(commit).await);
    }
    let (changes, end) = fixture.feed(&Cursor::default()).await;
    assert_eq!(commits(&changes), made);
    assert_eq!(fixture.feed(&end).await, (Vec::new(), end.clone()));
    let last = fixture.commit(insert("last", "x")).await;
    let (changes, later) = fixture.feed(&end).await;
    let change = Change {
        commit: last,
        subject: Subject::Put(key("last")),
        lane: None,
    };
    assert_eq!(changes, [change]);
    assert!(later > end, "cursors are ordered as bytes");
}

/// The feed names everything a commit changed: documents written and removed, operations.
pub async fn the_feed_names_every_subject(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let read = Version(fixture.commit(insert("old", "x")).await);
    let [started, moved, cancelled, woken, unpinned, resealed] =
        [(); 6].map(|()| new_operation("a", Start::Waiting));
    let ids = [&moved, &cancelled, &woken, &unpinned, &resealed].map(|new| new.id);
    let [moved_id, cancelled_id, woken_id, unpinned_id, resealed_id] = ids;
    for new in [moved, cancelled, woken, unpinned, resealed] {
        fixture.commit(Commit::new().start(new)).await;
    }
    let mut import = fixture.operation(moved_id).await;
    import.row.id = OperationId::fresh();
    let (start, imported) = (fixture.feed(&Cursor::default()).await.1, import.row.id);
    let mut expected = vec![
        Subject::Put(key("new")),
        Subject::Removed(key("old")),
        Subject::Operation(started.id),
        Subject::Operation(imported),
    ];
    expected.extend(ids.map(Subject::Operation));
    let commit = insert("new", "x")
        .remove(key("old"), read)
        .start(started)
        .advance(moved_id, Next::Same, None, None)
        .write(Write::Cancel(cancelled_id))
        .write(Write::Wake(woken_id))
        .write(Write::Unpin(unpinned_id))
        .write(Write::Reseal {
            operation: resealed_id,
            read: (fixture.row(resealed_id).await.detail, bytes("")),
            detail: bytes("d"),
            request: bytes("r"),
            progress: bytes("p"),
        })
        .write(Write::Import(Box::new(import)));
    let id = fixture.commit(commit).await;
    let (changes, _) = fixture.feed(&start).await;
    assert_eq!(commits(&changes), [id]);
    for subject in &expected {
        let named = changes.iter().filter(|change| change.subject == *subject);
        assert_eq!(named.count(), 1, "{subject:?}");
    }
    assert_eq!(changes.len(), expected.len(), "and nothing else");
}

/// The feed names the lane of every operation, whatever a commit did to it.
pub async fn the_feed_names_the_lane_of_every_operation(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let worker = fixture.worker(LASTING).await;
    let mut lanes = BTreeMap::new();
    let mut new = |lane: &str, start| {
        let new = new_operation(lane, start);
        lanes.insert(new.id, new.lane.clone());
        new
    };
    let done = new("a", Start::Claimed(worker));
    let [moved, cancelled, woken, resealed] =
        ["b", "c", "d", "e"].map(|lane| new(lane, Start::Waiting));
    let ids = [&done, &moved, &cancelled, &woken, &resealed].map(|new| new.id);
    let [done_id, moved_id, cancelled_id, woken_id, resealed_id] = ids;
    let read = Version(fixture.commit(insert("a", "x").start(done)).await);
    for new in [moved, cancelled, woken, resealed] {
        fixture.commit(Commit::new().start(new)).await;
    }
    let end = Commit::new()
        .replace(key("a"), read, Vec::new(), bytes("y"))
        .fenced(done_id, Fence(1))
        .advance(done_id, Next::Done(Outcome::Succeeded), None, None);
    fixture.commit(end).await;
    let mut import = fixture.operation(moved_id).await;
    (import.row.id, import.row.lane) = (OperationId::fresh(), key("f"));
    lanes.insert(import.row.id, import.row.lane.clone());
    let all = insert("new", "x")
        .write(Write::Wake(moved_id))
        .advance(moved_id, Next::Waiting, None, None)
        .write(Write::Cancel(cancelled_id))
        .write(Write::Wake(woken_id))
        .write(Write::Unpin(done_id))
        .write(Write::Reseal {
            operation: resealed_id,
            read: (fixture.row(resealed_id).await.detail, bytes("")),
            detail: bytes("d"),
            request: bytes("r"),
            progress: bytes("p"),
        })
        .write(Write::Cancel(moved_id))
        .write(Write::Import(Box::new(import)));
    fixture.commit(all).await;
    let (changes, _) = fixture.feed(&Cursor::default()).await;
    for change in &changes {
        let lane = change.subject.operation().map(|id| lanes[&id].clone());
        assert_eq!(change.lane, lane, "{change:?}");
    }
    let named = changes.iter().filter(|change| change.lane.is_some());
    assert_eq!(named.count(), 12);
}

/// The feed contains no commits that failed, no repeats, and no changes outside commits.
pub async fn the_feed_has_nothing_but_applied_commits(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let first = insert("a", "x");
    fixture.commit(first.clone()).await;
    let id = fixture.start_ready().await;
    let ended = fixture.start_ready().await;
    fixture
        .commit(finish(ended, Outcome::Failed).write(Write::Unpin(ended)))
        .await;
    let (_, end) = fixture.feed(&Cursor::default()).await;
    fixture.commit(first).await;
    fixture.stale(insert("a", "y")).await;
    let mut over = Commit::new();
    for n in 0..=WRITES_MAX {
        over = over.insert(key(&format!("{n}")), Vec::new(), bytes("x"));
    }
    fixture.refused(over).await;
    let worker = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim_ids(worker, 10).await, [id]);
    let text = bytes("text");
    fixture.store.append_log(id, text).await.expect("a log");
    fixture.store.release(worker).await.expect("a release");
    candidate.pass(Duration::from_secs(1)).await;
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: fixture.now().await,
        limit: 10,
    };
    assert_eq!(fixture.store.sweep(&sweep).await.expect("a sweep"), 1);
    assert_eq!(fixture.feed(&end).await.0, []);
}

/// A response contains whole commits, and at least one, however small the limit.
pub async fn a_commit_is_never_split(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let sizes = [1, 100, 3, 1, 40, 100, 2, 7];
    let mut made = Vec::new();
    for (n, size) in sizes.into_iter().enumerate() {
        let mut commit = Commit::new();
        for m in 0..size {
            commit = commit.insert(key(&format!("{n}-{m}")), Vec::new(), bytes("x"));
        }
        made.push((fixture.commit(commit).await, size));
    }
    for limit in [1, 2, 30, 101, 1000] {
        let mut cursor = Cursor::default();
        let mut received = Vec::new();
        loop {
            let part = fixture
                .store
                .changes(&cursor, limit)
                .await
                .expect("changes");
            if part.changes.is_empty() {
                break;
            }
            assert!(part.changes.len() < limit + WRITES_MAX, "about the limit");
            assert!(part.next > cursor, "the cursor stands still");
            for id in commits(&part.changes) {
                let size = part.changes.iter().filter(|c| c.commit == id).count();
                received.push((id, size));
            }
            cursor = part.next;
        }
        assert_eq!(received, made, "by {limit}");
    }
}

/// A cursor can be stored and used again: the changes after it are always the same.
pub async fn a_cursor_can_be_used_again(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut cursors = Vec::new();
    for n in 0..10 {
        fixture.commit(insert(&format!("{n}"), "x")).await;
        cursors.push(fixture.feed(&Cursor::default()).await.1);
    }
    let (all, _) = fixture.feed(&Cursor::default()).await;
    for (n, cursor) in cursors.iter().enumerate() {
        assert_eq!(fixture.feed(cursor).await.0, all[n + 1..]);
    }
    let mut sorted = cursors.clone();
    sorted.sort();
    assert_eq!(sorted, cursors, "cursors are ordered as bytes");
}

/// A cursor is a number that grows with the feed: the cursor of that number reads the same changes.
pub async fn a_cursor_is_as_good_as_its_number(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let number = |cursor: &Cursor| cursor.number().expect("its number");
    let mut numbers = vec![number(&Cursor::default())];
    assert_eq!(numbers, [0], "the beginning");
    for n in 0..10 {
        fixture.commit(insert(&format!("{n}"), "x")).await;
        numbers.push(number(&fixture.feed(&Cursor::default()).await.1));
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let (all, end) = fixture.feed(&Cursor::default()).await;
    for (n, number) in numbers.into_iter().enumerate() {
        let cursor = Cursor::of_number(number);
        assert_eq!(
            fixture.feed(&cursor).await,
            (all[n..].to_vec(), end.clone())
        );
    }
}

/// Every commit is followed by a hint that the feed has grown; whoever reads the feed after it sees the commit.
pub async fn a_commit_causes_a_hint_at_the_feed(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start(Start::Waiting).await;
    let mut hints = fixture.store.feed_hints();
    let mut cursor = fixture.feed(&Cursor::default()).await.1;
    let moved = Commit::new().advance(id, Next::Same, Some(bytes("text")), None);
    for commit in [insert("a", "x"), moved, finish(id, Outcome::Failed)] {
        hints.mark_unchanged();
        let before = *hints.borrow();
        let made = fixture.commit(commit).await;
        let hint = tokio::time::timeout(HINT_WITHIN, hints.wait_for(|count| *count > before));
        hint.await.expect("a hint in time").expect("a store");
        let (changes, next) = fixture.feed(&cursor).await;
        assert_eq!(commits(&changes), [made]);
        cursor = next;
    }
}

/// A commit in progress is not visible and does not block others.
pub async fn a_commit_in_progress_is_invisible(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let new = new_operation("a", Start::Ready(Due::Now));
    let id = new.id;
    let stalled = candidate.stall(insert("a", "x").start(new)).await;
    assert_eq!(fixture.get("a").await, None);
    assert_eq!(fixture.store.operation(id).await.expect("a read"), None);
    assert_eq!(fixture.feed(&Cursor::default()).await.0, []);
    let worker = fixture.worker(LASTING).await;
    assert_eq!(fixture.claim(worker, 10).await, []);
    for n in 0..5 {
        fixture.commit(insert(&format!("other-{n}"), "x")).await;
    }
    stalled.finish().await.expect("the commit");
    assert!(fixture.get("a").await.is_some());
    assert_eq!(fixture.claim_ids(worker, 10).await, [id]);
    assert_eq!(commits(&fixture.feed(&Cursor::default()).await.0).len(), 6);
}

/// Commits that begin early and end late come after every cursor returned in between.
pub async fn nothing_appears_behind_a_cursor(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut made = Vec::new();
    let mut received = Vec::new();
    let mut cursor = Cursor::default();
    let mut stalled = Vec::new();
    for n in 0..6 {
        let commit = insert(&format!("slow-{n}"), "x");
        made.push(commit.id());
        stalled.push(candidate.stall(commit).await);
        made.push(fixture.commit(insert(&format!("quick-{n}"), "x")).await);
        let (changes, next) = fixture.feed(&cursor).await;
        received.extend(commits(&changes));
        cursor = next;
    }
    while let Some(commit) = stalled.pop() {
        commit.finish().await.expect("the commit");
        let (changes, next) = fixture.feed(&cursor).await;
        received.extend(commits(&changes));
        cursor = next;
    }
    let (all, _) = fixture.feed(&Cursor::default()).await;
    assert_eq!(commits(&all), received, "as a late reader sees it");
    received.sort();
    made.sort();
    assert_eq!(received, made, "each exactly once");
}

/// Trimmed changes are reported as a gap to cursors before them, and to no others.
pub async fn a_trimmed_feed_reports_a_gap(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let mut cursors = Vec::new();
    for n in 0..10 {
        fixture.commit(insert(&format!("{n}"), "x")).await;
        cursors.push(fixture.feed(&Cursor::default()).await.1);
    }
    candidate.pass(Duration::from_secs(1)).await;
    let before = fixture.now().await;
    candidate.pass(Duration::from_secs(1)).await;
    let young = fixture.commit(insert("young", "x")).await;
    let trim = async |limit| {
        let sweep = Sweep::Feed { before, limit };
        fixture.store.sweep(&sweep).await.expect("a sweep")
    };
    let gap = async |cursor: &Cursor| {
        let part = fixture.store.changes(cursor, 100).await;
        part.expect("changes").gap
    };
    let length = async || fixture.store.feed_length().await.expect("a length");
    let whole = length().await;
    let info = fixture.store.info().await.expect("its facts");
    assert_eq!(whole, info.feed);
    assert_eq!(trim(3).await, 3);
    assert_eq!(length().await, whole - 3, "the oldest are gone");
    assert!(gap(&Cursor::default()).await, "from the beginning");
    assert!(gap(&cursors[1]).await, "one was missed");
    assert!(!gap(&cursors[2]).await, "all of the trimmed were seen");
    assert_eq!(trim(100).await, 7, "the young one is too young");
    assert_eq!(trim(100).await, 0);
    assert!(gap(&cursors[8]).await);
    assert!(!gap(&cursors[9]).await);
    assert_eq!(commits(&fixture.feed(&cursors[9]).await.0), [young]);

    let mut part = fixture
        .store
        .changes(&Cursor::default(), 100)
        .await
        .expect("changes");
    let newest = fixture.commit(insert("newest", "x")).await;
    part.changes.extend(fixture.feed(&part.next).await.0);
    assert_eq!(commits(&part.changes).last(), Some(&newest));
    assert!(fixture.get("0").await.is_some(), "documents stay");
}

/// A commit is remembered as long as the feed contains it.
pub async fn a_commit_is_remembered_while_the_feed_has_it(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    fixture.commit(insert("before", "x")).await;
    candidate.pass(Duration::from_secs(1)).await;
    let between = fixture.now().await;
    candidate.pass(Duration::from_secs(1)).await;
    let id = fixture.start_ready().await;
    let commit = advance(id, Next::Retry(Due::Now));
    fixture.commit(commit.clone()).await;
    let sweep = Sweep::Feed {
        before: between,
        limit: 100,
    };
    assert_eq!(fixture.store.sweep(&sweep).await.expect("a sweep"), 1);
    fixture.commit(commit).await;
    assert_eq!(fixture.row(id).await.attempt, 2, "applied once");
    fixture.commit(only(Write::Cancel(id))).await;
}
