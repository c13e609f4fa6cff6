//! The journal's store in etcd (3.4 or later), through its JSON gateway.
//!
//! etcd keeps rows; indexes are kept by each replica, which reads the rows once and then follows a
//! watch. So a commit touches one key for each document and operation it writes and a constant
//! number besides, however many terms there are, and is one transaction: one round trip. Leases are
//! etcd's own, the feed is in the order of etcd's revisions. It maps and remembers, and takes no
//! decisions: those are in the crates above `sutler-journal`, whose
//! [`Store`](sutler_journal::Store) this implements.
//!
//! etcd must compact old revisions (`--auto-compaction-retention=1h`, for example), or it fills up.
//! A user of etcd needs a role with read and write access to the prefix, and nothing else.
//!
//! Reading order: `keys.rs` for what is where, `rows.rs` for what stands in it, `view.rs` for the
//! indexes, `transaction.rs` for what a commit becomes, `commit.rs` for how it is sent, `watch_view.rs` for how
//! a replica keeps up, `claim.rs` for leases.

mod settings;

mod claim;
mod client;
mod clock;
mod codec;
mod commit;
mod info;
mod keys;
mod logs;
mod read;
mod rows;
mod store;
mod sweep;
mod transaction;
mod unknown_commits;
mod view;
mod watch;
mod watch_view;
mod wire;

pub use settings::{EtcdSettings, InvalidUrlError, Login, Tls};
pub use store::{EtcdOpenError, EtcdStore};
