//! The journal's store in PostgreSQL, MySQL and MariaDB: for many replicas over one server.
//!
//! Implements [`Store`](sutler_journal::Store) and makes no decisions. Each family of servers is a cargo
//! feature.
//!
//! Reading order: `postgres/layout_1/tables.sql` for the tables, `postgres/layout_3/commit.sql` for a
//! commit, `store.rs` for the entry points, `dialect.rs` for the differences between servers,
//! `commit_rows.rs` for the parameters of a commit, `pool.rs` and `error.rs` for connections and errors.

mod claims;
mod codec;
mod commit;
mod commit_retry;
mod commit_rows;
mod dialect;
mod error;
mod feed;
mod logs;
mod pool;
mod query;
mod read;
mod rows;
mod settings;
mod store;
mod store_info;
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
pub use store::SqlStore;

#[cfg(all(feature = "postgres", feature = "testing"))]
pub use postgres::faults;
