//! The loop that claims: it asks the store for the queues that are due, and starts what it gets.
//!
//! It is woken by a timer, by a hint of the store, and by `served_queues.rs`, which also decides what is asked. Starting a
//! run is in `loops.rs`.

use super::run_table::{self, ClaimOrigin};
use super::served_queues::count_by_queue;
use super::{Engine, loops};
use crate::metrics;
use crate::operation::{Operation, Queue, WorkerId};
use crate::store::LeaseError;
use std::time::Duration;
use tokio::time::Instant;

/// After a claim that failed, the next one waits for this part of the interval between looks.
const AFTER_FAILURE: u32 = 10;

impl Engine {
    /// Claims until the engine stops.
    pub(super) async fn claim_for_ever(&self) {
        let inner = &self.0;
        let mut hints = inner.store.hints();
        loop {
            if inner.stopping.is_cancelled() {
                return;
            }
            // One that came during the last claim. A store that was dropped sends none.
            if hints.has_changed().unwrap_or(false) {
                hints.borrow_and_update();
                inner.queues.hint();
            }
            let pause = tokio::select! {
                biased;
                // Operations that a pending claim still takes are released at the end.
                () = inner.stopping.cancelled() => return,
                pause = self.claim_once() => pause,
            };
            if pause.is_zero() {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                () = inner.stopping.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = inner.queues.woken() => {}
                // A store that was dropped sends no hints; the timer continues.
                Ok(()) = hints.changed() => inner.queues.hint(),
            }
        }
    }

    /// Asks the queues that are due, at most those of one claim. Returns how long to wait before the next one.
    async fn claim_once(&self) -> Duration {
        let inner = &self.0;
        let look_every = inner.settings.look_every;
        let incarnation = inner.incarnation();
        // The lease may last on in the store, but nothing would run what is claimed under it. Whatever ends a pause or
        // brings a lease wakes the loop.
        if self.is_paused() || incarnation.lost.is_cancelled() {
            return look_every;
        }
        let sent = Instant::now();
        let asked = inner.queues.next_claim(sent);
        if asked.is_empty() {
            return inner.queues.until_next_claim(sent);
        }
        match inner.store.claim(incarnation.worker, &asked).await {
            Ok(claimed) => {
                self.take(&asked, claimed, (sent, incarnation.worker));
                inner.queues.until_next_claim(Instant::now())
            }
            // The renewal loop notices this and acquires a new lease.
            Err(LeaseError::Lost) => look_every,
            Err(LeaseError::Store(error)) => {
                tracing::warn!(%error, "no operation could be claimed");
                let next = inner.queues.until_next_claim(Instant::now());
                next.max(look_every / AFTER_FAILURE)
            }
        }
    }

    /// Runs the operations that this worker claimed.
    fn take(
        &self,
        asked: &[(Queue, usize)],
        mut claimed: Vec<Operation>,
        (sent, worker): (Instant, WorkerId),
    ) {
        let counts = count_by_queue(&claimed);
        run_table::sort_for_start(&mut claimed);
        for operation in claimed {
            if operation.row.takeovers > 0 {
                metrics::record_takeover();
            }
            // Another operation may have taken the slot meanwhile, or the limit was lowered: then this one runs over the
            // limit, which is better than holding a claim without running it.
            let permit = self.0.queues.permit_of_claimed(&operation.row.queue);
            let claim = (worker, ClaimOrigin::Response);
            loops::spawn_run(self, claim, (operation, sent), Some(permit));
        }
        self.0.queues.claimed(asked, &counts);
    }
}
