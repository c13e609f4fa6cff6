//! The loop that renews the lease, and the task of one run.
//!
//! Wakeups carry no data: a loop is woken by a signal or a timer, reads the current state, and acts on it. The other
//! loop is in `claim_loop.rs`.

use super::run::{Lost, Run};
use super::run_table::{ClaimOrigin, Incarnation, RunHandle, StartDecision, UnstartedOperation};
use super::{Engine, Inner, Permit, RunCompletion, RunResult};
use crate::commit::{Commit, CommitError, Due, Next, Write};
use crate::copy::{UnusableStoreError, check_usable};
use crate::metrics;
use crate::nondeterminism::scheduled;
use crate::operation::{Fence, Operation, OperationId, State, WorkerId};
use crate::query::Renewal;
use crate::store::LeaseError;
use bytes::Bytes;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Wait before an operation is tried again whose executor panicked, or said that it gave back a claim that it holds.
const AFTER_PANIC: Duration = Duration::from_secs(5);

pub(super) fn spawn_loops(engine: &Engine, held_until: Instant) {
    let (renewing, claiming) = (engine.clone(), engine.clone());
    let renewing = async move { renewing.renew_for_ever(held_until).await };
    let claiming = async move { claiming.claim_for_ever().await };
    engine.0.loops.spawn(scheduled(renewing));
    engine.0.loops.spawn(scheduled(claiming));
}

/// Starts an operation that this worker claimed, as it was read at a moment or later. `None`: nothing starts, see
/// [`StartDecision::Refused`].
pub(super) fn spawn_run(
    engine: &Engine,
    claim: (WorkerId, ClaimOrigin),
    (operation, read_at): (Operation, Instant),
    permit: Option<Permit>,
) -> Option<RunCompletion> {
    // From here on a shut-down waits for this run before it releases the lease.
    let _counted = engine.0.tasks.token();
    let decision = engine.0.table().start(&operation, claim, Instant::now());
    let (handle, put_back) = match decision {
        StartDecision::Refused => return None,
        StartDecision::Running(handle) => return Some(RunCompletion(handle.finished)),
        StartDecision::After(handle) => {
            let next = engine.clone();
            let finished = handle.finished.clone();
            engine.0.tasks.spawn(scheduled(async move {
                handle.finished.cancelled().await;
                spawn_run(&next, claim, (operation, read_at), permit);
            }));
            return Some(RunCompletion(finished));
        }
        StartDecision::Started(handle) => (handle, None),
        StartDecision::PutBack(handle, wait) => (handle, Some(wait)),
    };
    let (id, fence) = (operation.row.id, operation.row.fence);
    let RunHandle { finished, .. } = handle.clone();
    let run = Run::new((operation, read_at), engine.clone(), &handle);
    let end = RunEndGuard {
        engine: engine.clone(),
        id,
        fence,
        finished: finished.clone(),
        permit,
    };
    engine.0.tasks.spawn(scheduled(async move {
        let inner = Arc::clone(&end.engine.0);
        match put_back {
            None => inner.run_to_end(run).await,
            Some(wait) => inner.put_back_unstarted(&run, wait).await,
        }
        drop(end);
    }));
    Some(RunCompletion(finished))
}

/// Removes a run from the table when it is dropped, also by a panic: otherwise its operation could never run here again.
struct RunEndGuard {
    engine: Engine,
    id: OperationId,
    fence: Fence,
    finished: CancellationToken,
    permit: Option<Permit>,
}

impl Drop for RunEndGuard {
    fn drop(&mut self) {
        let may_others_wait = self.permit.take().is_some_and(Permit::give_back);
        let inner = &self.engine.0;
        inner.table().ended(self.id, self.fence);
        self.finished.cancel();
        if may_others_wait {
            inner.queues.wake();
        }
    }
}

impl Engine {
    /// Renews the lease until the engine has stopped, and stops all runs before it ends.
    async fn renew_for_ever(&self, mut held_until: Instant) {
        let inner = &self.0;
        let lease = inner.settings.lease;
        let mut pause = lease / 3;
        loop {
            let incarnation = inner.incarnation();
            let next = Instant::now() + pause;
            tokio::select! {
                biased;
                () = inner.stopped.cancelled() => return,
                () = incarnation.lost.cancelled() => {}
                () = inner.renew.notified() => {}
                () = tokio::time::sleep_until(next.min(held_until)) => {}
            }
            let turn = async {
                if incarnation.lost.is_cancelled() {
                    inner.acquire_new_lease().await
                } else {
                    self.renew_once(&incarnation, held_until).await
                }
            };
            let renewed = tokio::select! {
                biased;
                () = inner.stopped.cancelled() => return,
                renewed = turn => renewed,
            };
            // A renewal that failed is repeated soon: the lease goes on meanwhile.
            pause = if renewed.is_some() {
                lease / 3
            } else {
                lease / 30
            };
            if let Some(until) = renewed {
                held_until = until;
            } else if Instant::now() >= held_until && !incarnation.lost.is_cancelled() {
                inner.lease_lost(&incarnation);
            }
        }
    }

    /// Renews the lease and acts on the answer. Returns the moment until which the lease is held now.
    async fn renew_once(&self, incarnation: &Incarnation, held_until: Instant) -> Option<Instant> {
        let inner = &self.0;
        let sent = Instant::now();
        // One answer that gets lost must not cost the lease.
        let given_up = held_until.min(sent + inner.settings.lease / 3);
        let renewal = inner.store.renew(incarnation.worker, inner.settings.lease);
        match timeout_at(given_up, renewal).await {
            Ok(Ok(renewal)) => {
                self.compare_runs(&renewal, sent, incarnation);
                Some(inner.held_until(sent))
            }
            Ok(Err(LeaseError::Lost)) => {
                inner.lease_lost(incarnation);
                None
            }
            Ok(Err(LeaseError::Store(error))) => {
                tracing::warn!(%error, "the lease could not be renewed");
                None
            }
            Err(_) => {
                tracing::warn!("the store did not answer a renewal of the lease in time");
                None
            }
        }
    }

    /// Cancels and stops runs as the renewal demands, and runs operations whose claim was not answered.
    fn compare_runs(&self, renewal: &Renewal, sent: Instant, incarnation: &Incarnation) {
        for id in &renewal.cancelled {
            self.notify_cancelled(*id);
        }
        let worker = incarnation.worker;
        let steps = self.0.table().renewed(worker, &renewal.held, sent);
        for unstarted in steps.run {
            let UnstartedOperation {
                mut operation,
                permit,
            } = unstarted;
            let id = operation.row.id;
            tracing::warn!(operation.id = %id, "running an operation whose claim was not answered in time");
            // The operation is as it was when it was claimed.
            operation.row.cancel |= renewal.cancelled.contains(&id);
            let queues = &self.0.queues;
            let permit = permit.unwrap_or_else(|| queues.permit_of_claimed(&operation.row.queue));
            let claim = (worker, ClaimOrigin::Renewal);
            spawn_run(self, claim, (operation, sent), Some(permit));
        }
        if !steps.read.is_empty() {
            let reading = self.clone();
            // Not in this loop: a store that is slow to read must not delay the next renewal.
            self.0.loops.spawn(scheduled(
                async move { reading.read_listed(&steps.read).await },
            ));
        }
    }

    /// Reads operations that a renewal listed and that do not run here.
    async fn read_listed(&self, ids: &[OperationId]) {
        for id in ids {
            let read = self.0.store.operation(*id);
            let read = tokio::select! {
                biased;
                () = self.0.stopping.cancelled() => return,
                read = read => read,
            };
            if let Ok(Some(operation)) = read
                && operation.row.state == State::Running
            {
                self.0.table().was_read(operation);
            }
        }
    }
}

impl Inner {
    async fn run_to_end(&self, run: Run) {
        let run = Arc::new(run);
        let id = run.id();
        let result = if run.operation().row.takeovers > self.settings.takeovers_max {
            self.give_up(&run).await
        } else {
            self.execute(&run).await
        };
        let left = match result {
            Ok(RunResult::Finished) => Ok(()),
            Ok(RunResult::Yield(wait)) => {
                self.put_back(&run, Next::Ready(Due::In(wait)), wait, None)
                    .await
            }
            Ok(RunResult::Retry(wait, progress)) => {
                let next = Next::Retry(Due::In(wait));
                let put_back = self.put_back(&run, next, wait, progress).await;
                if put_back.is_ok() && wait > self.settings.look_every {
                    self.wake_if_cancelled(id).await;
                }
                put_back
            }
            Ok(RunResult::Released(wait)) => self.released(&run, wait).await,
            Err(Lost) => Err(Lost),
        };
        if left == Err(Lost) {
            tracing::warn!(operation.id = %id, "this run stops: its claim was lost, or its operation has ended");
        }
    }

    /// Executes the run until the claim is lost. A panic of the executor ends this attempt, not the worker.
    async fn execute(&self, run: &Arc<Run>) -> Result<RunResult, Lost> {
        tokio::select! {
            biased;
            // First: an executor makes no step after the loss.
            () = run.lost().cancelled() => Err(Lost),
            ended = catch_panic(self.executor.execute(run.clone())) => ended.unwrap_or_else(|()| {
                tracing::error!(operation.id = %run.id(), "the executor panicked");
                Ok(RunResult::Retry(AFTER_PANIC, None))
            }),
        }
    }

    /// Lets the executor end an operation that was taken over too often.
    async fn give_up(&self, run: &Arc<Run>) -> Result<RunResult, Lost> {
        tokio::select! {
            biased;
            () = run.lost().cancelled() => Err(Lost),
            ended = catch_panic(self.executor.give_up(run.clone())) => ended.unwrap_or_else(|()| {
                tracing::error!(operation.id = %run.id(), "the executor panicked when it gave an operation up");
                Ok(RunResult::Retry(AFTER_PANIC, None))
            }),
        }
    }

    /// Gives an operation back that this worker did not run.
    async fn put_back_unstarted(&self, run: &Run, wait: Duration) {
        let progress = self.executor.put_back(run);
        if run
            .step(Next::PutBack(Due::In(wait)), None, progress)
            .await
            .is_ok()
        {
            self.queues.look_within(run.queue(), wait);
        }
    }

    /// A commit of the executor gave the claim back.
    async fn released(&self, run: &Run, wait: Option<Duration>) -> Result<(), Lost> {
        if !run.has_ended_claim() {
            // Otherwise nobody would run it before a renewal lists it.
            tracing::error!(operation.id = %run.id(), "the executor did not give its claim back, as it says");
            let next = Next::Retry(Due::In(AFTER_PANIC));
            return self.put_back(run, next, AFTER_PANIC, None).await;
        }
        if let Some(wait) = wait {
            self.queues.look_within(run.queue(), wait);
        }
        Ok(())
    }

    async fn put_back(
        &self,
        run: &Run,
        next: Next,
        wait: Duration,
        progress: Option<Bytes>,
    ) -> Result<(), Lost> {
        run.step(next, None, progress).await?;
        self.queues.look_within(run.queue(), wait);
        Ok(())
    }

    /// Lets an operation run again at once if it was cancelled between the decision to wait and its commit: the cancel
    /// found it running and woke nothing.
    async fn wake_if_cancelled(&self, id: OperationId) {
        let wake = async {
            let found = self.store.operation(id).await;
            let found = found.map_err(CommitError::NotWritten)?;
            match found {
                Some(it) if it.row.cancel && it.row.state == State::Ready => {
                    let wake = Commit::new().write(Write::Wake(id));
                    self.store.commit(&wake).await
                }
                Some(_) | None => Ok(()),
            }
        };
        match timeout(self.settings.lease / 3, wake).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(operation.id = %id, %error, "if it was cancelled, it waits for its next attempt");
            }
            Err(_) => {
                tracing::warn!(operation.id = %id, "the store did not answer; if the operation was cancelled, it waits for its next attempt");
            }
        }
    }

    /// Ends all runs of this worker: other workers may claim its operations now.
    fn lease_lost(&self, incarnation: &Incarnation) {
        tracing::warn!("the lease ran out; starting again under a new name");
        metrics::record_lease_loss();
        self.table().lose_lease(incarnation, Instant::now());
    }

    /// The moment until which a worker that requested a renewal at a moment may run anything.
    fn held_until(&self, sent: Instant) -> Instant {
        sent + self.settings.lease - self.settings.lease_margin()
    }

    /// Acquires a lease under a new worker id. Returns the moment until which it is held.
    async fn acquire_new_lease(&self) -> Option<Instant> {
        // A store that was moved stays so until an operator reopens it.
        let usable = timeout(self.settings.lease / 3, check_usable(self.store.as_ref()));
        if let Ok(Err(error @ (UnusableStoreError::Moved(_) | UnusableStoreError::Unfinished))) =
            usable.await
        {
            tracing::error!(%error, "no lease is requested");
            tokio::time::sleep(self.settings.lease).await;
            return None;
        }
        let next = Incarnation::fresh();
        let sent = Instant::now();
        let renewal = self.store.renew(next.worker, self.settings.lease);
        match timeout_at(sent + self.settings.lease / 3, renewal).await {
            Ok(Ok(_)) => match check_usable(self.store.as_ref()).await {
                Ok(()) => {
                    self.table().begin(next);
                    self.queues.look_at_all();
                    return Some(self.held_until(sent));
                }
                // While this process had no lease, a copy of the store may have been finished.
                Err(error) => {
                    tracing::error!(%error, "the new lease is not used");
                    if let Err(error) = self.store.release(next.worker).await {
                        tracing::warn!(%error, "the new lease was not given back; it runs out by itself");
                    }
                }
            },
            Ok(Err(error)) => tracing::warn!(%error, "no new lease yet"),
            Err(_) => {
                tracing::warn!("the store did not answer the request for a new lease in time")
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        None
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
