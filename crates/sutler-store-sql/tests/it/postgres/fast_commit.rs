//! Fast commits have the same results as general ones.
//!
//! Every case runs twice, each in its own store: as it is, and with an additional write that changes
//! nothing, for which there is no fast function. Results and all readable data must be equal.

use super::conformance::Postgres;
use crate::fixture::{LASTING, key, operation};
use bytes::Bytes;
use std::time::Duration;
use sutler_journal::conformance::{Candidate as _, samples};
use sutler_journal::{
    Commit, CommitError, Cursor, Due, Fence, List, NewOperation, Next, Operation, OperationId,
    Outcome, StaleItem, Start, Store, Term, Version, WorkerId, Write,
};

/// Fast or general.
#[derive(Clone, Copy)]
enum CommitPath {
    Fast,
    General,
}

/// A store in which a worker holds a lease.
struct Case {
    candidate: Postgres,
    path: CommitPath,
    worker: WorkerId,
}

impl Case {
    async fn commit(&self, commit: Commit) -> Result<(), StaleItem> {
        let commit = match self.path {
            CommitPath::Fast => commit,
            CommitPath::General => commit.write(Write::Wake(OperationId::fresh())),
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

    /// Like `end`, but the fence is the first expectation.
    async fn end_fence_first(
        &self,
        read: Version,
        id: OperationId,
        fence: u64,
    ) -> Result<(), StaleItem> {
        let commit = ending(Commit::new().fenced(id, Fence(fence)), read, id);
        self.commit(commit).await
    }

    /// All readable data, without values that differ between stores.
    async fn readable(&self, id: OperationId) -> String {
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

/// Runs a case with both functions; `None`, after a message, if there is no server.
async fn both_paths<F>(steps: impl Fn(Case) -> F) -> Option<Vec<Result<(), StaleItem>>>
where
    F: Future<Output = (Vec<Result<(), StaleItem>>, String)>,
{
    let mut came = Vec::new();
    for path in [CommitPath::Fast, CommitPath::General] {
        let candidate = Postgres::fresh().await?;
        let worker = WorkerId::fresh();
        let lease = candidate.current().renew(worker, LASTING).await;
        lease.expect("a lease");
        came.push(
            steps(Case {
                candidate,
                path,
                worker,
            })
            .await,
        );
    }
    assert_eq!(came[0], came[1]);
    came.pop().map(|(verdicts, _)| verdicts)
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_and_general_accepting_commits_are_equal() {
    let verdicts = both_paths(|case| async move {
        let stranger = operation("a", Start::Claimed(WorkerId::fresh()));
        let mine = operation("a", Start::Claimed(case.worker));
        let other = operation("a", Start::Ready(Due::Now));
        let mut verdicts = Vec::new();
        for new in [&stranger, &mine, &other] {
            verdicts.push(case.accept(new).await.1);
        }
        let elsewhere = Commit::new().insert(key("b"), terms("live"), Bytes::new());
        verdicts.push(case.commit(elsewhere.start(mine.clone())).await);
        let readable = case.readable(mine.id).await;
        (verdicts, readable)
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
async fn fast_and_general_ends_are_equal() {
    let verdicts = both_paths(|case| async move {
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
        let readable = case.readable(new.id).await;
        (verdicts, readable)
    });
    let (changed, fence) = (Err(StaleItem::Expect(0)), Err(StaleItem::Expect(1)));
    let expected = vec![Ok(()), changed, fence, changed, Ok(()), changed];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn fast_and_general_ends_are_equal_if_the_fence_comes_first() {
    let verdicts = both_paths(|case| async move {
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
        let readable = case.readable(new.id).await;
        (verdicts, readable)
    });
    let (fence, changed) = (Err(StaleItem::Expect(0)), Err(StaleItem::Expect(1)));
    let expected = vec![Ok(()), changed, fence, fence, Ok(()), fence];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_lease_neither_function_ends_an_operation() {
    let verdicts = both_paths(|case| async move {
        let new = operation("a", Start::Claimed(case.worker));
        let (read, accepted) = case.accept(&new).await;
        let longer = LASTING + Duration::from_secs(1);
        case.candidate.pass(longer).await;
        let verdicts = vec![accepted, case.end(read, new.id, 1).await];
        let readable = case.readable(new.id).await;
        (verdicts, readable)
    });
    let expected = vec![Ok(()), Err(StaleItem::Expect(1))];
    assert!(verdicts.await.is_none_or(|found| found == expected));
}
