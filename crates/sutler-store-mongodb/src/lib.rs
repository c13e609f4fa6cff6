//! The journal's store in MongoDB (8.0 or later, a replica set).
//!
//! A document is one document, an operation is one document, and the expectations and writes of a commit
//! are one `bulkWrite` inside a transaction: the server checks them, and two round trips make it durable on
//! a majority. Commits only write the same document if they concern the same resource, so independent
//! lanes never conflict; their order in the feed is assigned afterwards. The store makes no decisions:
//! those are in the crates above `sutler-journal`, whose
//! [`Store`](sutler_journal::Store) this implements.
//!
//! Reading order: `key_encoding.rs` for text that sorts like bytes, `rows.rs` for the fields of documents,
//! `commit_steps.rs` for the translation of a commit, `commit.rs` for its attempts, `transaction.rs` for
//! sending it, `feed.rs` for the order of commits, `claim.rs` for leases, `layout.rs` for
//! collections and indexes.

mod settings;

mod claim;
mod commands;
mod commit;
mod commit_steps;
mod error;
mod feed;
mod key_encoding;
mod layout;
mod locks;
mod logs;
mod read;
mod rows;
mod store;
mod store_info;
mod sweep;
mod transaction;
mod wakeups;

pub use settings::{MongoOpenError, MongoSettings};
pub use store::MongoStore;
