//! Cuts and stalls where a real machine has them, for tests of this crate and of those above.
//!
//! Not part of the supported interface. The default does nothing and costs one branch per group.

use std::fmt;
use std::sync::Arc;

/// A place in the life of a group of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Everything is written, nothing is committed.
    BeforeCommit,
    /// COMMIT was sent; nobody knows what became of it.
    DuringCommit,
    /// COMMIT has returned, the answers have not left.
    AfterCommit,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The line is cut. Before: nothing is written, and known not to be. During: nothing is written,
    /// and not known. After: all is written, and not known.
    Cut,
}

/// Asked at every point; may block, which stalls the writer.
pub type Hook = dyn Fn(FaultPoint) -> Fault + Send + Sync;

/// An optional hook.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Hook>>);

impl Faults {
    /// Asks this at every point.
    pub fn with(hook: impl Fn(FaultPoint) -> Fault + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn at(&self, point: FaultPoint) -> Fault {
        self.0.as_ref().map_or(Fault::None, |hook| hook(point))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({})", self.0.is_some())
    }
}
