//! Errors of periodic tasks: a message that operators see in the task's status, and a cause for the log.

use std::error::Error;
use std::fmt;

/// Message of an error without a message.
const NO_MESSAGE: &str = "The operation failed. The operator of the service broker can see why.";

/// Result of a periodic task.
pub type TaskResult<T> = Result<T, TaskError>;

/// Why a run of a periodic task did not succeed.
pub struct TaskError {
    lost: bool,
    message: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl TaskError {
    /// The run failed with this message.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            lost: false,
            message: message.into(),
            cause: None,
        }
    }

    /// The claim was lost: another worker continues.
    #[must_use]
    pub fn lost() -> Self {
        Self {
            lost: true,
            message: String::new(),
            cause: None,
        }
    }

    /// Adds the cause, which only the log shows.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Whether the claim was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Message and cause.
    #[must_use]
    pub fn into_parts(self) -> (String, Option<Box<dyn Error + Send + Sync>>) {
        (self.message, self.cause)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for TaskError {
    fn from(cause: E) -> Self {
        Self::failed(NO_MESSAGE).because(cause)
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.lost { "lost" } else { "failed" };
        write!(f, "{kind}: {}", self.message)?;
        let mut printed = String::new();
        let mut cause = self.cause.as_ref().map(|it| &**it as &dyn Error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors print their source themselves.
            if !printed.contains(&text) {
                write!(f, ": {text}")?;
            }
            printed = text;
            cause = error.source();
        }
        Ok(())
    }
}
