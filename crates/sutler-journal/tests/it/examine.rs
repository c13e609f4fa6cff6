//! Checks of a store that was put out of order on purpose, one thing at a time.

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::examine::{Checked, Finding, Meaning, Reader, Unreadable, census, check};
use sutler_journal::{
    Commit, Due, Filed, Key, Kind, ManualClock, MemoryStore, NewOperation, Next, Operation,
    OperationId, Outcome, Queue, Realm, Start, Store, StoreTime, Sweep, Term, WorkerId, Write,
};

/// Bodies are ids of operations, one a line; `sealed` cannot be opened.
struct Lines;

impl Reader for Lines {
    fn document(&self, filed: &Filed) -> Result<Meaning, Unreadable> {
        let text = String::from_utf8_lossy(&filed.document.body);
        if text == "sealed" {
            return Err(Unreadable("no key".to_owned()));
        }
        let ids = text.lines().filter_map(OperationId::parse);
        Ok(Meaning {
            points_to: Some(ids.collect()),
            misfiled: filed.terms.iter().any(|term| term.value == b"wrong"),
        })
    }

    fn operation(&self, operation: &Operation) -> Result<(), Unreadable> {
        match &operation.request[..] {
            b"sealed" => Err(Unreadable("no key".to_owned())),
            _ => Ok(()),
        }
    }
}

struct Scene {
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

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock) as _));
        Self { store, clock }
    }

    async fn commit(&self, commit: Commit) {
        self.store.commit(&commit).await.unwrap();
    }

    /// A thing whose document points to its one operation.
    async fn thing(&self, id: &str) -> OperationId {
        let new = operation(id, Start::Waiting);
        let operation = new.id;
        let insert = Commit::new().insert(key(id), Vec::new(), body(&[operation]));
        self.commit(insert.start(new)).await;
        operation
    }

    async fn checked(&self) -> Checked {
        let checked = check(&self.store, Some(&Lines), &|_, _| {}).await;
        checked.unwrap()
    }

    async fn found(&self) -> Vec<Finding> {
        self.checked().await.findings
    }
}

#[tokio::test]
async fn a_store_in_order_has_nothing_to_tell() {
    let scene = Scene::new();
    for n in 0..450 {
        let id = scene.thing(&format!("{n:03}")).await;
        if n % 2 == 0 {
            let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
            scene.commit(end).await;
        }
    }
    let checked = scene.checked().await;
    assert_eq!(checked.findings, []);
    assert_eq!((checked.documents, checked.operations), (450, 450));
    assert!(!checked.has_faults());
}

#[tokio::test]
async fn a_document_that_points_to_nothing_is_found() {
    let scene = Scene::new();
    let (kept, gone) = (scene.thing("a").await, OperationId::fresh());
    let put = Write::Put {
        key: key("a"),
        terms: Vec::new(),
        body: body(&[kept, gone]),
    };
    scene.commit(Commit::new().write(put)).await;
    assert_eq!(scene.found().await, [Finding::NoOperation(key("a"), gone)]);
    let end = Commit::new().advance(kept, Next::Done(Outcome::Failed), None, None);
    scene.commit(end.write(Write::Unpin(kept))).await;
    let unpinned = Finding::Unpinned(key("a"), kept);
    assert!(scene.found().await.contains(&unpinned));
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: StoreTime(i64::MAX),
        limit: 10,
    };
    assert_eq!(scene.store.sweep(&sweep).await.unwrap(), 1);
    assert_eq!(scene.found().await.len(), 2, "both are missing");
}

#[tokio::test]
async fn an_operation_that_nothing_points_to_is_found() {
    let scene = Scene::new();
    scene.thing("a").await;
    let new = operation("a", Start::Ready(Due::Now));
    let id = new.id;
    scene.commit(Commit::new().start(new)).await;
    let checked = scene.checked().await;
    assert_eq!(checked.findings, [Finding::NoDocument(key("a"), id)]);
    assert!(checked.has_faults());
    let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
    scene.commit(end).await;
    let checked = scene.checked().await;
    assert_eq!(checked.findings, [Finding::PinnedInVain(key("a"), id)]);
    assert!(!checked.has_faults(), "it only takes room");
}

#[tokio::test]
async fn two_that_run_in_one_lane_are_found_without_any_key() {
    let scene = Scene::new();
    let worker = WorkerId::fresh();
    let ttl = Duration::from_secs(5);
    scene.store.renew(worker, ttl).await.unwrap();
    for _ in 0..2 {
        let new = operation("a", Start::Claimed(worker));
        scene.commit(Commit::new().start(new)).await;
    }
    let checked = check(&scene.store, None, &|_, _| {}).await.unwrap();
    assert!(matches!(checked.findings[..], [Finding::TwoRun(..)]));
    scene.clock.advance(ttl);
    let checked = check(&scene.store, None, &|_, _| {}).await.unwrap();
    let left = Finding::Abandoned(2);
    assert!(checked.findings.contains(&left), "{:?}", checked.findings);
}

#[tokio::test]
async fn what_no_key_opens_and_what_is_filed_wrongly_is_found() {
    let scene = Scene::new();
    let sealed = Bytes::from_static(b"sealed");
    let insert = Commit::new().insert(key("a"), Vec::new(), sealed.clone());
    scene.commit(insert).await;
    let terms = vec![Term::new("plan", "wrong")];
    scene
        .commit(Commit::new().insert(key("b"), terms, Bytes::new()))
        .await;
    let mut new = operation("c", Start::Waiting);
    new.request = sealed;
    let id = new.id;
    let points = Commit::new().insert(key("c"), Vec::new(), body(&[id]));
    scene.commit(points.start(new)).await;
    let expected = [
        Finding::Misfiled(key("b")),
        Finding::SealedDocument(key("a"), "no key".to_owned()),
        Finding::SealedOperation(id, "no key".to_owned()),
    ];
    assert_eq!(scene.found().await, expected);
}

#[tokio::test]
async fn everything_is_counted_by_what_it_is() {
    let scene = Scene::new();
    let first = scene.thing("a").await;
    scene.thing("b").await;
    let end = Commit::new().advance(first, Next::Done(Outcome::Cancelled), None, None);
    scene.commit(end).await;
    let counted = census(&*scene.store, &|_, _| {}).await.unwrap();
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
