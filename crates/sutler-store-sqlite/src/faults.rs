//! Fault injection into the writer, for tests of this crate and of those above. Feature `testing`.
//!
//! The default does nothing.

use rusqlite::Connection;
use std::fmt;
use std::sync::Arc;

/// A point in the execution of a group of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Everything is written, nothing is committed.
    BeforeCommit,
    /// COMMIT was sent; its outcome is unknown.
    DuringCommit,
    /// COMMIT has returned, the responses are not sent.
    AfterCommit,
}

/// Action at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Simulates a broken connection. Before: nothing is written, and that is known. During: nothing is
    /// written, and that is not known. After: all is written, and that is not known.
    Cut,
}

/// Called at every point; may block, which stalls the writer.
pub type Hook = dyn Fn(FaultPoint) -> Fault + Send + Sync;

/// An optional hook, and optionally false durability.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Arc<Hook>>,
    answers: Answers,
}

/// When COMMIT returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answers {
    /// After its sync.
    #[default]
    AfterSync,
    /// At once, as SQLite does with `synchronous = NORMAL`.
    BeforeSync,
}

impl Faults {
    /// Calls the hook at every point.
    pub fn with(hook: impl Fn(FaultPoint) -> Fault + Send + Sync + 'static) -> Self {
        Self {
            hook: Some(Arc::new(hook)),
            answers: Answers::AfterSync,
        }
    }

    /// Lets COMMIT return before its sync, to test that durability checks detect it.
    #[must_use]
    pub fn answering_before_sync(mut self) -> Self {
        self.answers = Answers::BeforeSync;
        self
    }

    /// Sets a fresh connection of the writer up accordingly.
    pub(crate) fn set_up(&self, db: &Connection) -> rusqlite::Result<()> {
        match self.answers {
            Answers::AfterSync => Ok(()),
            Answers::BeforeSync => db.execute_batch("PRAGMA synchronous = NORMAL"),
        }
    }

    pub(crate) fn at(&self, point: FaultPoint) -> Fault {
        self.hook.as_ref().map_or(Fault::None, |hook| hook(point))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({}, {:?})", self.hook.is_some(), self.answers)
    }
}
