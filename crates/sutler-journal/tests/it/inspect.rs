//! Checks of a store with one injected inconsistency at a time.

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::inspect::{
    CheckReport, DocumentFacts, Finding, RealmReaders, SealedReader, UnreadableError, check,
    count_all,
};
use sutler_journal::{
    Commit, Due, IndexedDocument, Key, Kind, ManualClock, MemoryStore, NewOperation, Next,
    Operation, OperationId, Outcome, Queue, Realm, Start, Store, StoreTime, Sweep, Term, WorkerId,
    Write,
};

/// Bodies are ids of operations, one per line; `sealed` cannot be opened.
struct Lines;

impl SealedReader for Lines {
    fn document(&self, indexed: &IndexedDocument) -> Result<DocumentFacts, UnreadableError> {
        let text = String::from_utf8_lossy(&indexed.document.body);
        if text == "sealed" {
            return Err(UnreadableError("no key".to_owned()));
        }
        let ids = text.lines().filter_map(OperationId::parse);
        Ok(DocumentFacts {
            points_to: Some(ids.collect()),
            misfiled: indexed.terms.iter().any(|term| term.value == b"wrong"),
            refers_to: Vec::new(),
        })
    }

    fn operation(&self, operation: &Operation) -> Result<(), UnreadableError> {
        match &operation.request[..] {
            b"sealed" => Err(UnreadableError("no key".to_owned())),
            _ => Ok(()),
        }
    }
}

struct Fixture {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

fn key(id: &str) -> Key {
    let realm = Realm::new("r").unwrap();
    Key::new(&realm, Kind::new("thing"), &[id]).unwrap()
}

fn operation(lane: &str, start: Start) -> NewOperation {
    NewOperation {
        id: OperationId::fresh(),
        lane: key(lane),
        verb: "provision",
        queue: Queue::named("work"),
        start,
        detail: Bytes::new(),
        request: Bytes::from_static(b"asked"),
    }
}

fn body(ids: &[OperationId]) -> Bytes {
    let lines: Vec<String> = ids.iter().map(OperationId::to_string).collect();
    lines.join("\n").into()
}

impl Fixture {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
        Self { store, clock }
    }

    async fn commit(&self, commit: Commit) {
        self.store.commit(&commit).await.unwrap();
    }

    /// Creates a document that points to its one operation.
    async fn thing(&self, id: &str) -> OperationId {
        let new = operation(id, Start::Waiting);
        let operation = new.id;
        let insert = Commit::new().insert(key(id), Vec::new(), body(&[operation]));
        self.commit(insert.start(new)).await;
        operation
    }

    async fn checked(&self) -> CheckReport {
        self.checked_by(RealmReaders::of_others(Lines)).await
    }

    async fn checked_by(&self, readers: RealmReaders) -> CheckReport {
        let checked = check(&self.store, Some(&readers), &|_, _| {}).await;
        checked.unwrap()
    }

    async fn found(&self) -> Vec<Finding> {
        self.checked().await.findings
    }
}

#[tokio::test]
async fn a_consistent_store_has_no_findings() {
    let fixture = Fixture::new();
    for n in 0..450 {
        let id = fixture.thing(&format!("{n:03}")).await;
        if n % 2 == 0 {
            let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
            fixture.commit(end).await;
        }
    }
    let checked = fixture.checked().await;
    assert_eq!(checked.findings, []);
    assert_eq!((checked.documents, checked.operations), (450, 450));
    assert!(!checked.has_faults());
}

#[tokio::test]
async fn a_document_that_points_to_nothing_is_found() {
    let fixture = Fixture::new();
    let (kept, gone) = (fixture.thing("a").await, OperationId::fresh());
    let put = Write::Put {
        key: key("a"),
        terms: Vec::new(),
        body: body(&[kept, gone]),
    };
    fixture.commit(Commit::new().write(put)).await;
    assert_eq!(
        fixture.found().await,
        [Finding::NoOperation(key("a"), gone)]
    );
    let end = Commit::new().advance(kept, Next::Done(Outcome::Failed), None, None);
    fixture.commit(end.write(Write::Unpin(kept))).await;
    let unpinned = Finding::Unpinned(key("a"), kept);
    assert!(fixture.found().await.contains(&unpinned));
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: StoreTime(i64::MAX),
        limit: 10,
    };
    assert_eq!(fixture.store.sweep(&sweep).await.unwrap(), 1);
    assert_eq!(fixture.found().await.len(), 2, "both are missing");
}

#[tokio::test]
async fn an_operation_that_nothing_points_to_is_found() {
    let fixture = Fixture::new();
    fixture.thing("a").await;
    let new = operation("a", Start::Ready(Due::Now));
    let id = new.id;
    fixture.commit(Commit::new().start(new)).await;
    let checked = fixture.checked().await;
    assert_eq!(checked.findings, [Finding::NoDocument(key("a"), id)]);
    assert!(checked.has_faults());
    let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
    fixture.commit(end).await;
    let checked = fixture.checked().await;
    assert_eq!(checked.findings, [Finding::PinnedInVain(key("a"), id)]);
    assert!(!checked.has_faults(), "it only takes room");
}

#[tokio::test]
async fn two_that_run_in_one_lane_are_found_without_any_key() {
    let fixture = Fixture::new();
    let worker = WorkerId::fresh();
    let ttl = Duration::from_secs(5);
    fixture.store.renew(worker, ttl).await.unwrap();
    for _ in 0..2 {
        let new = operation("a", Start::Claimed(worker));
        fixture.commit(Commit::new().start(new)).await;
    }
    let checked = check(&fixture.store, None, &|_, _| {}).await.unwrap();
    assert!(matches!(checked.findings[..], [Finding::TwoRun(..)]));
    fixture.clock.advance(ttl);
    let checked = check(&fixture.store, None, &|_, _| {}).await.unwrap();
    let left = Finding::Abandoned(2);
    assert!(checked.findings.contains(&left), "{:?}", checked.findings);
}

#[tokio::test]
async fn unreadable_and_misfiled_documents_are_found() {
    let fixture = Fixture::new();
    let sealed = Bytes::from_static(b"sealed");
    let insert = Commit::new().insert(key("a"), Vec::new(), sealed.clone());
    fixture.commit(insert).await;
    let terms = vec![Term::new("plan", "wrong")];
    fixture
        .commit(Commit::new().insert(key("b"), terms, Bytes::new()))
        .await;
    let mut new = operation("c", Start::Waiting);
    new.request = sealed;
    let id = new.id;
    let points = Commit::new().insert(key("c"), Vec::new(), body(&[id]));
    fixture.commit(points.start(new)).await;
    let expected = [
        Finding::Misfiled(key("b")),
        Finding::SealedDocument(key("a"), "no key".to_owned()),
        Finding::SealedOperation(id, "no key".to_owned()),
    ];
    assert_eq!(fixture.found().await, expected);
}

#[tokio::test]
async fn records_of_a_realm_without_a_reader_are_counted_and_not_opened() {
    let fixture = Fixture::new();
    let realm = Realm::new("other").unwrap();
    let other = Key::new(&realm, Kind::new("thing"), &["a"]).unwrap();
    let mut new = operation("a", Start::Waiting);
    (new.lane, new.request) = (other.clone(), Bytes::from_static(b"sealed"));
    let sealed = Bytes::from_static(b"sealed");
    let insert = Commit::new().insert(other.clone(), Vec::new(), sealed);
    let id = new.id;
    fixture.commit(insert.start(new)).await;
    fixture.thing("b").await;
    for readers in [
        RealmReaders::of_others(Lines).without("other"),
        RealmReaders::default().with("r", Lines),
    ] {
        let checked = fixture.checked_by(readers).await;
        let unknown = Finding::UnknownRealm("other".to_owned(), 2);
        assert_eq!(checked.findings, [unknown]);
        assert!(!checked.has_faults(), "another program may know them");
    }
    let all = RealmReaders::default()
        .with("r", Lines)
        .with("other", Lines);
    let faults = [
        Finding::NoDocument(other.clone(), id),
        Finding::SealedDocument(other, "no key".to_owned()),
        Finding::SealedOperation(id, "no key".to_owned()),
    ];
    let found = fixture.checked_by(all).await.findings;
    assert!(found.iter().all(|it| faults.contains(it)), "{found:?}");
    assert!(found.contains(&faults[1]) && found.contains(&faults[2]));
}

#[tokio::test]
async fn counts_are_by_realm_kind_and_state() {
    let fixture = Fixture::new();
    let first = fixture.thing("a").await;
    fixture.thing("b").await;
    let end = Commit::new().advance(first, Next::Done(Outcome::Cancelled), None, None);
    fixture.commit(end).await;
    let counted = count_all(&*fixture.store, &|_, _| {}).await.unwrap();
    let place = ("r".to_owned(), "thing".to_owned());
    assert_eq!(counted.documents.get(&place), Some(&2));
    assert!(
        counted
            .operations
            .iter()
            .eq([(&"cancelled", &1), (&"waiting", &1)])
    );
    let oldest = counted.oldest.expect("one has not ended");
    assert_eq!(oldest.lane, key("b"));
}

#[test]
fn every_part_of_a_key_is_escaped_and_cut_in_a_finding() {
    let realm = Realm::new("r\u{1b}[2J").unwrap();
    let kind = Kind::new("thing\u{202e}");
    let id = format!("i\u{202e}{}", "x".repeat(300));
    let text = Finding::Misfiled(Key::new(&realm, kind, &[&id]).unwrap()).to_string();
    assert!(text.starts_with(r"thing\u{202e} i\u{202e}xxx"), "{text}");
    assert!(text.contains(r"x… of realm r\u{1b}[2J "), "{text}");
    assert!(text.len() < 400, "{text}");
}
