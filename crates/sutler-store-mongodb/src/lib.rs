//! The journal's store in MongoDB (8.0 or later, a replica set).
//!
//! A document is one document, an operation is one document, and what a commit demands and changes is
//! one `bulkWrite` inside a transaction: the server judges it, and two round trips make it durable on a
//! majority. No two commits write the same thing unless they are about the same thing, so independent
//! lanes never conflict; their order in the feed is settled afterwards. It maps and remembers, and
//! takes no decisions: those are in the crates above `sutler-journal`, whose
//! [`Store`](sutler_journal::Store) this implements.
//!
//! Reading order: `key_encoding.rs` for how bytes become text that sorts like bytes, `rows.rs` for what stands
//! in a document, `commit_steps.rs` for what a commit becomes, `commit.rs` for how it is tried, `transaction.rs`
//! for how it is sent, `feed.rs` for the order of commits, `claim.rs` for leases, `layout.rs` for
//! collections and indexes.

mod settings;

mod claim;
mod commands;
mod commit;
mod commit_steps;
mod error;
mod feed;
mod info;
mod key_encoding;
mod layout;
mod locks;
mod logs;
mod read;
mod rows;
mod store;
mod sweep;
mod transaction;
mod wakeups;

pub use settings::{MongoOpenError, MongoSettings};
pub use store::MongoStore;
