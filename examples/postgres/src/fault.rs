//! What the server's errors mean: whether to try again, and what a user may read. Pure.
//!
//! Every answer has two readers. The sentence goes to the user and says what to do next; the cause goes
//! to the operator's log (`because`). Neither holds an address or a password of the broker's own.

use sutler_broker::Error;

/// What can be done about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The server is not there, or not yet.
    Away,
    /// Somebody else is in the way; that passes.
    Busy,
    /// Something in the database needs what was to be removed.
    Needed,
    /// The server has no room.
    Full,
    /// The broker's own role may not do this.
    Forbidden,
    /// Something that was not foreseen.
    Other,
}

/// Reads a code of the server: five letters, of which the first two are the class.
pub(crate) fn meaning_of_code(code: &str) -> Meaning {
    match (code, code.get(..2).unwrap_or_default()) {
        // Shutting down, crashed, starting up; too many connections.
        ("57P01" | "57P02" | "57P03" | "53300", _) | (_, "08") => Meaning::Away,
        // In use, lock not available, cancelled by a timeout; deadlocks and the like.
        ("55006" | "55P03" | "57014" | "XX000", _) | (_, "40") => Meaning::Busy,
        // A role or a database that was not there a moment ago: a statement that a broker left behind
        // when it died has ended beside ours. The next attempt finds what it made.
        ("23505" | "42710" | "42P04", _) => Meaning::Busy,
        ("2BP01", _) => Meaning::Needed,
        (_, "53") => Meaning::Full,
        ("42501", _) | (_, "28") => Meaning::Forbidden,
        _ => Meaning::Other,
    }
}

fn meaning(error: &sqlx::Error) -> Meaning {
    match error {
        sqlx::Error::Database(it) => it.code().map_or(Meaning::Other, |it| meaning_of_code(&it)),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => Meaning::Away,
        _ => Meaning::Other,
    }
}

/// The error of a hook: what it says and whether it is tried again.
pub(crate) fn explain(error: sqlx::Error) -> Error {
    let said = match meaning(&error) {
        Meaning::Away => return away().because(error),
        Meaning::Busy => Error::transient(
            "The database is busy with something else; end long transactions in it, then repeat the \
             request.",
        ),
        Meaning::Needed => Error::unsupported(
            "Something in the database needs what is to be removed, such as a column of an \
             extension's type; drop that first, then repeat the request.",
        ),
        Meaning::Full => Error::failed(
            "The PostgreSQL server has no room left; tell its operator, then repeat the request.",
        ),
        Meaning::Forbidden => Error::failed(
            "The service broker may not do this on the PostgreSQL server; its operator must give the \
             broker's role LOGIN, CREATEDB and CREATEROLE, then repeat the request.",
        ),
        Meaning::Other => Error::failed(
            "The PostgreSQL server refused a step; the log of the service broker says which. Repeat \
             the request when its operator has mended it.",
        ),
    };
    said.because(error)
}

/// Nobody answers.
pub(crate) fn away() -> Error {
    Error::transient("The PostgreSQL server does not answer; repeat the request when it is back.")
}

#[cfg(test)]
mod tests {
    use super::{Meaning, explain, meaning_of_code};
    use std::io::{Error as IoError, ErrorKind};

    #[test]
    fn codes_are_judged_by_what_can_be_done_about_them() {
        for (code, meaning) in [
            ("57P01", Meaning::Away),
            ("57P03", Meaning::Away),
            ("53300", Meaning::Away),
            ("08006", Meaning::Away),
            ("55006", Meaning::Busy),
            ("40P01", Meaning::Busy),
            ("23505", Meaning::Busy),
            ("42710", Meaning::Busy),
            ("42P04", Meaning::Busy),
            ("2BP01", Meaning::Needed),
            ("53100", Meaning::Full),
            ("42501", Meaning::Forbidden),
            ("28P01", Meaning::Forbidden),
            ("42601", Meaning::Other),
            ("", Meaning::Other),
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
