//! What a check tells while it runs, for bars and lines. It tells of cases and subjects only: what a
//! broker said is for the report, which knows what to keep back.

use crate::case::Case;
use crate::verdicts::Subject;
use std::fmt;
use std::sync::Arc;

/// Something that a check did or saw.
#[derive(Clone, Debug)]
pub enum Event {
    /// The catalog was read, and so many plans will be walked.
    Planned {
        /// How many.
        plans: usize,
    },
    /// The walk of a plan begins.
    Began {
        /// Which plan.
        subject: Subject,
    },
    /// A case was seen, or said to be not applicable.
    Judged {
        /// Of what.
        subject: Subject,
        /// Which case.
        case: &'static Case,
    },
    /// A case failed; told once for each case of each subject.
    Failed {
        /// Of what.
        subject: Subject,
        /// Which case.
        case: &'static Case,
    },
    /// The walk of a plan has ended, in whatever way.
    Ended {
        /// Which plan.
        subject: Subject,
    },
    /// So many instances and bindings may still be there, and are being removed.
    CleaningUp {
        /// How many.
        left: usize,
    },
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// Whoever listens, if anybody does.
#[derive(Clone, Default)]
pub(crate) struct Progress(Option<Arc<Listener>>);

impl Progress {
    pub(crate) fn to(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells of something that is put together only if somebody listens.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(listener) = &self.0 {
            listener(&event());
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "Progress(somebody)",
            None => "Progress(nobody)",
        })
    }
}
