//! Every effect of a decision as it is written, with and without a claim for this process.

use super::{CommitDecisionError, DecisionCommit, OperationContent, StartPlace, commit_decision};
use crate::{
    Decision, Documents, Effect, InflightCache, LoadedDocument, RecordError, Resource, StoreClock,
};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{
    Commit, Due, Engine, EngineSettings, Executor, Key, KeyRing, Kind, Lost, MemoryStore, Next,
    OperationId, Outcome, Queue, Realm, Run, RunResult, SealContext, Start, State, Store,
    StoreTime, Term, Version, Write,
};
use tokio::sync::mpsc;

const KIND: Kind = Kind::new("door");
static QUEUE: Queue = Queue::named("doors");

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Door {
    open: bool,
    operation: Option<OperationId>,
}

impl Resource for Door {
    fn terms(&self, _: &Key) -> Vec<Term> {
        Vec::new()
    }

    fn referenced_operations(&self) -> Vec<OperationId> {
        self.operation.into_iter().collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Turn {
    Open,
}

/// Content of operations, or a request that cannot be opened.
struct DoorContent<'a> {
    documents: &'a Documents,
    readable: bool,
}

impl OperationContent<Turn> for DoorContent<'_> {
    fn queue(&self) -> &Queue {
        &QUEUE
    }

    fn verb_name(&self, verb: Turn) -> &'static str {
        match verb {
            Turn::Open => "open",
        }
    }

    fn request(&self, id: OperationId) -> Result<Bytes, RecordError> {
        match self.readable {
            true => Ok(self.documents.seal_request(id, &"please")),
            false => self
                .documents
                .open::<()>(SealContext::Request(id), b"broken")
                .map(|_| Bytes::new()),
        }
    }

    fn start_detail(&self, id: OperationId) -> Bytes {
        self.documents.seal_detail(id, &"starts".to_owned())
    }

    fn end_detail(&self, id: OperationId) -> Bytes {
        self.documents.seal_detail(id, &"ended".to_owned())
    }
}

fn fixture() -> Arc<Documents> {
    fixture_over(Arc::new(MemoryStore::new()))
}

fn fixture_over(store: Arc<dyn Store>) -> Arc<Documents> {
    Arc::new(Documents {
        store,
        keys: Arc::new(KeyRing::ephemeral()),
        realm: Realm::new("house").expect("a name"),
        clock: Arc::new(StoreClock::at(StoreTime::default())),
    })
}

/// The writes of one effect after that of the document.
fn writes_of(documents: &Documents, effect: Effect<Turn>) -> Vec<Write> {
    let key = documents.key(KIND, "front");
    let decided = DecisionCommit {
        documents,
        key: &key,
        was: &LoadedDocument::absent(),
        next: &Door::default(),
        effects: &[effect],
        content: &DoorContent {
            documents,
            readable: true,
        },
    };
    let added = decided.add_to(Commit::new(), StartPlace::Anywhere);
    let (commit, claimed) = added.expect("the request is readable");
    assert!(claimed.is_none(), "nothing is claimed for this process");
    let (document, rest) = commit.writes().split_first().expect("the document");
    assert!(matches!(document, Write::Put { key: put, .. } if *put == key));
    rest.to_vec()
}

#[test]
fn a_start_adds_an_operation_that_is_ready_now() {
    let (documents, id) = (fixture(), OperationId::fresh());
    let writes = writes_of(&documents, Effect::Start(Turn::Open, id));
    let [Write::Start(new)] = writes.as_slice() else {
        panic!("one operation starts: {writes:?}");
    };
    assert_eq!((new.id, new.verb, &new.queue), (id, "open", &QUEUE));
    assert_eq!(new.start, Start::Ready(Due::Now));
    let detail: String = documents.open_detail(id, &new.detail).expect("it opens");
    assert_eq!(detail, "starts");
}

#[test]
fn a_start_that_waits_adds_a_waiting_operation() {
    let (documents, id) = (fixture(), OperationId::fresh());
    let writes = writes_of(&documents, Effect::StartWaiting(Turn::Open, id));
    assert!(matches!(writes.as_slice(), [Write::Start(new)] if new.start == Start::Waiting));
}

#[test]
fn a_cancel_wakes_the_operation_too() {
    let id = OperationId::fresh();
    let writes = writes_of(&fixture(), Effect::Cancel(id));
    assert!(
        matches!(writes.as_slice(), [Write::Cancel(one), Write::Wake(two)] if *one == id && *two == id)
    );
}

#[test]
fn a_wake_only_wakes() {
    let id = OperationId::fresh();
    let writes = writes_of(&fixture(), Effect::Wake(id));
    assert!(matches!(writes.as_slice(), [Write::Wake(it)] if *it == id));
}

#[test]
fn an_end_fails_the_operation_with_its_detail() {
    let (documents, id) = (fixture(), OperationId::fresh());
    let writes = writes_of(&documents, Effect::End(id));
    let [
        Write::Advance {
            operation,
            next: Next::Done(Outcome::Failed),
            detail: Some(detail),
            progress: None,
        },
    ] = writes.as_slice()
    else {
        panic!("one operation ends: {writes:?}");
    };
    assert_eq!(*operation, id);
    let detail: String = documents.open_detail(id, detail).expect("it opens");
    assert_eq!(detail, "ended");
}

#[test]
fn an_operation_that_is_no_longer_referenced_is_unpinned() {
    let documents = fixture();
    let key = documents.key(KIND, "front");
    let before = OperationId::fresh();
    let state = Door {
        open: true,
        operation: Some(before),
    };
    let was = LoadedDocument::written(state, Version(Commit::new().id()));
    let decided = DecisionCommit {
        documents: &documents,
        key: &key,
        was: &was,
        next: &Door::default(),
        effects: &[] as &[Effect<Turn>],
        content: &DoorContent {
            documents: &documents,
            readable: true,
        },
    };
    let added = decided.add_to(Commit::new(), StartPlace::Anywhere);
    let (commit, _) = added.expect("nothing starts");
    assert!(matches!(commit.writes(), [Write::Put { .. }, Write::Unpin(id)] if *id == before));
}

/// Reports the operations that run.
struct Reporter(mpsc::UnboundedSender<OperationId>);

#[async_trait]
impl Executor for Reporter {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        let _ = self.0.send(run.id());
        let end = Commit::new().advance(run.id(), Next::Done(Outcome::Succeeded), None, None);
        run.commit(end).await?.map_err(|_| Lost)?;
        Ok(RunResult::Finished)
    }

    async fn give_up(&self, _: Arc<Run>) -> Result<RunResult, Lost> {
        Ok(RunResult::Finished)
    }
}

#[tokio::test]
async fn an_operation_that_is_waited_for_starts_with_its_commit() {
    let documents = fixture();
    let (sender, mut runs) = mpsc::unbounded_channel();
    let settings = EngineSettings::for_queue(QUEUE.clone(), 1);
    let executor = Arc::new(Reporter(sender));
    let engine = Engine::start(documents.store.clone(), executor, settings).await;
    let engine = engine.expect("the engine starts");
    let key = documents.key(KIND, "front");
    let id = OperationId::fresh();
    let next = Door {
        open: false,
        operation: Some(id),
    };
    let decision = Decision::start(next, Turn::Open, id, ());
    let decided = DecisionCommit {
        documents: &documents,
        key: &key,
        was: &LoadedDocument::absent(),
        next: &decision.next,
        effects: &decision.effects,
        content: &DoorContent {
            documents: &documents,
            readable: true,
        },
    };
    let place = StartPlace::Here {
        engine: &engine,
        waits: true,
    };
    let written = commit_decision(decided, place, |commit| commit).await;
    let written = written.expect("it is written").expect("it is not stale");
    let stored = documents.store.operation(id).await.expect("it answers");
    assert_eq!(stored.expect("it is there").row.state, State::Running);
    let inflight = InflightCache::default();
    let result =
        written.start::<_, _, _, _, String>(&engine, &inflight, &decision, &"please", true);
    assert!(result.is_some(), "the caller can wait for it");
    assert_eq!(runs.recv().await, Some(id));
    let started = inflight.remove::<Door, &str, String>(id);
    assert_eq!(
        started.expect("it was handed over").was.state,
        decision.next
    );
    // The same decision on the same read is stale now.
    let again = commit_decision(decided, StartPlace::Anywhere, |commit| commit).await;
    assert!(again.expect("the store answers").is_none());
}

/// An engine whose operation was committed over a store that loses replies.
struct LateReply {
    id: OperationId,
    engine: Engine,
    runs: mpsc::UnboundedReceiver<OperationId>,
}

impl LateReply {
    /// Ends the engine. Returns the operations that ran and were not received yet.
    async fn shut_down(mut self) -> Vec<OperationId> {
        self.engine.shut_down(Duration::ZERO).await;
        let mut runs = Vec::new();
        while let Ok(run) = self.runs.try_recv() {
            runs.push(run);
        }
        runs
    }
}

/// Commits an operation for this process over a store that loses the replies to a number of commits. If `is_ended`,
/// another process ends the operation meanwhile.
async fn commit_with_lost_replies(lost: usize, is_ended: bool) -> LateReply {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let documents = fixture_over(Arc::new(loses_replies(&inner, lost)));
    let (sender, runs) = mpsc::unbounded_channel();
    let settings = EngineSettings::for_queue(QUEUE.clone(), 1);
    let executor = Arc::new(Reporter(sender));
    let engine = Engine::start(documents.store.clone(), executor, settings).await;
    let engine = engine.expect("the engine starts");
    let key = documents.key(KIND, "front");
    let id = OperationId::fresh();
    let next = Door {
        open: false,
        operation: Some(id),
    };
    let decision = Decision::start(next, Turn::Open, id, ());
    let decided = DecisionCommit {
        documents: &documents,
        key: &key,
        was: &LoadedDocument::absent(),
        next: &decision.next,
        effects: &decision.effects,
        content: &DoorContent {
            documents: &documents,
            readable: true,
        },
    };
    let place = StartPlace::Here {
        engine: &engine,
        waits: true,
    };
    let commit = commit_decision(decided, place, |commit| commit);
    let end_elsewhere = async {
        until_stored(inner.as_ref(), id).await;
        if is_ended {
            let end = Commit::new().advance(id, Next::Done(Outcome::Failed), None, None);
            inner.commit(&end).await.expect("the operation ends");
        }
    };
    let (written, ()) = tokio::join!(commit, end_elsewhere);
    let written = written.expect("it is written").expect("it is not stale");
    let inflight = InflightCache::default();
    let _receiver =
        written.start::<_, _, _, _, String>(&engine, &inflight, &decision, &"please", true);
    LateReply { id, engine, runs }
}

/// A store whose first commits are written without a reply.
fn loses_replies(inner: &Arc<dyn Store>, lost: usize) -> InterceptingStore {
    let left = AtomicUsize::new(lost);
    InterceptingStore::new(Arc::clone(inner), move |call| {
        let one_less = |left: usize| left.checked_sub(1);
        let loses = matches!(call, Call::Commit(_))
            && left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok();
        match loses {
            true => Intercept::LoseReply,
            false => Intercept::Pass,
        }
    })
}

async fn until_stored(store: &dyn Store, id: OperationId) {
    while store.operation(id).await.expect("it answers").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_starts_after_a_late_reply_if_it_is_still_claimed() {
    for lost in [0, 1, 6] {
        let mut late = commit_with_lost_replies(lost, false).await;
        assert_eq!(late.runs.recv().await, Some(late.id), "{lost} replies lost");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(late.shut_down().await, [], "{lost} replies lost");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_another_process_ended_does_not_start_after_a_late_reply() {
    let late = commit_with_lost_replies(6, true).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(late.shut_down().await, []);
}

#[tokio::test]
async fn a_request_that_cannot_be_opened_writes_nothing() {
    let documents = fixture();
    let key = documents.key(KIND, "front");
    let effects = [Effect::Start(Turn::Open, OperationId::fresh())];
    let decided = DecisionCommit {
        documents: &documents,
        key: &key,
        was: &LoadedDocument::absent(),
        next: &Door::default(),
        effects: &effects,
        content: &DoorContent {
            documents: &documents,
            readable: false,
        },
    };
    let written = commit_decision(decided, StartPlace::Anywhere, |commit| commit).await;
    assert!(matches!(written, Err(CommitDecisionError::Record(_))));
    let stored = documents.store.get(&key).await.expect("it answers");
    assert!(stored.is_none());
}
