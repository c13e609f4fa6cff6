//! From the desk to the executor, within one process: what was just committed need not be read back.
//!
//! Only a short cut. Whatever is not handed over is read from the store, and what turns out stale
//! there is decided again: nothing depends on this file but speed.

use crate::lifecycle::End;
use crate::records::{Detail, Loaded, Request};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use sutler_journal::{OperationId, Outcome};
use tokio::sync::oneshot;

/// What the desk knows of an operation that starts here and now.
pub(crate) struct Fresh<S> {
    /// The resource as committed with the operation.
    pub was: Loaded<S>,
    /// What was asked.
    pub request: Request,
    /// Whoever waits for the result.
    pub result: Option<Teller<S>>,
}

/// Tells whoever waits for an operation in this process.
pub(crate) type Teller<S> = oneshot::Sender<Concluded<S>>;

impl<S> Fresh<S> {
    pub(crate) fn parts(self) -> (Loaded<S>, Request, Option<Teller<S>>) {
        (self.was, self.request, self.result)
    }
}

/// What an operation came to, as committed.
pub(crate) struct Concluded<S> {
    pub state: S,
    pub outcome: Outcome,
    pub detail: Detail,
}

/// How a run ended, and who wants to know at once.
pub(crate) struct Conclusion<S, M> {
    pub end: End<M>,
    pub detail: Detail,
    /// The resource as it was read before the run.
    pub was: Option<Loaded<S>>,
    pub result: Option<Teller<S>>,
}

/// Most operations between their commit and their start. Beyond that some never started here, because
/// a lease ran out in between: they are read from the store, and nothing is lost.
const LEFT_MAX: usize = 10_000;

/// Operations between their commit and their start.
#[derive(Default)]
pub(crate) struct Handover(Mutex<HashMap<OperationId, Box<dyn Any + Send>>>);

impl Handover {
    pub(crate) fn leave<S: Send + 'static>(&self, id: OperationId, fresh: Fresh<S>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= LEFT_MAX {
            left.clear();
        }
        left.insert(id, Box::new(fresh));
    }

    pub(crate) fn take<S: 'static>(&self, id: OperationId) -> Option<Fresh<S>> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.remove(&id)?.downcast().ok().map(|fresh| *fresh)
    }
}
