//! The journal's store in etcd (3.4 or later), through its JSON gateway.
//!
//! etcd stores rows; each replica maintains indexes, which it builds from one read of all rows and then
//! updates from a watch. So a commit touches one key for each document and operation it writes, and a
//! constant number of others, however many terms there are, and is one transaction: one round trip.
//! Leases are etcd's own, the feed is in the order of etcd's revisions. The store makes no decisions:
//! those are in the crates above `sutler-journal`, whose
//! [`Store`](sutler_journal::Store) this implements.
//!
//! etcd must compact old revisions (`--auto-compaction-retention=1h`, for example), or it fills up.
//! The etcd user needs a role with read and write access to the prefix, and nothing else.
//!
//! Reading order: `keys.rs` and `rows.rs` for keys and values, `view.rs` for the indexes,
//! `transaction.rs` for the translation of a commit, `commit.rs` for sending it, `watch_view.rs` for
//! following changes, `claim.rs` for leases.

mod settings;

mod claim;
mod client;
mod clock;
mod codec;
mod commit;
mod keys;
mod logs;
mod read;
mod rows;
mod store;
mod store_info;
mod sweep;
mod transaction;
mod unknown_commits;
mod view;
mod watch;
mod watch_view;
mod wire;

pub use settings::{EtcdSettings, InvalidUrlError, Login, Tls};
pub use store::{EtcdOpenError, EtcdStore};
