//! Errors of a statement, grouped by what a caller can do about them.
//!
//! Texts contain codes and the server's message, never values: the details of the server (rows,
//! keys) are left out.

use sutler_journal::{CommitError, StoreError};

/// A statement that did not succeed.
#[derive(Debug)]
pub enum SqlError {
    /// It was never sent: there was no connection.
    Unsent(String),
    /// The server refused it and changed nothing.
    Refused {
        /// Code: five characters of SQLSTATE, or the number of an error.
        code: String,
        /// Its message.
        said: String,
    },
    /// The connection broke or the response did not arrive in time: the outcome is unknown.
    Lost(String),
    /// The response cannot be read.
    Odd(String),
}

impl SqlError {
    /// The server's message, with its code.
    pub(crate) fn said(self) -> String {
        match self {
            Self::Refused { code, said } => format!("{code}: {said}"),
            Self::Lost(said) | Self::Unsent(said) | Self::Odd(said) => said,
        }
    }

    /// Converts an error of connecting: nothing was sent.
    pub(crate) fn into_unsent(self) -> Self {
        Self::Unsent(self.said())
    }

    /// Converts the error for a commit that was attempted once.
    pub(crate) fn into_commit_error(self) -> CommitError {
        let error = StoreError::new(self.sentence());
        match self {
            SqlError::Unsent(_) | SqlError::Refused { .. } => CommitError::NotWritten(error),
            SqlError::Lost(_) | SqlError::Odd(_) => CommitError::Unknown(error),
        }
    }

    /// Message: the error and the remedy.
    pub(crate) fn sentence(&self) -> String {
        match self {
            SqlError::Unsent(said) => {
                format!("there is no connection to the database ({said}): see that its server runs")
            }
            SqlError::Refused { code, said } => format!(
                "the database refused a statement ({code}: {said}): see its log, then try again"
            ),
            SqlError::Lost(said) => format!(
                "the connection to the database broke ({said}): it is made anew with the next request"
            ),
            SqlError::Odd(said) => format!(
                "the database gave an answer that cannot be read ({said}): see that only Sutler \
                 writes its tables"
            ),
        }
    }
}

impl From<SqlError> for StoreError {
    fn from(error: SqlError) -> Self {
        Self::new(error.sentence())
    }
}

/// An unexpected response.
pub(crate) fn odd(cause: impl std::fmt::Display) -> SqlError {
    SqlError::Odd(cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::SqlError;
    use sutler_journal::CommitError;

    #[test]
    fn only_requests_that_may_have_arrived_are_unknown() {
        let refused = SqlError::Refused {
            code: "40001".into(),
            said: "no".into(),
        };
        for (trouble, unknown) in [
            (SqlError::Unsent("refused".into()), false),
            (refused, false),
            (SqlError::Lost("reset".into()), true),
            (SqlError::Odd("?".into()), true),
        ] {
            let error = trouble.into_commit_error();
            assert_eq!(matches!(error, CommitError::Unknown(_)), unknown);
        }
    }
}
