//! Encoding of MongoDB documents: their fields, written and read.
//!
//! Field names are short, because MongoDB stores them in every document. Times are in microseconds; the
//! server fills in the current time. Not here: when fields change (`commit_steps.rs`).

use crate::error::MongoError;
use crate::key_encoding;
use bytes::Bytes;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document as Bsons, doc};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;
use sutler_journal::{
    CommitId, Document, Due, Fence, Key, Operation, OperationId, OperationRow, Outcome,
    PolledOperation, Queue, State, StoreTime, Subject, Term, Version, WorkerId,
};
use uuid::Uuid;

/// Codes of `state`.
pub(crate) const WAITING: i32 = 0;
pub(crate) const READY: i32 = 1;
pub(crate) const RUNNING: i32 = 2;
pub(crate) const DONE: i32 = 3;
/// Longest wait that is added to the server's clock: a thousand years, in microseconds.
const WAIT_MAX: i64 = 31_557_600_000_000_000;

/// The collections of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    /// Documents: `_id` is the key, `v` the version, `b` the body, `t` the terms.
    Documents,
    /// Operations.
    Operations,
    /// One document per commit: the feed with its commit ids.
    Commits,
    /// One document per worker: its lease is valid before `until`.
    Leases,
    /// Layout version, numbers of the feed, count of swept operations.
    Meta,
    /// Chunks of logs.
    Logs,
    /// Lengths of logs.
    LogHeads,
}

impl Collection {
    /// All, in the order of the numbers that commands use.
    pub(crate) const ALL: [Self; 7] = [
        Self::Documents,
        Self::Operations,
        Self::Commits,
        Self::Leases,
        Self::Meta,
        Self::Logs,
        Self::LogHeads,
    ];

    /// Its name in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::Operations => "operations",
            Self::Commits => "commits",
            Self::Leases => "leases",
            Self::Meta => "meta",
            Self::Logs => "logs",
            Self::LogHeads => "log_heads",
        }
    }

    /// Index in [`Collection::ALL`].
    pub(crate) fn number(self) -> i32 {
        self as i32
    }
}

/// The server's clock, in microseconds.
pub(crate) fn now() -> Bson {
    Bson::Document(doc! { "$multiply": [{ "$toLong": "$$NOW" }, 1000_i64] })
}

/// A moment on the server's clock.
pub(crate) fn moment(due: Due) -> Bson {
    match due {
        Due::Now => now(),
        Due::In(wait) => Bson::Document(doc! { "$add": [now(), micros(wait)] }),
    }
}

/// A wait, in microseconds.
pub(crate) fn micros(wait: Duration) -> i64 {
    i64::try_from(wait.as_micros()).map_or(WAIT_MAX, |it| it.min(WAIT_MAX))
}

/// Binary data.
pub(crate) fn binary(bytes: &[u8]) -> Bson {
    Bson::Binary(Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    })
}

/// An id; all have the same length, so they are sorted as bytes.
pub(crate) fn uuid(id: Uuid) -> Bson {
    Bson::Binary(Binary {
        subtype: BinarySubtype::Uuid,
        bytes: id.as_bytes().to_vec(),
    })
}

/// Text that an update must not evaluate as an expression.
pub(crate) fn literal(value: impl Into<Bson>) -> Bson {
    Bson::Document(doc! { "$literal": value.into() })
}

/// Encodes a document.
pub(crate) fn document(key: &Key, version: CommitId, terms: &[Term], body: &Bytes) -> Bsons {
    let mut row = doc! { "_id": key_encoding::key(key), "v": uuid(version.0), "b": binary(body) };
    if !terms.is_empty() {
        let mut found = Bsons::new();
        for term in terms {
            let entry = key_encoding::entry(key.realm(), key.kind(), &term.value, key.as_bytes());
            found.insert(key_encoding::field(&term.name), entry);
        }
        row.insert("t", found);
    }
    row
}

/// Decodes a document.
pub(crate) fn read_document(row: &Bsons) -> Result<Document, MongoError> {
    Ok(Document {
        key: read_key(row, "_id")?,
        version: Version(CommitId(read_uuid(row, "v")?)),
        body: read_bytes(row, "b")?,
    })
}

/// Subjects of a commit, encoded.
pub(crate) fn subject(subject: &Subject) -> Bson {
    let row = match subject {
        Subject::Put(key) => doc! { "p": key_encoding::key(key) },
        Subject::Removed(key) => doc! { "d": key_encoding::key(key) },
        Subject::Operation(id) => doc! { "o": uuid(id.0) },
    };
    Bson::Document(row)
}

/// Subjects of a commit, decoded.
pub(crate) fn read_subject(row: &Bsons) -> Result<Subject, MongoError> {
    if row.contains_key("p") {
        return Ok(Subject::Put(read_key(row, "p")?));
    }
    if row.contains_key("d") {
        return Ok(Subject::Removed(read_key(row, "d")?));
    }
    Ok(Subject::Operation(OperationId(read_uuid(row, "o")?)))
}

/// Lanes of the operations that a commit's record names, as far as there are such operations.
pub(crate) fn read_lanes(record: &Bsons) -> Result<HashMap<OperationId, Key>, MongoError> {
    let Ok(found) = record.get_array("lanes") else {
        return Ok(HashMap::new());
    };
    let lane = |row: &Bson| {
        let row = row.as_document().ok_or_else(|| MongoError::odd("lanes"))?;
        Ok((OperationId(read_uuid(row, "_id")?), read_key(row, "lane")?))
    };
    found.iter().map(lane).collect()
}

/// The code of an outcome.
pub(crate) fn outcome(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Failed => 1,
        Outcome::Cancelled => 2,
    }
}

fn read_state(row: &Bsons) -> Result<State, MongoError> {
    match (int(row, "s")?, row.get("out").and_then(Bson::as_i32)) {
        (0, _) => Ok(State::Waiting),
        (1, _) => Ok(State::Ready),
        (2, _) => Ok(State::Running),
        (3, Some(0)) => Ok(State::Done(Outcome::Succeeded)),
        (3, Some(1)) => Ok(State::Done(Outcome::Failed)),
        (3, Some(2)) => Ok(State::Done(Outcome::Cancelled)),
        _ => Err(MongoError::odd("a state")),
    }
}

/// Fields that a poll reads.
pub(crate) const POLLED: [&str; 4] = ["s", "out", "verb", "d"];

/// Decodes the fields that a poll reads.
pub(crate) fn read_polled(row: &Bsons) -> Result<PolledOperation, MongoError> {
    Ok(PolledOperation {
        state: read_state(row)?,
        verb: Cow::Owned(read_text(row, "verb")?),
        detail: read_bytes(row, "d")?,
    })
}

/// Decodes the row of an operation.
pub(crate) fn read_row(row: &Bsons) -> Result<OperationRow, MongoError> {
    let small = |name| u32::try_from(int(row, name)?).map_err(|_| MongoError::odd(name));
    let flag = |name| row.get_bool(name).map_err(|_| MongoError::odd(name));
    Ok(OperationRow {
        id: OperationId(read_uuid(row, "_id")?),
        lane: read_key(row, "lane")?,
        verb: Cow::Owned(read_text(row, "verb")?),
        queue: Queue::of(read_text(row, "q")?),
        state: read_state(row)?,
        due: StoreTime(int(row, "due")?),
        fence: read_fence(row)?,
        attempt: small("a")?,
        takeovers: small("k")?,
        cancel: flag("x")?,
        pinned: flag("p")?,
        accepted: StoreTime(int(row, "at")?),
        finished: row.get("end").and_then(Bson::as_i64).map(StoreTime),
        detail: read_bytes(row, "d")?,
    })
}

/// Decodes a whole operation.
pub(crate) fn read_operation(row: &Bsons) -> Result<Operation, MongoError> {
    Ok(Operation {
        row: read_row(row)?,
        request: read_bytes(row, "rq")?,
        progress: read_bytes(row, "pr")?,
    })
}

/// Fence of the present claim.
pub(crate) fn read_fence(row: &Bsons) -> Result<Fence, MongoError> {
    let fence = u64::try_from(int(row, "f")?);
    fence.map(Fence).map_err(|_| MongoError::odd("a fence"))
}

/// Encodes a fence.
pub(crate) fn fence(fence: Fence) -> i64 {
    i64::try_from(fence.0).unwrap_or(i64::MAX)
}

/// Worker that holds the operation.
pub(crate) fn read_worker(row: &Bsons) -> Option<WorkerId> {
    read_uuid(row, "w").ok().map(WorkerId)
}

/// A whole number of any BSON number type.
pub(crate) fn int(row: &Bsons, name: &str) -> Result<i64, MongoError> {
    match row.get(name) {
        Some(Bson::Int64(it)) => Ok(*it),
        Some(Bson::Int32(it)) => Ok(i64::from(*it)),
        _ => Err(MongoError::odd(name)),
    }
}

pub(crate) fn read_uuid(row: &Bsons, name: &str) -> Result<Uuid, MongoError> {
    let id = bytes_of(row, name).and_then(|it| Uuid::from_slice(it).ok());
    id.ok_or_else(|| MongoError::odd(name))
}

pub(crate) fn read_bytes(row: &Bsons, name: &str) -> Result<Bytes, MongoError> {
    let bytes = bytes_of(row, name).map(Bytes::copy_from_slice);
    bytes.ok_or_else(|| MongoError::odd(name))
}

fn read_text(row: &Bsons, name: &str) -> Result<String, MongoError> {
    let text = row.get_str(name).map(str::to_owned);
    text.map_err(|_| MongoError::odd(name))
}

fn read_key(row: &Bsons, name: &str) -> Result<Key, MongoError> {
    let bytes = key_encoding::bytes(&read_text(row, name)?);
    let key = bytes.and_then(|it| Key::from_bytes(&it).ok());
    key.ok_or_else(|| MongoError::odd(name))
}

/// Binary data of any subtype.
fn bytes_of<'a>(row: &'a Bsons, name: &str) -> Option<&'a [u8]> {
    match row.get(name) {
        Some(Bson::Binary(it)) => Some(&it.bytes),
        _ => None,
    }
}
