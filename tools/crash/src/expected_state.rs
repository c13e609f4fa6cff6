//! State that a platform expects of a resource, and that must hold after a crash.

use serde_json::Value;

/// A requested change that is not acknowledged as finished.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingChange {
    /// `provision`, `update` …
    pub verb: &'static str,
    /// Named by a 202; `None` before a response.
    pub operation: Option<String>,
}

/// Last acknowledged state of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AcknowledgedState {
    /// It never existed.
    #[default]
    Never,
    /// It exists, with these parameters or credentials.
    There(Value),
    /// It was deleted.
    Gone,
}

/// Expected state of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedState {
    /// Acknowledged state.
    pub settled: AcknowledgedState,
    /// Change in progress.
    pub pending: Option<PendingChange>,
}

/// Allowed responses to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedFetch {
    /// 200 with the acknowledged state.
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

    /// Records a requested change.
    pub fn request_change(&mut self, verb: &'static str) {
        self.pending = Some(PendingChange {
            verb,
            operation: None,
        });
    }

    /// The operation of the change in progress, if it was ever named.
    pub fn operation(&self) -> Option<&str> {
        self.pending.as_ref()?.operation.as_deref()
    }

    /// Records that the change was acknowledged as finished.
    pub fn settle(&mut self, settled: AcknowledgedState) {
        self.settled = settled;
        self.pending = None;
    }
}
