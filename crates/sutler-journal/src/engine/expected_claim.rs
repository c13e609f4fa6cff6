//! A claim that a commit makes for this engine: announced before the commit, run after it.
//!
//! While the commit has no answer, renewals leave its operation alone. If the caller drops the claim, because its client
//! disconnected, the outcome stayed unknown or the answer took long, the operation runs as soon as a renewal shows that
//! it was claimed.

use super::run_table::ClaimOrigin;
use super::{Engine, Permit, RunCompletion, loops};
use crate::operation::{Operation, OperationId, WorkerId};

/// A claim that a commit is about to make.
pub struct ExpectedClaim {
    engine: Engine,
    id: OperationId,
    worker: WorkerId,
    /// The operation as it is after the claim; `None` before the commit is sent.
    operation: Option<Operation>,
}

impl ExpectedClaim {
    pub(super) fn new(engine: &Engine, id: OperationId) -> Option<Self> {
        let worker = engine.0.table().expect(id)?;
        Some(Self {
            engine: engine.clone(),
            id,
            worker,
            operation: None,
        })
    }

    /// The worker for `Start::Claimed`.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Sets the operation that the commit claims.
    pub fn set_operation(&mut self, operation: Operation) {
        self.operation = Some(operation);
    }

    /// Runs the operation after its commit. Without a permit it does not count against its queue, because a
    /// caller waits for it. `None`: the lease was lost meanwhile, and another worker runs it.
    pub fn run(mut self, permit: Option<Permit>) -> Option<RunCompletion> {
        let operation = self.operation.take()?;
        let claim = (self.worker, ClaimOrigin::Response);
        loops::spawn_run(&self.engine, claim, operation, permit)
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
            Some(operation) => {
                let now = tokio::time::Instant::now();
                inner.table().give_up(operation, self.worker, now);
                inner.renew.notify_one();
            }
        }
    }
}
