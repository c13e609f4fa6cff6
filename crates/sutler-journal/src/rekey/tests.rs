//! Tests of a rotation over the memory store: interruptions, concurrent writers, damaged records.

use super::{RecordCounts, RekeyProgress, RekeyReport, has_documents_of, key_usage, rekey};
use crate::commit::{Commit, Due, NewOperation, Next, Start};
use crate::conformance::{Call, Intercept, InterceptingStore};
use crate::document::Term;
use crate::key::{Key, Kind, Realm};
use crate::memory::MemoryStore;
use crate::operation::{Fence, OperationId, Outcome, Queue, WorkerId};
use crate::seal::{KeyId, KeyRing, SealContext};
use crate::store::Store;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};

const LASTING: Duration = Duration::from_secs(3600);

/// Two keys: `old` sealed everything, `new` seals now.
fn lines() -> &'static (String, String) {
    static LINES: OnceLock<(String, String)> = OnceLock::new();
    LINES.get_or_init(|| {
        let line = |id| KeyRing::fresh_line(id).to_string();
        (line("old"), line("new"))
    })
}

fn old() -> KeyRing {
    KeyRing::parse(&lines().0).unwrap()
}

fn both() -> Arc<KeyRing> {
    let (old, new) = lines();
    Arc::new(KeyRing::parse(&format!("{new}{old}")).unwrap())
}

fn new() -> KeyRing {
    KeyRing::parse(&lines().1).unwrap()
}

fn document(id: &str) -> Key {
    Key::new(&Realm::new("r").unwrap(), Kind::new("thing"), &[id]).unwrap()
}

fn terms() -> Vec<Term> {
    vec![Term::new("plan", "small")]
}

async fn insert(store: &dyn Store, ring: &KeyRing, id: &str) {
    let key = document(id);
    let body = ring.seal(SealContext::Document(&key), id.as_bytes());
    let commit = Commit::new().insert(key, terms(), body);
    store.commit(&commit).await.unwrap();
}

async fn start(store: &dyn Store, start: Start) -> OperationId {
    let (id, ring) = (OperationId::fresh(), old());
    let commit = Commit::new().start(NewOperation {
        id,
        lane: document("a"),
        verb: "provision",
        queue: Queue::named("q"),
        start,
        detail: Bytes::new(),
        request: ring.seal(SealContext::Request(id), b"request"),
    });
    store.commit(&commit).await.unwrap();
    id
}

/// A store with 300 documents, an ended operation with a log, one that runs and one that waits.
struct Sample {
    store: Arc<dyn Store>,
    worker: WorkerId,
    ended: OperationId,
    running: OperationId,
}

impl Sample {
    async fn new(documents: usize) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let ring = old();
        for n in 0..documents {
            insert(&*store, &ring, &format!("{n:03}")).await;
        }
        let worker = WorkerId::fresh();
        store.renew(worker, LASTING).await.unwrap();
        let running = start(&*store, Start::Claimed(worker)).await;
        let ended = start(&*store, Start::Ready(Due::Now)).await;
        start(&*store, Start::Waiting).await;
        let detail = ring.seal(SealContext::Detail(ended), b"detail");
        let progress = ring.seal(SealContext::Progress(ended), b"progress");
        let end = Next::Done(Outcome::Succeeded);
        let commit = Commit::new().advance(ended, end, Some(detail), Some(progress));
        store.commit(&commit).await.unwrap();
        for n in 0..20 {
            let text = ring.seal(SealContext::Log(ended), format!("line {n}").as_bytes());
            store.append_log(ended, text).await.unwrap();
        }
        Self {
            store,
            worker,
            ended,
            running,
        }
    }

    async fn rekey(&self) -> RekeyReport {
        run(&self.store).await
    }

    /// The store without its ciphertexts, opened by the new key alone.
    async fn opened(&self) -> Vec<String> {
        let ring = new();
        let mut lines = Vec::new();
        for it in self.store.scan_documents(&[], 1000).await.unwrap() {
            let key = &it.document.key;
            let opened = ring.open(SealContext::Document(key), &it.document.body);
            lines.push(format!("{key:?} {:?} {:?}", it.terms, opened.unwrap().0));
        }
        for id in [self.ended, self.running] {
            let mut it = self.store.operation(id).await.unwrap().unwrap();
            for (place, part) in [
                (SealContext::Request(id), &mut it.request),
                (SealContext::Progress(id), &mut it.progress),
                (SealContext::Detail(id), &mut it.row.detail),
            ] {
                if !part.is_empty() {
                    *part = ring.open(place, part).unwrap().0.into();
                }
            }
            lines.push(format!("{it:?}"));
        }
        for chunk in self.store.read_log(self.ended, 0, 100).await.unwrap() {
            let opened = ring.open(SealContext::Log(self.ended), &chunk.text);
            lines.push(format!("{} {:?}", chunk.number, opened.unwrap().0));
        }
        lines
    }
}

async fn run(store: &Arc<dyn Store>) -> RekeyReport {
    let (progress, _) = watch::channel(RekeyProgress::default());
    rekey(store, &both(), &progress).await.unwrap()
}

async fn usage(store: &Arc<dyn Store>, key: &str) -> RecordCounts {
    let (progress, _) = watch::channel(RekeyProgress::default());
    let usage = key_usage(store, &progress).await.unwrap();
    usage.of(&KeyId::parse(key).unwrap())
}

fn counts(documents: u64, operations: u64, log_chunks: u64) -> RecordCounts {
    RecordCounts {
        documents,
        operations,
        log_chunks,
    }
}

#[tokio::test]
async fn everything_is_sealed_with_the_current_key_and_opens_without_the_older_one() {
    let sample = Sample::new(300).await;
    assert_eq!(usage(&sample.store, "old").await, counts(300, 3, 20));
    let before = sample.store.operation(sample.running).await.unwrap();
    let report = sample.rekey().await;
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.resealed, counts(300, 3, 20));
    assert_eq!(usage(&sample.store, "old").await, counts(0, 0, 0));
    assert_eq!(usage(&sample.store, "new").await, counts(300, 3, 20));
    let lines = sample.opened().await;
    assert_eq!(lines.len(), 322);
    let terms_stay = lines.iter().filter(|it| it.contains("plan")).count();
    assert_eq!(terms_stay, 300);
    let after = sample.store.operation(sample.running).await.unwrap();
    let (before, after) = (before.unwrap(), after.unwrap());
    assert_eq!(before.row, after.row, "claim and state stay");
    let again = sample.rekey().await;
    assert_eq!(again.resealed, counts(0, 0, 0), "nothing to do");
    assert!(again.is_complete());
}

#[tokio::test]
async fn a_running_operation_goes_on_under_its_claim() {
    let sample = Sample::new(1).await;
    sample.rekey().await;
    let held = sample.store.renew(sample.worker, LASTING).await.unwrap();
    assert_eq!(held.held, [sample.running]);
    let end = Next::Done(Outcome::Succeeded);
    let commit =
        Commit::new()
            .fenced(sample.running, Fence(1))
            .advance(sample.running, end, None, None);
    sample.store.commit(&commit).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_dies_at_any_call_is_completed_by_the_next() {
    for (step, after) in (0..).flat_map(|n| [(n, false), (n, true)]) {
        let sample = Sample::new(3).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let dead = Arc::new(AtomicBool::new(false));
        let (seen, died) = (calls.clone(), dead.clone());
        let store = InterceptingStore::new(sample.store.clone(), move |_| {
            let call = seen.fetch_add(1, Ordering::SeqCst);
            match (call == step, after) {
                _ if died.load(Ordering::SeqCst) => Intercept::CrashBefore,
                (false, _) => Intercept::Pass,
                (true, at_end) => {
                    died.store(true, Ordering::SeqCst);
                    match at_end {
                        true => Intercept::CrashAfter,
                        false => Intercept::CrashBefore,
                    }
                }
            }
        });
        let store: Arc<dyn Store> = Arc::new(store);
        let ended = tokio::time::timeout(LASTING, run(&store)).await;
        assert_eq!(ended.is_ok(), !dead.load(Ordering::SeqCst), "step {step}");
        let report = sample.rekey().await;
        assert!(report.is_complete(), "step {step}: {report:?}");
        assert_eq!(sample.opened().await.len(), 25, "step {step}");
        if ended.is_ok() {
            assert!(step > 40, "{step} calls");
            return;
        }
    }
}

#[tokio::test]
async fn a_concurrent_writer_wins_and_its_text_stays() {
    let sample = Sample::new(1).await;
    let (held, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (is_held, goes) = (held.clone(), go.clone());
    let store = InterceptingStore::new(sample.store.clone(), move |call| match call {
        Call::Commit(_) => {
            is_held.notify_one();
            Intercept::Hold(goes.clone())
        }
        _ => Intercept::Pass,
    });
    let store: Arc<dyn Store> = Arc::new(store);
    let running = tokio::spawn(async move { run(&store).await });
    held.notified().await;
    let key = document("000");
    let read = sample.store.get(&key).await.unwrap().unwrap();
    let body = new().seal(SealContext::Document(&key), b"written meanwhile");
    let commit = Commit::new().replace(key.clone(), read.version, terms(), body);
    sample.store.commit(&commit).await.unwrap();
    let notify = tokio::spawn(async move {
        loop {
            go.notify_one();
            tokio::task::yield_now().await;
        }
    });
    let report = running.await.unwrap();
    notify.abort();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.resealed, counts(0, 3, 20));
    let found = sample.store.get(&key).await.unwrap().unwrap();
    let opened = new().open(SealContext::Document(&key), &found.body);
    assert_eq!(opened.unwrap().0, b"written meanwhile");
}

#[tokio::test]
async fn damaged_records_are_reported_and_the_rest_is_sealed() {
    let sample = Sample::new(2).await;
    let other = KeyRing::parse(&KeyRing::fresh_line("lost")).unwrap();
    insert(&*sample.store, &other, "lost").await;
    let plain = Commit::new().insert(document("plain"), terms(), Bytes::from_static(b"text"));
    sample.store.commit(&plain).await.unwrap();
    let report = sample.rekey().await;
    assert!(!report.is_complete() && report.settled, "{report:?}");
    assert_eq!(report.resealed, counts(2, 3, 20));
    assert_eq!(report.failed, 2);
    let reasons: Vec<String> = report
        .failures
        .iter()
        .map(|it| format!("{}: {}", it.record, it.reason))
        .collect();
    assert!(
        reasons[0].starts_with("thing lost of realm r: the key \"lost\""),
        "{reasons:?}"
    );
    assert_eq!(
        reasons[1],
        "thing plain of realm r: this is not a sealed text"
    );
    let left: Vec<&str> = report.left.keys().map(KeyId::as_str).collect();
    assert_eq!(left, ["lost"]);
}

#[tokio::test]
async fn keys_of_the_other_parts_of_a_damaged_operation_are_counted() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let id = OperationId::fresh();
    let commit = Commit::new().start(NewOperation {
        id,
        lane: document("a"),
        verb: "provision",
        queue: Queue::named("q"),
        start: Start::Waiting,
        detail: Bytes::from_static(b"text"),
        request: old().seal(SealContext::Request(id), b"request"),
    });
    store.commit(&commit).await.unwrap();
    let (progress, _) = watch::channel(RekeyProgress::default());
    let usage = key_usage(&store, &progress).await.unwrap();
    assert_eq!(usage.damaged, 1);
    let key = KeyId::parse("old").unwrap();
    assert_eq!(usage.of(&key), counts(0, 1, 0));
}

#[tokio::test]
async fn a_store_is_recognised_by_a_document_that_the_current_key_opens() {
    let store = MemoryStore::new();
    assert!(!has_documents_of(&store, &both()).await.unwrap(), "empty");
    insert(&store, &old(), "a").await;
    let found = has_documents_of(&store, &both()).await.unwrap();
    assert!(!found, "only of the older key");
    let same_id = KeyRing::parse(&KeyRing::fresh_line("new")).unwrap();
    insert(&store, &same_id, "b").await;
    let found = has_documents_of(&store, &both()).await.unwrap();
    assert!(!found, "another key of that id");
    insert(&store, &new(), "c").await;
    assert!(has_documents_of(&store, &both()).await.unwrap());
}

#[tokio::test]
async fn a_writer_that_still_uses_the_older_key_is_noticed() {
    let sample = Sample::new(1).await;
    let (inner, written) = (sample.store.clone(), AtomicUsize::new(0));
    let store = InterceptingStore::new(sample.store.clone(), move |call| {
        if let Call::Read("operations") = call {
            let n = written.fetch_add(1, Ordering::SeqCst);
            let inner = inner.clone();
            tokio::spawn(async move { insert(&*inner, &old(), &format!("late {n}")).await });
        }
        Intercept::PassSlowly
    });
    let store: Arc<dyn Store> = Arc::new(store);
    let report = run(&store).await;
    assert!(!report.settled && !report.is_complete(), "{report:?}");
    assert!(sample.rekey().await.is_complete(), "once it has ended");
}
