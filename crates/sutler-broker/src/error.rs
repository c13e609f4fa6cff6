//! Error of a hook.
//!
//! It has a message for the caller, and a cause that only the operator's log contains. An error converted by `?`
//! has no message for the caller, so the caller gets a generic sentence.

use crate::refusal::Refusal;
use std::fmt;

/// Message for callers if the author gave none.
const NO_MESSAGE: &str = "The operation failed. The operator of the service broker can see why.";

/// The result of a hook.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a hook.
pub struct Error {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    pub(crate) instance_usable: Option<bool>,
    pub(crate) update_repeatable: Option<bool>,
}

/// Consequence of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The hook failed and may have left resources behind.
    Failed,
    /// The hook failed and may succeed in another attempt.
    Transient,
    /// The request is refused; nothing was created.
    Refused(Refusal),
    /// The claim was lost: another worker runs the operation.
    Lost,
}

impl Error {
    /// The hook failed; `message` is for the caller.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message.into())
    }

    /// The hook failed and should be tried again, within the limits of the verb.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, message.into())
    }

    /// Nothing was created: the request is invalid (400).
    pub fn invalid(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(
            ErrorKind::Refused(Refusal::Invalid(message.clone())),
            message,
        )
    }

    /// Nothing was created: the request is not supported, or not now (422).
    pub fn unsupported(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(
            ErrorKind::Refused(Refusal::Unsupported(message.clone())),
            message,
        )
    }

    /// Nothing was created: the binding needs an application (422 RequiresApp).
    pub fn requires_app() -> Self {
        Self::new(
            ErrorKind::Refused(Refusal::RequiresApp),
            Refusal::RequiresApp.to_string(),
        )
    }

    /// Adds the cause for the operator. Never shown to a caller.
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
        let mut previous = String::new();
        let mut cause = self
            .cause
            .as_ref()
            .map(|it| &**it as &dyn std::error::Error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors print their source themselves.
            if !previous.contains(&text) {
                write!(f, ": {text}")?;
            }
            previous = text;
            cause = error.source();
        }
        Ok(())
    }
}
