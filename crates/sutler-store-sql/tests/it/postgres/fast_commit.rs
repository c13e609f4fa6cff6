//! Fast commits have the same results as general ones.
//!
//! Every case is done twice, each in a store of its own: as it is, and with a write more that
//! changes nothing, which makes it unusual. Answers and everything that can be read must be alike.

use super::candidate::Postgres;
use crate::fixture::{LASTING, key, operation};
use bytes::Bytes;
use std::time::Duration;
use sutler_journal::conformance::{Candidate as _, samples};
use sutler_journal::{
    Commit, CommitError, Cursor, Due, Fence, List, NewOperation, Next, Operation, OperationId,
    Outcome, StaleItem, Start, Store, Term, Version, WorkerId, Write,
};

/// Which of the two ways.
#[derive(Clone, Copy)]
enum Way {
    Usual,
    General,
}

/// A store in which a worker holds a lease.
struct Case {
    candidate: Postgres,
    way: Way,
    worker: WorkerId,
}

impl Case {
    async fn commit(&self, commit: Commit) -> Result<(), StaleItem> {
        let commit = match self.way {
            Way::Usual => commit,
            Way::General => commit.write(Write::Wake(OperationId::fresh())),
        };
        let store = self.candidate.current();
        let first = verdict(store.commit(&commit).await);
        assert_eq!(first, verdict(store.commit(&commit).await), "a repeat");
        first
    }

    async fn accept(&self, new: &NewOperation) -> (Version, Result<(), StaleItem>) {
        let commit = Commit::new().insert(key("a"), terms("creating"), Bytes::from_static(b"1"));
        let commit = commit.start(new.clone());
        (Version(commit.id()), self.commit(commit).await)
    }

    async fn end(&self, read: Version, id: OperationId, fence: u64) -> Result<(), StaleItem> {
        let commit = ending(Commit::new(), read, id).fenced(id, Fence(fence));
        self.commit(commit).await
    }

    /// The same, but the fence is the first expectation.
    async fn end_fence_first(
        &self,
        read: Version,
        id: OperationId,
        fence: u64,
    ) -> Result<(), StaleItem> {
        let commit = ending(Commit::new().fenced(id, Fence(fence)), read, id);
        self.commit(commit).await
    }

    /// Everything that can be read, without what is different in every store.
    async fn seen(&self, id: OperationId) -> String {
        let store = self.candidate.current();
        let document = store.get(&key("a")).await.expect("a read");
        let operation = store.operation(id).await.expect("a read");
        let shown = |o: Operation| {
            let times = (o.row.finished.is_some(), o.row.due == o.row.accepted);
            let row = (o.row.state, o.row.fence, o.row.attempt, o.row.pinned);
            (row, times, o.row.detail, o.request, o.progress)
        };
        let mut listed = Vec::new();
        for value in ["creating", "live"] {
            let list = List::Term {
                realm: samples::realm(),
                kind: samples::THING,
                name: "lifecycle",
                from: value.into(),
                to: value.into(),
            };
            let page = store.list(&list, None, 10).await.expect("a page");
            listed.push(page.documents.len());
        }
        let feed = store.changes(&Cursor::default(), 100).await;
        let feed = feed.expect("changes").changes;
        let subjects: Vec<_> = feed.iter().map(|change| subject(change, id)).collect();
        let stats = store.stats().await.expect("numbers");
        format!(
            "{:?} {:?} {listed:?} {subjects:?} {} {} {}",
            document.map(|document| document.body),
            operation.map(shown),
            stats.accepted,
            stats.live,
            stats.terminal,
        )
    }
}

fn ending(begun: Commit, read: Version, id: OperationId) -> Commit {
    let body = Bytes::from_static(b"2");
    let detail = Some(Bytes::from_static(b"done"));
    begun.replace(key("a"), read, terms("live"), body).advance(
        id,
        Next::Done(Outcome::Succeeded),
        detail,
        None,
    )
}

fn subject(change: &sutler_journal::Change, id: OperationId) -> String {
    format!("{:?}", change.subject).replace(&id.0.to_string(), "it")
}

fn terms(lifecycle: &'static str) -> Vec<Term> {
    vec![
        Term::new("lifecycle", lifecycle),
        Term::new("plan", "small"),
    ]
}

fn verdict(answer: Result<(), CommitError>) -> Result<(), StaleItem> {
    match answer {
        Ok(()) => Ok(()),
        Err(CommitError::Stale(which)) => Err(which),
        Err(other) => panic!("neither written nor stale: {other:?}"),
    }
}

/// Does a case both ways; `None` if there is no server, which was said.
async fn both_ways<F>(steps: impl Fn(Case) -> F) -> Option<Vec<Result<(), StaleItem>>>
where
    F: Future<Output = (Vec<Result<(), StaleItem>>, String)>,
{
    let mut came = Vec::new();
    for way in [Way::Usual, Way::General] {
        let candidate = Postgres::fresh().await?;
        let worker = WorkerId::fresh();
        let lease = candidate.current().renew(worker, LASTING).await;
        lease.expect("a lease");
        came.push(
            steps(Case {
                candidate,
                way,
                worker,
            })
            .await,
        );
    }
    assert_eq!(came[0], came[1]);
    came.pop().map(|(verdicts, _)| verdicts)
}

#[tokio::test(flavor = "multi_thread")]
async fn accepting_comes_to_the_same_both_ways() {
    let verdicts = both_ways(|case| async move {
        let stranger = operation("a", Start::Claimed(WorkerId::fresh()));
        let mine = operation("a", Start::Claimed(case.worker));
        let other = operation("a", Start::Ready(Due::Now));
        let mut verdicts = Vec::new();
        for new in [&stranger, &mine, &other] {
            verdicts.push(case.accept(new).await.1);
        }
        let elsewhere = Commit::new().insert(key("b"), terms("live"), Bytes::new());
        verdicts.push(case.commit(elsewhere.start(mine.clone())).await);
        let seen = case.seen(mine.id).await;
        (verdicts, seen)
    });
    let (no_lease, there, taken) = (
        StaleItem::Write(1),
        StaleItem::Expect(0),
        StaleItem::Write(1),
    );
    let expected = vec![Err(no_lease), Ok(()), Err(there), Err(taken)];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_comes_to_the_same_both_ways() {
    let verdicts = both_ways(|case| async move {
        let new = operation("a", Start::Claimed(case.worker));
        let (read, accepted) = case.accept(&new).await;
        let older = Version(Commit::new().id());
        let verdicts = vec![
            accepted,
            case.end(older, new.id, 1).await,
            case.end(read, new.id, 2).await,
            case.end(older, new.id, 2).await,
            case.end(read, new.id, 1).await,
            case.end(read, new.id, 1).await,
        ];
        let seen = case.seen(new.id).await;
        (verdicts, seen)
    });
    let (changed, fence) = (Err(StaleItem::Expect(0)), Err(StaleItem::Expect(1)));
    let expected = vec![Ok(()), changed, fence, changed, Ok(()), changed];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_comes_to_the_same_both_ways_if_the_fence_is_asked_for_first() {
    let verdicts = both_ways(|case| async move {
        let new = operation("a", Start::Claimed(case.worker));
        let (read, accepted) = case.accept(&new).await;
        let older = Version(Commit::new().id());
        let verdicts = vec![
            accepted,
            case.end_fence_first(older, new.id, 1).await,
            case.end_fence_first(read, new.id, 2).await,
            case.end_fence_first(older, new.id, 2).await,
            case.end_fence_first(read, new.id, 1).await,
            case.end_fence_first(read, new.id, 1).await,
        ];
        let seen = case.seen(new.id).await;
        (verdicts, seen)
    });
    let (fence, changed) = (Err(StaleItem::Expect(0)), Err(StaleItem::Expect(1)));
    let expected = vec![Ok(()), changed, fence, fence, Ok(()), fence];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_lease_nothing_ends_either_way() {
    let verdicts = both_ways(|case| async move {
        let new = operation("a", Start::Claimed(case.worker));
        let (read, accepted) = case.accept(&new).await;
        let longer = LASTING + Duration::from_secs(1);
        case.candidate.pass(longer).await;
        let verdicts = vec![accepted, case.end(read, new.id, 1).await];
        let seen = case.seen(new.id).await;
        (verdicts, seen)
    });
    let expected = vec![Ok(()), Err(StaleItem::Expect(1))];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}
