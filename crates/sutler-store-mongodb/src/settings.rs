//! Settings of a store, and the errors of opening it.
//!
//! TLS, credentials and the name of the replica set are in the URL, as in the driver's documentation
//! (`tls=true&tlsCAFile=…`). Not here: requirements of the server (`layout.rs`).

use std::time::Duration;

/// Settings of a store. The defaults are right for a broker.
#[derive(Clone, Debug)]
pub struct MongoSettings {
    /// Maximum connections to each member; further requests wait.
    pub connections: u32,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit of the search for a primary.
    pub select_timeout: Duration,
    /// Time limit of the server for one command.
    pub command_timeout: Duration,
    /// Time limit for a response; longer than the server's own limit, so that its error arrives.
    pub answer_timeout: Duration,
    /// Interval of wakeups by timer, which compensate for lost ones.
    pub hint_every: Duration,
}

impl Default for MongoSettings {
    fn default() -> Self {
        Self {
            connections: 32,
            connect_timeout: Duration::from_secs(3),
            select_timeout: Duration::from_secs(3),
            command_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(7),
            hint_every: Duration::from_millis(250),
        }
    }
}

/// Why a store cannot be opened. Contains no password, and of the URL only hosts and database.
#[derive(Debug, thiserror::Error)]
pub enum MongoOpenError {
    /// The URL is invalid.
    #[error(
        "the store's URL cannot be used: it must look like \
         mongodb://user:password@host:27017/database?replicaSet=name, with the characters : / ? # [ ] @ \
         of a password written as %3A and so on"
    )]
    Url,
    /// The server does not respond, or refuses the login.
    #[error(
        "{server} cannot be reached: {said}; see that the replica set runs and has a primary, and check \
         hosts, name and password in the store's URL, and in which database that user is known \
         (authSource)"
    )]
    Unreachable {
        /// Hosts and database.
        server: String,
        /// Reason.
        said: String,
    },
    /// A standalone server has no transactions.
    #[error(
        "{server} is a standalone server, which has no transactions: start mongod with --replSet rs0, \
         then run rs.initiate() in mongosh once; one member is enough"
    )]
    Standalone {
        /// Hosts and database.
        server: String,
    },
    /// A router in front of shards.
    #[error(
        "{server} is a router of a sharded cluster: name the members of one replica set instead"
    )]
    Sharded {
        /// Hosts and database.
        server: String,
    },
    /// The server is too old.
    #[error("{server} is MongoDB {found}; this store needs MongoDB 8.0 or later: upgrade it")]
    Old {
        /// Hosts and database.
        server: String,
        /// Version found.
        found: String,
    },
    /// A later version of this program created the collections.
    #[error(
        "{server} has layout {found}, this program knows layouts up to {known}: use the newer \
         program, or a backup made before it was upgraded"
    )]
    Newer {
        /// Hosts and database.
        server: String,
        /// Layout version found.
        found: i64,
        /// Newest layout version that this program knows.
        known: i64,
    },
    /// The collections could not be created.
    #[error(
        "the collections in {server} cannot be made: {said}; the user of the URL needs the role \
         readWrite on its database"
    )]
    Layout {
        /// Hosts and database.
        server: String,
        /// Reason.
        said: String,
    },
}
