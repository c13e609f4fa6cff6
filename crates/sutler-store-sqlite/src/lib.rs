//! The journal's store in one SQLite file: a production store for one machine.
//!
//! One thread writes, and gathers what is waiting into one transaction and one `fdatasync`; readers
//! stand beside it. It maps and remembers, and takes no decisions: those are in the crates above
//! `sutler-journal`, whose [`Store`](sutler_journal::Store) this implements.
//!
//! Reading order: `schema.rs` and `sql.rs` for what is kept, `store.rs` for the way in, `writer.rs`
//! for how a group is committed, `young.rs` for why new documents are indexed late, `documents.rs` and
//! `lists.rs` for how things are read.

mod settings;

mod backup;
mod checkpoint;
mod codec;
mod documents;
mod lists;
mod owner;
mod polls;
mod readers;
mod rows;
mod schema;
mod sql;
mod staged;
mod store;
mod words;
mod writer;
mod young;

#[cfg(test)]
mod plans;

#[doc(hidden)]
pub mod faults;

pub use backup::{BackupError, BackupProgress};
pub use settings::{OpenError, SqliteSettings};
pub use store::SqliteStore;
