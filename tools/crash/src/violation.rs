//! Violations: broken guarantees that the harness found.

/// A violated guarantee, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

impl Violation {
    /// A violation with a message.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// Prefixes the place where it was found.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

/// `Err` if a guarantee was violated.
pub type CheckResult<T> = Result<T, Violation>;
