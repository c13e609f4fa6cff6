//! What a hook answers when it does not succeed.
//!
//! Two messages: what the caller may read, and the cause, which only the operator's log sees. An
//! error that comes in by `?` has no message for the caller, so the caller reads a plain sentence.

use crate::refusal::Refusal;
use std::fmt;

/// What callers read when the author said nothing for them.
const NO_MESSAGE: &str = "The operation failed. The operator of the service broker can see why.";

/// The result of a hook.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a hook did not succeed.
pub struct Error {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    pub(crate) instance_usable: Option<bool>,
    pub(crate) update_repeatable: Option<bool>,
}

/// What follows from an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// It failed; something may be left behind.
    Failed,
    /// It failed and may succeed when tried again.
    Transient,
    /// Nothing was made, because the request cannot be carried out.
    Refused(Refusal),
    /// The claim was lost: another worker goes on.
    Lost,
}

impl Error {
    /// It failed, and this is what the caller may read.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message.into())
    }

    /// It failed and is worth another attempt, within the verb's limits.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, message.into())
    }

    /// Nothing was made: the request is invalid (400).
    pub fn invalid(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(
            ErrorKind::Refused(Refusal::Invalid(message.clone())),
            message,
        )
    }

    /// Nothing was made: this is not supported, or not now (422).
    pub fn unsupported(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(
            ErrorKind::Refused(Refusal::Unsupported(message.clone())),
            message,
        )
    }

    /// Nothing was made: the binding needs an application (422 RequiresApp).
    pub fn requires_app() -> Self {
        Self::new(
            ErrorKind::Refused(Refusal::RequiresApp),
            Refusal::RequiresApp.to_string(),
        )
    }

    /// Adds what the operator needs to know. Never shown to a caller.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// After a failed update or deprovision: whether the instance can still be used.
    #[must_use]
    pub fn instance_usable(mut self, usable: bool) -> Self {
        self.instance_usable = Some(usable);
        self
    }

    /// After a failed update: whether the same update may be sent again.
    #[must_use]
    pub fn update_repeatable(mut self, repeatable: bool) -> Self {
        self.update_repeatable = Some(repeatable);
        self
    }

    pub(crate) fn lost() -> Self {
        Self::new(ErrorKind::Lost, String::new())
    }

    fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            cause: None,
            instance_usable: None,
            update_repeatable: None,
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Self::failed(NO_MESSAGE).because(cause)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ErrorKind::Failed => "failed",
            ErrorKind::Transient => "failed for now",
            ErrorKind::Refused(_) => "refused",
            ErrorKind::Lost => "lost",
        };
        write!(f, "{kind}: {}", self.message)?;
        let mut said = String::new();
        let mut cause = self
            .cause
            .as_ref()
            .map(|it| &**it as &dyn std::error::Error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some print their source themselves.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            cause = error.source();
        }
        Ok(())
    }
}
