//! Wakeups when an operation may have become claimable: sent in this process, and to other replicas. Also those of
//! readers of the feed, which are sent in this process only.
//!
//! A commit wakes its own process at once. Other replicas are woken by a separate task, not by the
//! commit: a notification inside a transaction makes PostgreSQL serialize commits. Wakeups within a
//! short time are sent as one. Not here: the transport (`postgres/notify.rs`).

use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Sender of wakeups.
#[derive(Clone)]
pub(crate) struct Wakeups {
    counter: Arc<watch::Sender<u64>>,
    feed: Arc<watch::Sender<u64>>,
    outward: Arc<Notify>,
}

impl Default for Wakeups {
    fn default() -> Self {
        Self {
            counter: Arc::new(watch::Sender::new(0)),
            feed: Arc::new(watch::Sender::new(0)),
            outward: Arc::default(),
        }
    }
}

impl Wakeups {
    /// Wakes workers of this process.
    pub(crate) fn here(&self) {
        self.counter.send_modify(|hints| *hints += 1);
    }

    /// Wakes workers of all replicas.
    pub(crate) fn everywhere(&self) {
        self.here();
        self.outward.notify_one();
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.counter.subscribe()
    }

    /// Wakes readers of the feed in this process.
    pub(crate) fn feed_moved(&self) {
        self.feed.send_modify(|hints| *hints += 1);
    }

    pub(crate) fn subscribe_to_feed(&self) -> watch::Receiver<u64> {
        self.feed.subscribe()
    }

    /// Waits until there is a wakeup for other replicas.
    #[cfg(feature = "postgres")]
    pub(crate) async fn until_outward(&self) {
        self.outward.notified().await;
    }
}
