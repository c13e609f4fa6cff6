//! Progress events of a running check, for progress bars and lines.
//!
//! Contain cases and subjects only; answers of the broker are for the report, which redacts them.

use crate::case::Case;
use crate::verdicts::Subject;
use std::fmt;
use std::sync::Arc;

/// A progress event.
#[derive(Clone, Debug)]
pub enum Event {
    /// The catalog is read; this many plans will be checked.
    Planned {
        /// Number of plans.
        plans: usize,
    },
    /// The test of a plan begins.
    Began {
        /// Plan.
        subject: Subject,
    },
    /// A case has a verdict.
    Judged {
        /// Subject.
        subject: Subject,
        /// Case.
        case: &'static Case,
    },
    /// A case failed; emitted once per case and subject.
    Failed {
        /// Subject.
        subject: Subject,
        /// Case.
        case: &'static Case,
    },
    /// The test of a plan has ended, with any result.
    Ended {
        /// Plan.
        subject: Subject,
    },
    /// Instances and bindings that may still exist are being deleted.
    CleaningUp {
        /// Number of resources.
        left: usize,
    },
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// The listener, if any.
#[derive(Clone, Default)]
pub(crate) struct ProgressListener(Option<Arc<Listener>>);

impl ProgressListener {
    pub(crate) fn to(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Emits an event, which is created only if there is a listener.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(listener) = &self.0 {
            listener(&event());
        }
    }
}

impl fmt::Debug for ProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "ProgressListener(set)",
            None => "ProgressListener(none)",
        })
    }
}
