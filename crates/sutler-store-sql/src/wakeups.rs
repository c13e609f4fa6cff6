//! Wakeups when an operation may have become claimable: sent in this process, and to other replicas.
//!
//! A commit wakes its own process at once. Other replicas are woken by a separate task, not by the
//! commit: a notification inside a transaction makes PostgreSQL serialize commits. Wakeups within a
//! short time are sent as one. Not here: the transport (`postgres/notify.rs`).

use std::sync::Arc;
use sutler_journal::{Commit, Due, Next, Start, Write};
use tokio::sync::{Notify, watch};

/// Sender of wakeups.
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

    /// Waits until there is a wakeup for other replicas.
    #[cfg(feature = "postgres")]
    pub(crate) async fn until_outward(&self) {
        self.outward.notified().await;
    }
}

/// Whether a commit may make an operation claimable now.
pub(crate) fn is_worth_a_hint(commit: &Commit) -> bool {
    commit.writes().iter().any(|write| match write {
        Write::Start(new) => matches!(new.start, Start::Ready(Due::Now)),
        Write::Advance { next, .. } => {
            matches!(next, Next::Ready(Due::Now) | Next::Retry(Due::Now))
        }
        Write::Wake(_) | Write::Import(_) => true,
        Write::Put { .. }
        | Write::Remove(_)
        | Write::Cancel(_)
        | Write::Unpin(_)
        | Write::Reseal { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::is_worth_a_hint;
    use std::time::Duration;
    use sutler_journal::{Commit, Due, Next, OperationId, Outcome, Write};

    #[test]
    fn only_claimable_operations_cause_a_hint() {
        let id = OperationId::fresh();
        let later = Due::In(Duration::from_secs(1));
        for (next, worth) in [
            (Next::Ready(Due::Now), true),
            (Next::Retry(Due::Now), true),
            (Next::Ready(later), false),
            (Next::Same, false),
            (Next::Done(Outcome::Failed), false),
        ] {
            let commit = Commit::new().advance(id, next, None, None);
            assert_eq!(is_worth_a_hint(&commit), worth, "{next:?}");
        }
        assert!(is_worth_a_hint(&Commit::new().write(Write::Wake(id))));
        assert!(!is_worth_a_hint(&Commit::new().write(Write::Unpin(id))));
    }
}
