//! The journal's store in PostgreSQL, MySQL and MariaDB: for many replicas over one server.
//!
//! It maps and remembers, and takes no decisions: those are in the crates above `sutler-journal`, whose
//! [`Store`](sutler_journal::Store) this implements. Each family is a cargo feature.
//!
//! Reading order: `postgres/layout_1/tables.sql` for what is kept, `commit.sql` beside it for what a
//! commit does, `postgres.rs` for the way in, `commit_rows.rs` for how a commit is laid out for the server,
//! `pool.rs` and `error.rs` for connections and how they fail.

mod codec;
mod commit_retry;
mod commit_rows;
mod error;
mod feed;
mod pool;
mod rows;
mod settings;
mod wakeups;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;

#[cfg(feature = "mysql")]
pub use mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use settings::{SqlOpenError, SqlSettings};

#[cfg(all(feature = "postgres", feature = "testing"))]
pub use postgres::faults;
