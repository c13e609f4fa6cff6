//! Wakeups that something may have become claimable: given here, and passed on to other replicas.
//!
//! A commit wakes its own process at once. Other replicas are woken by a separate task, not by the
//! commit: a notification inside a transaction makes PostgreSQL commit one after the other. Wakeups that
//! come close together are passed on as one. Not here: how they travel (`postgres/notify.rs`).

use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// The giving end.
#[derive(Clone)]
pub(crate) struct Wakeups {
    counter: Arc<watch::Sender<u64>>,
    outward: Arc<Notify>,
}

impl Default for Wakeups {
    fn default() -> Self {
        Self {
            counter: Arc::new(watch::Sender::new(0)),
            outward: Arc::default(),
        }
    }
}

impl Wakeups {
    /// For those in this process.
    pub(crate) fn here(&self) {
        self.counter.send_modify(|hints| *hints += 1);
    }

    /// For everybody.
    pub(crate) fn everywhere(&self) {
        self.here();
        self.outward.notify_one();
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.counter.subscribe()
    }

    /// Waits until there is something to pass on.
    #[cfg(feature = "postgres")]
    pub(crate) async fn until_outward(&self) {
        self.outward.notified().await;
    }
}
