//! Names of the index terms, and the form of their values. Plain in the store, so never secret.

/// Name of a resource within its namespace, see [`scoped_value`].
pub const NAME_TERM: &str = "name";
/// Phase of a resource within its namespace, see [`scoped_value`]; of an orphan its state alone.
pub const STATE_TERM: &str = "state";
/// Uid of the broker.
pub const BROKER_TERM: &str = "broker";
/// Offering and plan of an instance: both ids with a NUL between them.
pub const PLAN_TERM: &str = "plan";
/// When a resource was created: microseconds since 1970 by the store's clock, big-endian.
pub const CREATED_TERM: &str = "created";
/// When a tombstone was written, or an orphan was deleted, in the same form.
pub const GONE_TERM: &str = "gone";
/// When an orphan was found, in the same form.
pub const FOUND_TERM: &str = "found";
/// The object of another system that an instance follows.
pub const SOURCE_TERM: &str = "source";
/// Uid of the instance of a binding, while the binding is not gone.
pub const INSTANCE_TERM: &str = "of";
/// Uid of the instance whose creation a binding waits for.
pub const WAITS_TERM: &str = "waits_on";
/// When a binding is to be rotated or one of its generations is to be unbound, in the form of [`CREATED_TERM`].
pub const DUE_TERM: &str = "due";
/// That a resource waits for a row of the orphan ledger: [`WAITS_FOR_ORPHAN`].
pub const ORPHAN_TERM: &str = "orphan";
/// The only value of [`ORPHAN_TERM`].
pub const WAITS_FOR_ORPHAN: &[u8] = b"waits";
/// That instances are to be notified of the change of a secret: [`NOTICE_DUE`].
pub const NOTICE_TERM: &str = "notice";
/// The only value of [`NOTICE_TERM`].
pub const NOTICE_DUE: &[u8] = b"due";
/// Our uid of a broker.
pub const UID_TERM: &str = "uid";

/// The value of a term that is unique or listed within a namespace: both parts with a NUL between them.
#[must_use]
pub fn scoped_value(namespace: &str, value: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(namespace.len() + 1 + value.len());
    bytes.extend_from_slice(namespace.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(value.as_bytes());
    bytes
}

/// A moment as the value of a term: sorted by time.
#[must_use]
pub fn moment_value(micros: i64) -> Vec<u8> {
    micros.max(0).to_be_bytes().to_vec()
}
