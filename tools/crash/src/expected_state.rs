//! State that a platform expects of a resource, and that must hold after a crash.

use serde_json::Value;

/// A change that was asked for and has not been acknowledged as finished.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingChange {
    /// `provision`, `update` …
    pub verb: &'static str,
    /// Named by a 202; `None` while no answer has come.
    pub operation: Option<String>,
}

/// Last acknowledged state of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AcknowledgedState {
    /// Nothing: it was never there.
    #[default]
    Never,
    /// It is there, with these parameters or credentials.
    There(Value),
    /// It was deleted.
    Gone,
}

/// Expected state of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedState {
    /// Acknowledged.
    pub settled: AcknowledgedState,
    /// Under way.
    pub pending: Option<PendingChange>,
}

/// Allowed responses to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedFetch {
    /// 200 with what was acknowledged.
    Exactly,
    /// 404.
    Never,
    /// 200, 404, or 422 while it changes.
    Whatever,
}

impl ExpectedState {
    /// Allowed responses to a fetch of this resource.
    pub fn fetchable(&self) -> ExpectedFetch {
        match (&self.settled, &self.pending) {
            (_, Some(_)) => ExpectedFetch::Whatever,
            (AcknowledgedState::There(_), None) => ExpectedFetch::Exactly,
            (AcknowledgedState::Never | AcknowledgedState::Gone, None) => ExpectedFetch::Never,
        }
    }

    /// A change is asked for.
    pub fn ask(&mut self, verb: &'static str) {
        self.pending = Some(PendingChange {
            verb,
            operation: None,
        });
    }

    /// The operation of the change under way, if it was ever named.
    pub fn operation(&self) -> Option<&str> {
        self.pending.as_ref()?.operation.as_deref()
    }

    /// The change was acknowledged as finished.
    pub fn settle(&mut self, settled: AcknowledgedState) {
        self.settled = settled;
        self.pending = None;
    }
}
