//! In-flight cache: results and states of operations that were committed and start in this process.
//!
//! Only an optimisation. An operation that is not in the cache is read from the store, and a state
//! that turns out stale there is decided again. `commit.rs` inserts; `wait.rs` waits.

use crate::LoadedDocument;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use sutler_journal::{OperationId, Outcome};
use tokio::sync::oneshot;

/// An operation that starts in the process that committed it. `Q`: its request, `D`: its detail.
pub struct StartedOperation<S, Q, D> {
    /// The resource as committed with the operation.
    pub was: LoadedDocument<S>,
    /// The request.
    pub request: Q,
    /// Sender to the caller that waits for the end, if one does.
    pub result: Option<ResultSender<S, D>>,
}

/// Sends the committed end to the caller that waits in this process.
pub type ResultSender<S, D> = oneshot::Sender<CommittedEnd<S, D>>;

/// Receives the committed end.
pub type ResultReceiver<S, D> = oneshot::Receiver<CommittedEnd<S, D>>;

/// Outcome and detail of an operation that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationEnd<D> {
    /// Outcome as stored.
    pub outcome: Outcome,
    /// Detail as stored.
    pub detail: D,
}

/// The committed end of an operation, with the state of its resource.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedEnd<S, D> {
    /// The resource as committed with the end.
    pub state: S,
    /// Outcome and detail.
    pub end: OperationEnd<D>,
}

/// Most operations between their commit and their start. More than that means that some never start
/// here because a lease ran out in between; they are read from the store, and nothing is lost.
const ENTRIES_MAX: usize = 10_000;

/// Operations between their commit and their start.
#[derive(Default)]
pub struct InflightCache(Mutex<HashMap<OperationId, Box<dyn Any + Send>>>);

impl InflightCache {
    /// Keeps an operation until it starts.
    pub fn insert<S, Q, D>(&self, id: OperationId, started: StartedOperation<S, Q, D>)
    where
        S: Send + 'static,
        Q: Send + 'static,
        D: Send + 'static,
    {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(id, Box::new(started));
    }

    /// Takes an operation out, if it is here and has these types.
    pub fn remove<S, Q, D>(&self, id: OperationId) -> Option<StartedOperation<S, Q, D>>
    where
        S: 'static,
        Q: 'static,
        D: 'static,
    {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&id)?.downcast().ok().map(|started| *started)
    }
}
