//! Violations: broken guarantees that the harness found.

/// A promise that was broken, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(String);

impl Violation {
    /// With a sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// With where it was found put in front.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

/// Holds unless a promise was broken.
pub type CheckResult<T> = Result<T, Violation>;
