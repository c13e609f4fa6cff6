//! What a platform knows of a resource, and what must therefore be true after a crash.

use serde_json::Value;

/// A change that was asked for and has not been acknowledged as finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// `provision`, `update` …
    pub verb: &'static str,
    /// Named by a 202; `None` while no answer has come.
    pub operation: Option<String>,
}

/// What was last acknowledged of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Settled {
    /// Nothing: it was never there.
    #[default]
    Never,
    /// It is there, with these parameters or credentials.
    There(Value),
    /// It was deleted.
    Gone,
}

/// What a platform knows of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Acknowledged.
    pub settled: Settled,
    /// Under way.
    pub pending: Option<Pending>,
}

/// What a fetch may answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetchable {
    /// 200 with what was acknowledged.
    Exactly,
    /// 404.
    Never,
    /// 200, 404, or 422 while it changes.
    Whatever,
}

impl Known {
    /// What a fetch of it may answer.
    pub fn fetchable(&self) -> Fetchable {
        match (&self.settled, &self.pending) {
            (_, Some(_)) => Fetchable::Whatever,
            (Settled::There(_), None) => Fetchable::Exactly,
            (Settled::Never | Settled::Gone, None) => Fetchable::Never,
        }
    }

    /// A change is asked for.
    pub fn ask(&mut self, verb: &'static str) {
        self.pending = Some(Pending {
            verb,
            operation: None,
        });
    }

    /// The operation of the change under way, if it was ever named.
    pub fn operation(&self) -> Option<&str> {
        self.pending.as_ref()?.operation.as_deref()
    }

    /// The change was acknowledged as finished.
    pub fn settle(&mut self, settled: Settled) {
        self.settled = settled;
        self.pending = None;
    }
}
