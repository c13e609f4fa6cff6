//! The journal's store in one SQLite file: a production store for one machine.
//!
//! One thread writes, and groups waiting commits into one transaction and one `fdatasync`; reads
//! are concurrent. The store makes no decisions: those are in the crates above
//! `sutler-journal`, whose [`Store`](sutler_journal::Store) this implements.
//!
//! Reading order: `schema.rs` and `sql.rs` for the tables, `store.rs` for the entry point, `writer.rs`
//! for group commit, `unindexed_documents.rs` for why new documents are indexed late, `documents.rs` and
//! `lists.rs` for reads.

mod settings;

mod backup;
mod checkpoint;
mod codec;
mod documents;
mod file_lock;
mod file_mode;
mod interned_strings;
mod lease_table;
mod lists;
mod poll_cache;
mod readers;
mod rows;
mod schema;
mod sql;
mod staged_commit;
mod store;
mod unindexed_documents;
mod writer;

#[cfg(test)]
mod query_plan_tests;

#[cfg(any(test, feature = "testing"))]
pub mod faults;

pub use backup::{BackupError, BackupProgress};
pub use settings::{SqliteOpenError, SqliteSettings};
pub use store::SqliteStore;
