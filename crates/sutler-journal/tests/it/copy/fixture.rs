//! A source with every kind of record, and the contents of a store as a value.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::{
    Commit, Due, Key, Kind, ManualClock, MemoryStore, NewOperation, Next, Operation,
    OperationFilter, OperationId, OperationList, Outcome, Queue, Realm, Start, State, Store, Term,
    WorkerId, Write,
};

const THING: Kind = Kind::new("thing");
const WORK: Queue = Queue::named("work");

/// All contents of a store; running operations count as ready, due times are left out.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) documents: BTreeMap<Key, (Vec<Term>, Bytes)>,
    pub(super) operations: BTreeMap<OperationId, (Operation, Vec<Bytes>)>,
}

/// Reads everything.
pub(super) async fn contents(store: &dyn Store) -> Contents {
    let indexed = store.scan_documents(&[], 100_000).await.unwrap();
    let documents = indexed
        .into_iter()
        .filter(|indexed| indexed.document.key.realm() != "sutler:copy")
        .map(|indexed| (indexed.document.key, (indexed.terms, indexed.document.body)));
    let mut operations = BTreeMap::new();
    for row in store
        .operations(&every(OperationFilter::All))
        .await
        .unwrap()
    {
        let mut operation = store.operation(row.id).await.unwrap().unwrap();
        if let State::Running | State::Ready = operation.row.state {
            operation.row.state = State::Ready;
            operation.row.due = Default::default();
        }
        let log = store.read_log(row.id, 0, 1000).await.unwrap();
        let log = log.into_iter().map(|chunk| chunk.text).collect();
        operations.insert(row.id, (operation, log));
    }
    Contents {
        documents: documents.collect(),
        operations,
    }
}

fn every(filter: OperationFilter) -> OperationList {
    OperationList {
        filter,
        before: None,
        limit: 100_000,
    }
}

fn text(text: impl Into<String>) -> Bytes {
    Bytes::from(text.into())
}

fn key(id: &str) -> Key {
    let realm = Realm::new("broker").unwrap();
    Key::new(&realm, THING, &[id]).unwrap()
}

/// A source, and a clock moved by hand.
pub(super) struct Fixture {
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::with_clock(Arc::clone(&clock) as _);
        Self {
            store: Arc::new(store),
            clock,
        }
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as _
    }

    pub(super) fn new_operation(lane: &str, start: Start) -> NewOperation {
        NewOperation {
            id: OperationId::fresh(),
            lane: key(lane),
            verb: "provision",
            queue: WORK,
            start,
            detail: text("detail"),
            request: text(format!("request of {lane}")),
        }
    }

    async fn commit(&self, commit: Commit) {
        self.store.commit(&commit).await.unwrap();
    }

    /// Creates this many documents, each with a few operations, in every state in turn.
    pub(super) async fn fill(&self, things: usize) {
        let worker = WorkerId::fresh();
        self.store
            .renew(worker, Duration::from_secs(5))
            .await
            .unwrap();
        for n in 0..things {
            let id = format!("thing-{n:04}");
            let terms = vec![Term::new("plan", "small"), Term::new("n", vec![n as u8, 0])];
            let terms = terms.into_iter().take(n % 3).collect();
            let made = Commit::new().insert(key(&id), terms, text(format!("body {n}")));
            self.commit(made).await;
            self.operations(&id, n, worker).await;
        }
        self.stop().await;
    }

    async fn operations(&self, lane: &str, n: usize, worker: WorkerId) {
        let start = |start| Self::new_operation(lane, start);
        let ended = start(Start::Ready(Due::Now));
        let id = ended.id;
        self.commit(Commit::new().start(ended)).await;
        let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled];
        let progress = n.is_multiple_of(4).then(|| text("memo"));
        let retried = Commit::new().advance(id, Next::Retry(Due::Now), None, progress);
        self.commit(retried).await;
        self.clock.advance(Duration::from_millis(1));
        let end = Next::Done(outcomes[n % 3]);
        let mut end = Commit::new().advance(id, end, Some(text("over")), None);
        if n.is_multiple_of(2) {
            end = end.write(Write::Unpin(id));
        }
        self.commit(end).await;
        for piece in 0..n % 4 {
            let line = text(format!("line {piece}"));
            self.store.append_log(id, line).await.unwrap();
        }
        let unfinished = match n % 8 {
            0 => Start::Waiting,
            1 => Start::Ready(Due::In(Duration::from_secs(1000))),
            2 => Start::Ready(Due::Now),
            3 => Start::Claimed(worker),
            _ => return,
        };
        let unfinished = start(unfinished);
        let id = unfinished.id;
        self.commit(Commit::new().start(unfinished)).await;
        if n % 16 < 8 {
            self.commit(Commit::new().write(Write::Cancel(id))).await;
        }
        self.store.append_log(id, text("begun")).await.unwrap();
    }

    /// Makes one change of every kind.
    pub(super) async fn change(&self, round: usize) {
        let worker = WorkerId::fresh();
        self.store
            .renew(worker, Duration::from_secs(5))
            .await
            .unwrap();
        let made = format!("made-{round}");
        let insert = Commit::new().insert(key(&made), Vec::new(), text("made"));
        self.commit(insert).await;
        self.operations(&made, round * 5 + 3, worker).await;
        let changed = key(&format!("thing-{:04}", round + 1));
        if let Some(document) = self.store.get(&changed).await.unwrap() {
            let terms = vec![Term::new("plan", "large")];
            let body = text(format!("round {round}"));
            let replace = Commit::new().replace(changed, document.version, terms, body);
            self.commit(replace).await;
        }
        let gone = key(&format!("thing-{:04}", 10 + round));
        self.commit(Commit::new().write(Write::Remove(gone))).await;
        let claimed = self.store.claim(worker, &[(WORK, 3)]).await.unwrap();
        for (n, operation) in claimed.into_iter().enumerate() {
            let (id, fence) = (operation.row.id, operation.row.fence);
            let next = match n {
                0 => Next::Done(Outcome::Succeeded),
                1 => Next::Ready(Due::In(Duration::from_secs(7))),
                _ => Next::Same,
            };
            let moved = Commit::new().fenced(id, fence);
            let moved = moved.advance(id, next, Some(text("moved")), Some(text("further")));
            self.commit(moved).await;
        }
        self.reseal_one().await;
        self.stop().await;
    }

    /// Reseals an ended operation, as a key rotation does, and unpins another.
    async fn reseal_one(&self) {
        let rows = self.store.operations(&every(OperationFilter::All)).await;
        let ended = rows
            .unwrap()
            .into_iter()
            .filter(|row| row.finished.is_some());
        let ended: Vec<OperationId> = ended.map(|row| row.id).collect();
        let (Some(first), Some(last)) = (ended.first(), ended.last()) else {
            return;
        };
        let read = self.store.operation(*last).await.unwrap().unwrap();
        let reseal = Write::Reseal {
            operation: *last,
            read: (read.row.detail, read.progress),
            detail: text("sealed anew"),
            request: text("sealed anew"),
            progress: text("sealed anew"),
        };
        let commit = Commit::new().write(reseal).write(Write::Unpin(*first));
        self.commit(commit).await;
        for id in ended {
            for chunk in self.store.read_log(id, 0, 1).await.unwrap() {
                let resealed = self.store.reseal_log(id, &chunk, text("sealed again"));
                assert!(resealed.await.unwrap());
            }
        }
    }

    /// Starts a worker with a long lease.
    pub(super) async fn work(&self) {
        let worker = WorkerId::fresh();
        self.store
            .renew(worker, Duration::from_secs(60))
            .await
            .unwrap();
    }

    /// Lets every lease expire.
    pub(super) async fn stop(&self) {
        self.clock.advance(Duration::from_secs(61));
    }
}

/// Ends all unfinished operations.
pub(super) async fn settle_all(fixture: &Fixture) {
    let rows = fixture
        .store
        .operations(&every(OperationFilter::Unfinished))
        .await;
    for row in rows.unwrap().into_iter().step_by(2) {
        let end = Next::Done(Outcome::Failed);
        let end = Commit::new().advance(row.id, end, Some(text("given up")), None);
        fixture.commit(end).await;
    }
}
