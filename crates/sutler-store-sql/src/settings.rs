//! Settings of a store, and the errors of opening it.
//!
//! Not here: the settings of a session, which are fixed (`postgres/connect.rs`).

use std::time::Duration;

/// How a store is run. The defaults are right for a broker.
#[derive(Clone, Debug)]
pub struct SqlSettings {
    /// Most connections at a time; who comes later waits.
    pub connections: usize,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long a call waits for a free connection.
    pub wait_timeout: Duration,
    /// How long the server may work on one statement before it gives up.
    pub statement_timeout: Duration,
    /// How long a statement may wait for another's lock before the server gives up.
    pub lock_timeout: Duration,
    /// How long an answer is waited for; longer than the server's own timeouts, so that it can tell
    /// of them.
    pub answer_timeout: Duration,
    /// Interval of wakeups by timer: makes up for lost ones, and for servers
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

/// Why a store cannot be opened. Says no password, and nothing of the URL but host and database.
#[derive(Debug, thiserror::Error)]
pub enum SqlOpenError {
    /// The URL is invalid.
    #[error("the store's URL cannot be used: {0}")]
    Url(String),
    /// The server does not answer, or refuses the login.
    #[error("{server} cannot be reached: {said}; {}", advice(said))]
    Unreachable {
        /// Host, port and database.
        server: String,
        /// Reason.
        said: String,
    },
    /// The server is too old, or of another make.
    #[error("{server} is {found}; this store needs {needed}: upgrade it, or name another server")]
    Unfit {
        /// Host, port and database.
        server: String,
        /// Version found.
        found: String,
        /// Version needed.
        needed: &'static str,
    },
    /// A later version of this program made the tables.
    #[error(
        "{server} has layout {found}, this program knows layouts up to {known}: use the newer \
         program, or a backup made before it was upgraded"
    )]
    Newer {
        /// Host, port and database.
        server: String,
        /// The layout there.
        found: i64,
        /// The newest layout known here.
        known: i64,
    },
    /// The tables could not be made or brought up to date.
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
        // The driver's words, which have no code.
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
    fn what_to_do_depends_on_what_the_server_said() {
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
