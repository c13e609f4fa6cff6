//! Settings of a store, and the errors of opening it.
//!
//! Not here: the settings of a session, which are fixed (`postgres/connect.rs`).

use std::time::Duration;

/// Settings of a store. The defaults are right for a broker.
#[derive(Clone, Debug)]
pub struct SqlSettings {
    /// Maximum connections; further calls wait.
    pub connections: usize,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit of a call for a free connection.
    pub wait_timeout: Duration,
    /// Time limit of the server for one statement.
    pub statement_timeout: Duration,
    /// Time limit of a statement for a lock of another.
    pub lock_timeout: Duration,
    /// Time limit for a response; longer than the server's own limits, so that its error
    /// arrives.
    pub answer_timeout: Duration,
    /// Interval of wakeups by timer, which compensate for lost ones, and for servers
    /// that cannot send them.
    pub hint_every: Duration,
}

impl Default for SqlSettings {
    fn default() -> Self {
        Self {
            connections: 16,
            connect_timeout: Duration::from_secs(3),
            wait_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(3),
            answer_timeout: Duration::from_secs(7),
            hint_every: Duration::from_millis(250),
        }
    }
}

/// Why a store cannot be opened. Contains no password, and of the URL only host and database.
#[derive(Debug, thiserror::Error)]
pub enum SqlOpenError {
    /// The URL is invalid.
    #[error("the store's URL cannot be used: {0}")]
    Url(String),
    /// The server does not respond, or refuses the login.
    #[error("{server} cannot be reached: {said}; {}", advice(said))]
    Unreachable {
        /// Host, port and database.
        server: String,
        /// Reason.
        said: String,
    },
    /// The server is too old, or another product.
    #[error("{server} is {found}; this store needs {needed}: upgrade it, or name another server")]
    Unfit {
        /// Host, port and database.
        server: String,
        /// Version found.
        found: String,
        /// Version needed.
        needed: &'static str,
    },
    /// A later version of this program created the tables.
    #[error(
        "{server} has layout {found}, this program knows layouts up to {known}: use the newer \
         program, or a backup made before it was upgraded"
    )]
    Newer {
        /// Host, port and database.
        server: String,
        /// Layout version found.
        found: i64,
        /// Newest layout version that this program knows.
        known: i64,
    },
    /// The tables could not be created or upgraded.
    #[error(
        "the tables in {server} cannot be made or brought up to date: {said}; the role of the URL \
         needs the right to create tables and functions in its schema"
    )]
    Layout {
        /// Host, port and database.
        server: String,
        /// Reason.
        said: String,
    },
}

/// Advice for a refused connection, by the code before its message.
fn advice(said: &str) -> &'static str {
    let code = said.split_once(": ").map_or("", |(code, _)| code);
    match code {
        "28P01" | "28000" | "1044" | "1045" => {
            "check name and password in the store's URL, what that user may do, and whether the \
             server wants TLS"
        }
        "3D000" | "1049" => "create the database, or name another one in the store's URL",
        "53300" | "1040" => "let the server take more connections, or stop who holds them",
        "3159" | "1827" => "it wants TLS: take away what turns that off in the store's URL",
        // Messages of the driver have no code.
        _ if said.contains("certificate") => {
            "see that the URL names the authority of the server's certificate (sslrootcert, ssl-ca)"
        }
        _ => "see that it runs, and check host and port in the store's URL",
    }
}

#[cfg(test)]
mod tests {
    use super::SqlOpenError;

    #[test]
    fn the_advice_depends_on_the_error_code() {
        for (said, todo) in [
            ("28P01: no such password", "check name and password"),
            ("1045: Access denied", "check name and password"),
            ("3D000: there is none", "create the database"),
            ("1049: Unknown database", "create the database"),
            ("53300: too many", "more connections"),
            ("3159: insecure transport", "it wants TLS"),
            ("invalid peer certificate: BadSignature", "ssl-ca"),
            ("Connection refused", "see that it runs"),
        ] {
            let error = SqlOpenError::Unreachable {
                server: "PostgreSQL at h:1/d".to_owned(),
                said: said.to_owned(),
            };
            assert!(error.to_string().contains(todo), "{error}");
        }
    }
}
