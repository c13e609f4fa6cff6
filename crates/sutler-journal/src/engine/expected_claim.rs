//! A claim that a commit makes for this engine: announced before the commit, run after it.
//!
//! While the commit has no answer, renewals leave its operation alone. If the caller drops the claim, because its client
//! disconnected, the outcome stayed unknown or the answer took long, the operation runs as soon as a renewal shows that
//! it was claimed.

use super::run_table::{ClaimOrigin, UnstartedOperation};
use super::{Engine, Permit, RunCompletion, loops};
use crate::operation::{Operation, OperationId, WorkerId};
use tokio::time::Instant;

/// A claim that a commit is about to make.
pub struct ExpectedClaim {
    engine: Engine,
    id: OperationId,
    worker: WorkerId,
    /// The operation as it is after the claim, since a moment before the commit is sent; `None` until then.
    operation: Option<(Operation, Instant)>,
    /// The slot of its queue that the operation takes.
    permit: Option<Permit>,
}

impl ExpectedClaim {
    pub(super) fn new(engine: &Engine, id: OperationId, permit: Option<Permit>) -> Option<Self> {
        let worker = engine.0.table().expect(id)?;
        Some(Self {
            engine: engine.clone(),
            id,
            worker,
            operation: None,
            permit,
        })
    }

    /// The worker for `Start::Claimed`.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Sets the operation that the commit claims; to be called right before the commit is sent.
    pub fn set_operation(&mut self, operation: Operation) {
        self.operation = Some((operation, Instant::now()));
    }

    /// Runs the operation after its commit. Without a permit it does not count against its queue, because a
    /// caller waits for it. `None`: nothing starts now, because the lease was lost meanwhile, the engine shuts down, or a
    /// renewal has already run it here.
    pub fn run(mut self) -> Option<RunCompletion> {
        let read = self.operation.take()?;
        let claim = (self.worker, ClaimOrigin::Response);
        loops::spawn_run(&self.engine, claim, read, self.permit.take())
    }

    /// The commit was certainly not written.
    pub fn not_written(mut self) {
        self.operation = None;
    }
}

impl Drop for ExpectedClaim {
    fn drop(&mut self) {
        let inner = &self.engine.0;
        match self.operation.take() {
            None => inner.table().was_not_claimed(self.id, self.worker),
            Some((operation, _)) => {
                let permit = self.permit.take();
                let unstarted = UnstartedOperation { operation, permit };
                let now = Instant::now();
                inner.table().caller_left(unstarted, self.worker, now);
                inner.renew.notify_one();
            }
        }
    }
}
