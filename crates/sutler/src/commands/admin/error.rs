//! Errors of `sutler admin`, with their exit codes.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Error of an admin command.
#[derive(Debug)]
pub(super) enum AdminError {
    /// The command failed.
    Failed(String, Option<Box<dyn Error + Send + Sync>>),
    /// Wrong usage.
    Usage(String),
    /// The resource is unknown to the broker.
    NotFound(String),
    /// The broker refused the request.
    Refused(String),
    /// The action was not confirmed.
    Unconfirmed(String),
}

impl AdminError {
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(..) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::Unconfirmed(_) => 5,
        })
    }

    pub(super) fn failed(sentence: impl Into<String>) -> Self {
        Self::Failed(sentence.into(), None)
    }

    pub(super) fn file(doing: &str, path: &Path, error: std::io::Error) -> Self {
        let sentence = format!("cannot {doing} {}", path.display());
        Self::Failed(sentence, Some(error.into()))
    }

    /// Error for a response other than success.
    pub(super) fn answered(status: u16, sentence: String) -> Self {
        match status {
            400 | 405 | 413 => Self::Usage(sentence),
            401 | 403 => Self::failed(format!(
                "{sentence} Name the operator with --user, and the password with SUTLER_ADMIN_PASSWORD or --password-file."
            )),
            404 => Self::NotFound(sentence),
            409 | 422 => Self::Refused(sentence),
            _ => Self::failed(format!("the broker answered {status}: {sentence}")),
        }
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(sentence, _)
            | Self::Usage(sentence)
            | Self::NotFound(sentence)
            | Self::Refused(sentence)
            | Self::Unconfirmed(sentence) => f.write_str(sentence),
        }
    }
}

impl Error for AdminError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(_, Some(cause)) => Some(cause.as_ref()),
            Self::Failed(_, None)
            | Self::Usage(_)
            | Self::NotFound(_)
            | Self::Refused(_)
            | Self::Unconfirmed(_) => None,
        }
    }
}
