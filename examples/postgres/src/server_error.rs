//! Classifies the errors of the server: whether to retry, and what the user reads. Pure.
//!
//! Every error has two texts. The description goes to the user and says what to do next; the cause goes to the
//! operator's log (`because`). Neither has an address or a password of the broker.

use sutler_broker::Error;

/// Class of an error, by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The server is down or starting.
    Away,
    /// Blocked by another session; temporary.
    Busy,
    /// Another object depends on the one to remove.
    Needed,
    /// The server is out of resources.
    Full,
    /// The broker's own role may not do this.
    Forbidden,
    /// Any other error.
    Other,
}

/// Classifies an SQLSTATE: five characters, of which the first two are the class.
pub(crate) fn meaning_of_code(code: &str) -> ErrorClass {
    match (code, code.get(..2).unwrap_or_default()) {
        // Shutting down, crashed, starting up; too many connections.
        ("57P01" | "57P02" | "57P03" | "53300", _) | (_, "08") => ErrorClass::Away,
        // In use, lock not available, cancelled by a timeout; deadlocks and the like.
        ("55006" | "55P03" | "57014" | "XX000", _) | (_, "40") => ErrorClass::Busy,
        // A role or a database that did not exist a moment ago: a statement of a killed broker has ended
        // concurrently. The next attempt finds its result.
        ("23505" | "42710" | "42P04", _) => ErrorClass::Busy,
        ("2BP01", _) => ErrorClass::Needed,
        (_, "53") => ErrorClass::Full,
        ("42501", _) | (_, "28") => ErrorClass::Forbidden,
        _ => ErrorClass::Other,
    }
}

fn meaning(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(it) => it
            .code()
            .map_or(ErrorClass::Other, |it| meaning_of_code(&it)),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => ErrorClass::Away,
        _ => ErrorClass::Other,
    }
}

/// The error of a hook: its description, and whether it is retried.
pub(crate) fn explain(error: sqlx::Error) -> Error {
    let explained = match meaning(&error) {
        ErrorClass::Away => return away().because(error),
        ErrorClass::Busy => Error::transient(
            "The database is busy with something else; end long transactions in it, then repeat the \
             request.",
        ),
        ErrorClass::Needed => Error::unsupported(
            "Something in the database needs what is to be removed, such as a column of an \
             extension's type; drop that first, then repeat the request.",
        ),
        ErrorClass::Full => Error::failed(
            "The PostgreSQL server has no room left; tell its operator, then repeat the request.",
        ),
        ErrorClass::Forbidden => Error::failed(
            "The service broker may not do this on the PostgreSQL server; its operator must give the \
             broker's role LOGIN, CREATEDB and CREATEROLE, then repeat the request.",
        ),
        ErrorClass::Other => Error::failed(
            "The PostgreSQL server refused a step; the log of the service broker says which. Repeat \
             the request when its operator has mended it.",
        ),
    };
    explained.because(error)
}

/// Error of a server that does not answer.
pub(crate) fn away() -> Error {
    Error::transient("The PostgreSQL server does not answer; repeat the request when it is back.")
}

#[cfg(test)]
mod tests {
    use super::{ErrorClass, explain, meaning_of_code};
    use std::io::{Error as IoError, ErrorKind};

    #[test]
    fn codes_are_classified_by_remedy() {
        for (code, meaning) in [
            ("57P01", ErrorClass::Away),
            ("57P03", ErrorClass::Away),
            ("53300", ErrorClass::Away),
            ("08006", ErrorClass::Away),
            ("55006", ErrorClass::Busy),
            ("40P01", ErrorClass::Busy),
            ("23505", ErrorClass::Busy),
            ("42710", ErrorClass::Busy),
            ("42P04", ErrorClass::Busy),
            ("2BP01", ErrorClass::Needed),
            ("53100", ErrorClass::Full),
            ("42501", ErrorClass::Forbidden),
            ("28P01", ErrorClass::Forbidden),
            ("42601", ErrorClass::Other),
            ("", ErrorClass::Other),
        ] {
            assert_eq!(meaning_of_code(code), meaning, "{code}");
        }
    }

    #[test]
    fn a_server_that_is_away_is_worth_another_attempt() {
        let refused = IoError::from(ErrorKind::ConnectionRefused);
        let error = format!("{:?}", explain(sqlx::Error::Io(refused)));
        assert!(
            error.starts_with("failed for now: The PostgreSQL server does not answer"),
            "{error}"
        );
    }
}
