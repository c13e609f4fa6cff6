//! The memory store passes the conformance suite of stores.

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, StalledCommit, UnreliableStore};
use sutler_journal::{
    Commit, Due, Key, Kind, ManualClock, MemoryStore, NewOperation, OperationId, Queue, Realm,
    Start, Store, WorkerId, Write,
};

/// A memory store behind a simulated connection, with a clock moved by hand.
struct Memory {
    clock: Arc<ManualClock>,
    wire: Arc<UnreliableStore>,
}

impl Memory {
    fn fresh() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::with_clock(Arc::clone(&clock) as _);
        Self {
            clock,
            wire: Arc::new(UnreliableStore::new(Arc::new(store))),
        }
    }
}

#[async_trait]
impl Candidate for Memory {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.wire) as _
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Data of a memory store does not outlive the process, so data and leases stay as they were.
    async fn reopen(&self) -> Arc<dyn Store> {
        self.store().await
    }

    /// Whoever is in the process shares the one store.
    async fn open_again(&self) -> Result<Arc<dyn Store>, String> {
        Ok(self.store().await)
    }

    async fn cut(&self, cut: Cut) {
        self.wire.cut(cut);
    }

    async fn stall(&self, commit: Commit) -> Box<dyn StalledCommit> {
        self.wire.stall(commit)
    }

    /// There is nothing below it.
    async fn set_stalled(&self, _: bool) {}
}

mod conformance {
    use super::Memory;

    sutler_journal::store_conformance!(Memory::fresh());
}

#[tokio::test]
async fn claimable_operations_cause_a_hint() {
    let store = MemoryStore::new();
    let mut hints = store.hints();
    let start = |start: Start| {
        let realm = Realm::new("suite").unwrap();
        let operation = NewOperation {
            id: OperationId::fresh(),
            lane: Key::new(&realm, Kind::new("thing"), &["a"]).unwrap(),
            verb: "provision",
            queue: Queue::named("work"),
            start,
            detail: "".into(),
            request: "".into(),
        };
        (operation.id, Commit::new().start(operation))
    };
    let (waiting, commit) = start(Start::Waiting);
    store.commit(&commit).await.unwrap();
    assert!(!hints.has_changed().unwrap(), "nobody can claim it");
    let wake = Commit::new().write(Write::Wake(waiting));
    store.commit(&wake).await.unwrap();
    assert!(hints.has_changed().unwrap(), "woken");
    hints.mark_unchanged();
    let (_, commit) = start(Start::Ready(Due::Now));
    store.commit(&commit).await.unwrap();
    assert!(hints.has_changed().unwrap(), "ready");
    let worker = WorkerId::fresh();
    store.renew(worker, Duration::from_secs(9)).await.unwrap();
    let queues = [(Queue::named("work"), 9)];
    assert_eq!(store.claim(worker, &queues).await.unwrap().len(), 2);
    hints.mark_unchanged();
    store.release(worker).await.unwrap();
    assert!(hints.has_changed().unwrap(), "given back");
}
