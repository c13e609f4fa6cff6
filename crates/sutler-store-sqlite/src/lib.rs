//! The journal's store in one SQLite file: a production store for one machine.
//!
//! One thread writes, and gathers what is waiting into one transaction and one `fdatasync`; readers
//! stand beside it. It maps and remembers, and takes no decisions: those are in the crates above
//! `sutler-journal`, whose [`Store`](sutler_journal::Store) this implements.
//!
//! Reading order: `schema.rs` and `sql.rs` for what is kept, `store.rs` for the way in, `writer.rs`
//! for how a group is committed, `unindexed.rs` for why new documents are indexed late, `documents.rs` and
//! `lists.rs` for how things are read.

mod settings;

mod backup;
mod checkpoint;
mod codec;
mod documents;
mod file_lock;
mod interned_strings;
mod lists;
mod poll_cache;
mod readers;
mod rows;
mod schema;
mod sql;
mod staged_commit;
mod store;
mod unindexed;
mod writer;

#[cfg(test)]
mod query_plan_tests;

#[cfg(any(test, feature = "testing"))]
pub mod faults;

pub use backup::{BackupError, BackupProgress};
pub use settings::{SqliteOpenError, SqliteSettings};
pub use store::SqliteStore;
