//! The engine's loops: renewing the lease, claiming, and running one operation.
//!
//! Wakeups carry no data: a loop is woken by a signal or a timer, reads the current state, and acts on it.

use super::run::{Lost, Run};
use super::{Engine, Incarnation, Inner, Permit, RunCompletion, RunHandle, RunResult};
use crate::commit::{Due, Next};
use crate::metrics;
use crate::process::scheduled;
use crate::operation::{Operation, OperationId, State, WorkerId};
use crate::store::LeaseError;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Wait before an operation whose executor panicked is tried again.
const AFTER_PANIC: Duration = Duration::from_secs(5);

pub(super) fn spawn_loops(engine: &Engine) {
    let (renewing, claiming) = (engine.clone(), engine.clone());
    engine
        .0
        .loops
        .spawn(scheduled(
            async move { renewing.renew_for_ever().await },
        ));
    engine
        .0
        .loops
        .spawn(scheduled(
            async move { claiming.claim_for_ever().await },
        ));
}

pub(super) fn spawn_run(
    engine: &Engine,
    operation: Operation,
    permit: Option<Permit>,
) -> RunCompletion {
    let incarnation = engine.0.incarnation();
    let finished = CancellationToken::new();
    let cancel = CancellationToken::new();
    let lost = incarnation.lost.child_token();
    if operation.row.cancel {
        cancel.cancel();
    }
    let (id, fence) = (operation.row.id, operation.row.fence);
    let entry = RunHandle {
        fence,
        cancel: cancel.clone(),
        lost: lost.clone(),
        finished: finished.clone(),
    };
    engine.0.running().insert(id, entry);
    let run = Run::new(operation, engine.clone(), cancel, lost);
    let task = engine.clone();
    let done = finished.clone();
    engine.0.tasks.spawn(scheduled(async move {
        task.0.run_to_end(run).await;
        let may_others_wait = permit.as_ref().is_some_and(Permit::is_last_permit);
        drop(permit);
        task.0.forget(id, fence);
        done.cancel();
        if may_others_wait {
            task.0.look.notify_one();
        }
    }));
    RunCompletion(finished)
}

impl Engine {
    async fn renew_for_ever(&self) {
        let inner = &self.0;
        let mut renewed = Instant::now();
        let mut unknown = Vec::new();
        loop {
            let incarnation = inner.incarnation();
            tokio::select! {
                biased;
                () = inner.stopped.cancelled() => return,
                () = incarnation.lost.cancelled() => {}
                () = tokio::time::sleep(inner.settings.lease / 3) => {}
            }
            if incarnation.lost.is_cancelled() {
                if let Some(at) = inner.acquire_new_lease().await {
                    renewed = at;
                }
                continue;
            }
            let sent_at = Instant::now();
            match inner
                .store
                .renew(incarnation.worker, inner.settings.lease)
                .await
            {
                Ok(renewal) => {
                    renewed = sent_at;
                    renewal
                        .cancelled
                        .into_iter()
                        .for_each(|id| self.notify_cancelled(id));
                    unknown = self
                        .recover_unacknowledged_claims(renewal.held, &unknown, &incarnation)
                        .await;
                }
                Err(LeaseError::Lost) => inner.lease_lost(&incarnation),
                Err(LeaseError::Store(error)) => {
                    tracing::warn!(%error, "the lease could not be renewed");
                    if renewed.elapsed() >= inner.settings.lease {
                        inner.lease_lost(&incarnation);
                    }
                }
            }
        }
    }

    /// Runs operations that this worker holds in the store but does not run, because the response to a claim
    /// was lost. Only those that were unknown at the previous renewal too: others may just be starting.
    async fn recover_unacknowledged_claims(
        &self,
        held: Vec<OperationId>,
        before: &[OperationId],
        incarnation: &Incarnation,
    ) -> Vec<OperationId> {
        let mut unknown = held;
        {
            let running = self.0.running();
            unknown.retain(|id| !running.contains_key(id));
        }
        for id in unknown.iter().filter(|id| before.contains(id)) {
            if let Ok(Some(operation)) = self.0.store.operation(*id).await
                && operation.row.state == State::Running
            {
                tracing::warn!(operation.id = %id, "running an operation whose claim was not answered");
                self.take(operation, incarnation.worker);
            }
        }
        unknown
    }

    async fn claim_for_ever(&self) {
        let inner = &self.0;
        let mut hints = inner.store.hints();
        loop {
            if inner.stopping.is_cancelled() {
                return;
            }
            hints.borrow_and_update();
            self.claim_once().await;
            let pause = inner.until_next_claim();
            tokio::select! {
                biased;
                () = inner.stopping.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = inner.look.notified() => {}
                // A store that was dropped sends no hints; the timer continues.
                Ok(()) = hints.changed() => {}
            }
        }
    }

    async fn claim_once(&self) {
        let inner = &self.0;
        if self.is_paused() {
            return;
        }
        let mut wanted = Vec::with_capacity(inner.queues.len());
        for slots in &inner.queues {
            let free = slots.permits.available_permits().min(slots.limit);
            if free > 0 {
                wanted.push((slots.queue.clone(), free));
            }
        }
        if wanted.is_empty() {
            return;
        }
        let worker = inner.incarnation().worker;
        match inner.store.claim(worker, &wanted).await {
            Ok(claimed) => {
                let full = claimed.len() == wanted.iter().map(|(_, n)| n).sum::<usize>();
                for operation in claimed {
                    if operation.row.takeovers > 0 {
                        metrics::record_takeover();
                    }
                    self.take(operation, worker);
                }
                if full {
                    inner.look.notify_one();
                }
            }
            // The renewal loop notices this and acquires a new lease.
            Err(LeaseError::Lost) => {}
            Err(LeaseError::Store(error)) => {
                tracing::warn!(%error, "no operation could be claimed")
            }
        }
    }

    fn take(&self, operation: Operation, worker: WorkerId) {
        if worker != self.worker() {
            return;
        }
        // Another operation may have taken the slot meanwhile: then this one runs over the limit,
        // which is better than holding a claim without running it.
        let permit = self.permit(&operation.row.queue);
        spawn_run(self, operation, permit);
    }
}

impl Inner {
    async fn run_to_end(&self, run: Run) {
        let run = Arc::new(run);
        let id = run.id();
        let result = if run.operation().row.takeovers > self.settings.takeovers_max {
            self.executor
                .give_up(run.clone())
                .await
                .map(|()| RunResult::Finished)
        } else {
            self.execute(&run).await
        };
        let left = match result {
            Ok(RunResult::Finished) => Ok(()),
            Ok(RunResult::Yield(wait)) => {
                self.put_back(&run, Next::Ready(Due::In(wait)), wait).await
            }
            Ok(RunResult::Retry(wait)) => {
                metrics::record_retry();
                self.put_back(&run, Next::Retry(Due::In(wait)), wait).await
            }
            Err(Lost) => Err(Lost),
        };
        if left == Err(Lost) {
            tracing::warn!(operation.id = %id, "the claim was lost; another worker goes on");
        }
    }

    /// Executes the run until the claim is lost. A panic of the executor ends this attempt, not the worker.
    async fn execute(&self, run: &Arc<Run>) -> Result<RunResult, Lost> {
        tokio::select! {
            biased;
            ended = catch_panic(self.executor.execute(run.clone())) => ended.unwrap_or_else(|()| {
                tracing::error!(operation.id = %run.id(), "the executor panicked");
                Ok(RunResult::Retry(AFTER_PANIC))
            }),
            () = run.lost().cancelled() => Err(Lost),
        }
    }

    async fn put_back(&self, run: &Run, next: Next, wait: Duration) -> Result<(), Lost> {
        run.step(next, None, None).await?;
        self.claim_within(wait);
        Ok(())
    }

    fn until_next_claim(&self) -> Duration {
        let mut planned = self.claim_at.lock().unwrap_or_else(PoisonError::into_inner);
        match *planned {
            Some(at) if at <= Instant::now() => {
                *planned = None;
                Duration::ZERO
            }
            Some(at) => (at - Instant::now()).min(self.settings.look_every),
            None => self.settings.look_every,
        }
    }

    /// Ends all runs of this worker: other workers may claim its operations now.
    fn lease_lost(&self, incarnation: &Incarnation) {
        tracing::warn!("the lease ran out; starting again under a new name");
        metrics::record_lease_loss();
        incarnation.lost.cancel();
    }

    /// Acquires a lease under a new worker id. Returns the moment from which it is held.
    async fn acquire_new_lease(&self) -> Option<Instant> {
        let next = Incarnation {
            worker: WorkerId::fresh(),
            lost: CancellationToken::new(),
        };
        let sent_at = Instant::now();
        match self.store.renew(next.worker, self.settings.lease).await {
            Ok(_) => {
                *self
                    .incarnation
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = next;
                self.look.notify_one();
                Some(sent_at)
            }
            Err(error) => {
                tracing::warn!(%error, "no new lease yet");
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    }
}

/// Polls a future to its end, turning a panic inside into `Err(())`.
///
/// # Errors
/// The future panicked; it is not polled again.
pub async fn catch_panic<F: Future>(work: F) -> Result<F::Output, ()> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(move |cx| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(())),
        }
    })
    .await
}
