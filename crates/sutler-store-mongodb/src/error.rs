//! Errors of a command, grouped by what a caller can do about them.
//!
//! Texts contain the server's codes and their names, never its messages: those quote keys and values.

use mongodb::error::{
    Error, ErrorKind, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};
use sutler_journal::StoreError;

/// A unique key exists already.
pub(crate) const DUPLICATE_KEY: i32 = 11000;

/// A command that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MongoError {
    /// No primary is available.
    Unsent(String),
    /// The server refused it and changed nothing.
    Refused {
        /// Error code.
        code: i32,
        /// Name of the error code.
        name: String,
        /// A repeat may succeed.
        transient: bool,
    },
    /// The connection broke or the response did not arrive in time: the outcome is unknown.
    Lost(String),
    /// The response cannot be read.
    Odd(String),
    /// The value cannot be stored here.
    Unfit(&'static str),
}

impl MongoError {
    /// Classifies an error of the driver.
    pub(crate) fn of(error: &Error) -> Self {
        let transient = error.contains_label(TRANSIENT_TRANSACTION_ERROR);
        let refused = |code: i32, name: &str| Self::Refused {
            code,
            name: name.to_owned(),
            transient,
        };
        match error.kind.as_ref() {
            _ if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) => {
                Self::Lost("the answer to a commit did not come".to_owned())
            }
            ErrorKind::Io(cause) => Self::Lost(cause.kind().to_string()),
            ErrorKind::ConnectionPoolCleared { .. } => Self::Lost("all were closed".to_owned()),
            ErrorKind::ServerSelection { .. } | ErrorKind::DnsResolve { .. } => {
                Self::Unsent("no primary was found".to_owned())
            }
            ErrorKind::Authentication { .. } => Self::Unsent("it did not let us in".to_owned()),
            ErrorKind::InvalidTlsConfig { .. } => Self::Unsent("TLS is set up wrongly".to_owned()),
            ErrorKind::Command(it) => refused(it.code, &it.code_name),
            ErrorKind::Write(WriteFailure::WriteError(it)) => {
                refused(it.code, it.code_name.as_deref().unwrap_or("a write"))
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(it)) => {
                Self::Lost(format!("not on a majority: {}", it.code_name))
            }
            ErrorKind::Shutdown => Self::Unsent("the store is being closed".to_owned()),
            _ => Self::Odd("the driver cannot make sense of it".to_owned()),
        }
    }

    /// An unexpected response.
    pub(crate) fn odd(what: &str) -> Self {
        Self::Odd(what.to_owned())
    }

    /// Converts the error for reads and for calls that may be repeated.
    pub(crate) fn into_store_error(self) -> StoreError {
        StoreError::new(self.sentence())
    }

    /// The error, for a message of the caller.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Unsent(said) | Self::Lost(said) | Self::Odd(said) => said.clone(),
            Self::Unfit(why) => (*why).to_owned(),
            Self::Refused { code, name, .. } => format!("it refused ({code} {name})"),
        }
    }

    /// Message: the error and the remedy.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Unsent(said) => format!(
                "MongoDB is unavailable ({said}): see that a majority of the replica set runs and can be reached"
            ),
            Self::Refused { code, name, .. } => {
                format!("MongoDB refused a command ({code} {name}): see its log, then try again")
            }
            Self::Lost(said) => format!(
                "the connection to MongoDB broke ({said}): it is made anew with the next request"
            ),
            Self::Unfit(why) => format!("it cannot be kept in MongoDB: {why}"),
            Self::Odd(said) => format!(
                "MongoDB gave an answer that cannot be read ({said}): see that only Sutler writes its \
                 database"
            ),
        }
    }
}

impl From<Error> for MongoError {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

impl From<MongoError> for StoreError {
    fn from(trouble: MongoError) -> Self {
        trouble.into_store_error()
    }
}

#[cfg(test)]
mod tests {
    use super::MongoError;
    use mongodb::error::{Error, ErrorKind};

    #[test]
    fn a_sent_statement_is_lost_and_an_unsent_one_is_not() {
        let broken = Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(MongoError::of(&broken), MongoError::Lost(_)));
        let closing = Error::from(ErrorKind::Shutdown);
        assert!(matches!(MongoError::of(&closing), MongoError::Unsent(_)));
    }

    #[test]
    fn every_message_has_a_remedy() {
        for (trouble, advice) in [
            (MongoError::Unsent("x".into()), "see that a majority"),
            (MongoError::Lost("x".into()), "made anew"),
            (MongoError::odd("x"), "only Sutler writes"),
            (MongoError::Unfit("write less"), "write less"),
        ] {
            assert!(trouble.sentence().contains(advice), "{trouble:?}");
        }
    }
}
