//! The memory store passes the suite that every store must pass.

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::conformance::{Candidate, Cut, Stalled, Wire};
use sutler_journal::{Commit, ManualClock, MemoryStore, Store};

/// A memory store whose clock stands still until told, at the other end of a wire.
struct Memory {
    clock: Arc<ManualClock>,
    wire: Arc<Wire>,
}

impl Memory {
    fn fresh() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = MemoryStore::with_clock(Arc::clone(&clock) as _);
        Self {
            clock,
            wire: Arc::new(Wire::new(Arc::new(store))),
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

    /// Nothing outlives the process, so the data and the leases of a memory store are as they were.
    async fn reopen(&self) -> Arc<dyn Store> {
        self.store().await
    }

    async fn cut(&self, cut: Cut) {
        self.wire.cut(cut);
    }

    async fn stall(&self, commit: Commit) -> Box<dyn Stalled> {
        self.wire.stall(commit)
    }
}

mod conformance {
    use super::Memory;

    sutler_journal::store_conformance!(Memory::fresh());
}
