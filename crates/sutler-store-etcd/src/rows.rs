//! Encoding of values: documents, operations, commits, and the overflow values that operations share.
//!
//! Both directions of each encoding are here. Small contents of an operation are in its own value, so
//! that a poll reads one key. Larger ones are together in one overflow value per commit, so a commit
//! touches one key for each operation and one for all their contents, and advancing an operation
//! never rewrites unchanged contents. Not here: the keys (`keys.rs`).

use crate::codec::{ByteReader, damaged, put_bytes, put_number};
use bytes::Bytes;
use std::borrow::Cow;
use sutler_journal::{
    CommitId, Fence, Key, OperationId, OperationRow, Outcome, Queue, State, StoreError, StoreTime,
    Subject, Term, Version, WorkerId,
};

/// Longest content in the operation's own value. A hundred operations with three of
/// these each, plus a megabyte, stay below etcd's limit for one request.
pub(crate) const INLINE_BYTES_MAX: usize = 1024;

/// A document as stored.
pub(crate) struct DocumentRow {
    pub(crate) version: Version,
    pub(crate) terms: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
}

/// Encodes a document.
pub(crate) fn document(version: Version, terms: &[Term], body: &[u8]) -> Vec<u8> {
    let mut value = version.0.0.as_bytes().to_vec();
    put_number(&mut value, terms.len() as u64);
    for term in terms {
        put_bytes(&mut value, term.name.as_bytes());
        put_bytes(&mut value, &term.value);
    }
    value.extend_from_slice(body);
    value
}

/// Decodes a document.
pub(crate) fn read_document(value: &Bytes) -> Result<DocumentRow, StoreError> {
    let read = || {
        let mut reader = ByteReader(value);
        let version = Version(CommitId(reader.uuid()?));
        let mut terms = Vec::new();
        for _ in 0..reader.number()? {
            terms.push((reader.text()?, reader.bytes()?.to_vec()));
        }
        let body = value.slice_ref(reader.rest());
        Some(DocumentRow {
            version,
            terms,
            body,
        })
    };
    read().ok_or_else(|| damaged("a document"))
}

/// Content of an operation: inline, or in an overflow value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperationValue {
    Inline(Bytes),
    Overflow {
        overflow: CommitId,
        at: usize,
        length: usize,
    },
}

impl OperationValue {
    /// Commit of the overflow value it is in.
    pub(crate) fn overflow(&self) -> Option<CommitId> {
        match self {
            Self::Inline(_) => None,
            Self::Overflow { overflow, .. } => Some(*overflow),
        }
    }
}

/// The contents of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationValues {
    pub(crate) detail: OperationValue,
    pub(crate) request: OperationValue,
    pub(crate) progress: OperationValue,
}

impl OperationValues {
    /// The overflow values they are in, each as often as it is used.
    pub(crate) fn overflows(&self) -> impl Iterator<Item = CommitId> {
        let parts = [&self.detail, &self.request, &self.progress];
        parts.map(OperationValue::overflow).into_iter().flatten()
    }
}

/// An operation as stored. The row's detail is empty: it is one of the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredOperation {
    pub(crate) row: OperationRow,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) parts: OperationValues,
}

const CANCEL: u8 = 1;
const PINNED: u8 = 2;
const FINISHED: u8 = 4;
const HELD: u8 = 8;

/// Encodes an operation.
pub(crate) fn operation(job: &StoredOperation) -> Vec<u8> {
    let row = &job.row;
    let mut value = Vec::with_capacity(256);
    value.push(state_number(row.state));
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    value.push(
        flag(row.cancel, CANCEL)
            | flag(row.pinned, PINNED)
            | flag(row.finished.is_some(), FINISHED)
            | flag(job.worker.is_some(), HELD),
    );
    value.extend_from_slice(&row.due.0.to_be_bytes());
    value.extend_from_slice(&row.accepted.0.to_be_bytes());
    if let Some(finished) = row.finished {
        value.extend_from_slice(&finished.0.to_be_bytes());
    }
    if let Some(worker) = job.worker {
        value.extend_from_slice(worker.0.as_bytes());
    }
    put_number(&mut value, row.fence.0);
    put_number(&mut value, u64::from(row.attempt));
    put_number(&mut value, u64::from(row.takeovers));
    put_bytes(&mut value, row.lane.as_bytes());
    put_bytes(&mut value, row.verb.as_bytes());
    put_bytes(&mut value, row.queue.as_str().as_bytes());
    for part in [&job.parts.detail, &job.parts.request, &job.parts.progress] {
        put_part(&mut value, part);
    }
    value
}

/// Decodes an operation.
pub(crate) fn read_operation(
    id: OperationId,
    value: &Bytes,
) -> Result<StoredOperation, StoreError> {
    let read = || {
        let mut reader = ByteReader(value);
        let state = state_of(reader.byte()?)?;
        let flags = reader.byte()?;
        let (due, accepted) = (StoreTime(reader.time()?), StoreTime(reader.time()?));
        let finished = match flags & FINISHED {
            0 => None,
            _ => Some(StoreTime(reader.time()?)),
        };
        let worker = match flags & HELD {
            0 => None,
            _ => Some(WorkerId(reader.uuid()?)),
        };
        let fence = Fence(reader.number()?);
        let attempt = u32::try_from(reader.number()?).ok()?;
        let takeovers = u32::try_from(reader.number()?).ok()?;
        let row = OperationRow {
            id,
            lane: Key::from_bytes(reader.bytes()?).ok()?,
            verb: Cow::Owned(reader.text()?),
            queue: Queue::of(reader.text()?),
            state,
            due,
            fence,
            attempt,
            takeovers,
            cancel: flags & CANCEL != 0,
            pinned: flags & PINNED != 0,
            accepted,
            finished,
            detail: Bytes::new(),
        };
        let parts = OperationValues {
            detail: part(&mut reader)?,
            request: part(&mut reader)?,
            progress: part(&mut reader)?,
        };
        let whole = reader.is_empty();
        whole.then_some(StoredOperation { row, worker, parts })
    };
    read().ok_or_else(|| damaged("an operation"))
}

const INLINE: u8 = 0;
const IN_OVERFLOW: u8 = 1;

fn put_part(to: &mut Vec<u8>, part: &OperationValue) {
    match part {
        OperationValue::Inline(bytes) => {
            to.push(INLINE);
            put_bytes(to, bytes);
        }
        OperationValue::Overflow {
            overflow,
            at,
            length,
        } => {
            to.push(IN_OVERFLOW);
            to.extend_from_slice(overflow.0.as_bytes());
            put_number(to, *at as u64);
            put_number(to, *length as u64);
        }
    }
}

fn part(reader: &mut ByteReader<'_>) -> Option<OperationValue> {
    Some(match reader.byte()? {
        INLINE => OperationValue::Inline(Bytes::copy_from_slice(reader.bytes()?)),
        IN_OVERFLOW => OperationValue::Overflow {
            overflow: CommitId(reader.uuid()?),
            at: usize::try_from(reader.number()?).ok()?,
            length: usize::try_from(reader.number()?).ok()?,
        },
        _ => return None,
    })
}

fn state_number(state: State) -> u8 {
    match state {
        State::Waiting => 0,
        State::Ready => 1,
        State::Running => 2,
        State::Done(Outcome::Succeeded) => 3,
        State::Done(Outcome::Failed) => 4,
        State::Done(Outcome::Cancelled) => 5,
    }
}

fn state_of(number: u8) -> Option<State> {
    Some(match number {
        0 => State::Waiting,
        1 => State::Ready,
        2 => State::Running,
        3 => State::Done(Outcome::Succeeded),
        4 => State::Done(Outcome::Failed),
        5 => State::Done(Outcome::Cancelled),
        _ => return None,
    })
}

/// Record of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    pub(crate) at: StoreTime,
    pub(crate) subjects: Vec<Subject>,
}

const PUT: u8 = 0;
const REMOVED: u8 = 1;
const OPERATION: u8 = 2;

/// Encodes a commit record.
pub(crate) fn record(record: &CommitRecord) -> Vec<u8> {
    let mut value = record.at.0.to_be_bytes().to_vec();
    for subject in &record.subjects {
        match subject {
            Subject::Put(key) => {
                value.push(PUT);
                put_bytes(&mut value, key.as_bytes());
            }
            Subject::Removed(key) => {
                value.push(REMOVED);
                put_bytes(&mut value, key.as_bytes());
            }
            Subject::Operation(id) => {
                value.push(OPERATION);
                value.extend_from_slice(id.0.as_bytes());
            }
        }
    }
    value
}

/// Decodes a commit record.
pub(crate) fn read_record(value: &[u8]) -> Result<CommitRecord, StoreError> {
    let read = || {
        let mut reader = ByteReader(value);
        let at = StoreTime(reader.time()?);
        let mut subjects = Vec::new();
        while !reader.is_empty() {
            subjects.push(match reader.byte()? {
                PUT => Subject::Put(Key::from_bytes(reader.bytes()?).ok()?),
                REMOVED => Subject::Removed(Key::from_bytes(reader.bytes()?).ok()?),
                OPERATION => Subject::Operation(OperationId(reader.uuid()?)),
                _ => return None,
            });
        }
        Some(CommitRecord { at, subjects })
    };
    read().ok_or_else(|| damaged("a commit"))
}

/// Encodes a time.
pub(crate) fn time(time: StoreTime) -> Vec<u8> {
    time.0.to_be_bytes().to_vec()
}

/// Decodes the time at the beginning of a value.
pub(crate) fn read_time(value: &[u8]) -> Result<StoreTime, StoreError> {
    let time = ByteReader(value).time().map(StoreTime);
    time.ok_or_else(|| damaged("a time"))
}

/// Collects contents that are too large for the operations' own values.
#[derive(Default)]
pub(crate) struct OverflowValue(pub(crate) Vec<u8>);

impl OverflowValue {
    /// Stores a content inline or appends it here.
    pub(crate) fn place(&mut self, commit: CommitId, content: &Bytes) -> OperationValue {
        if content.len() <= INLINE_BYTES_MAX {
            return OperationValue::Inline(content.clone());
        }
        let at = self.0.len();
        self.0.extend_from_slice(content);
        OperationValue::Overflow {
            overflow: commit,
            at,
            length: content.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CommitRecord, INLINE_BYTES_MAX, OperationValue, OperationValues, OverflowValue,
        StoredOperation, document, operation, read_document, read_operation, read_record, record,
    };
    use bytes::Bytes;
    use sutler_journal::{
        CommitId, Fence, Key, Kind, OperationId, OperationRow, Outcome, Queue, Realm, State,
        StoreTime, Subject, Term, Version, WorkerId,
    };
    use uuid::Uuid;

    fn key(id: &str) -> Key {
        Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &[id]).unwrap()
    }

    fn job(state: State, worker: Option<WorkerId>, finished: Option<StoreTime>) -> StoredOperation {
        let row = OperationRow {
            id: OperationId::fresh(),
            lane: key("ä b"),
            verb: "provision".into(),
            queue: Queue::named("work"),
            state,
            due: StoreTime(-5),
            fence: Fence(300),
            attempt: 2,
            takeovers: 1,
            cancel: true,
            pinned: false,
            accepted: StoreTime(i64::MAX),
            finished,
            detail: Bytes::new(),
        };
        let parts = OperationValues {
            detail: OperationValue::Inline(Bytes::from_static(b"detail")),
            request: OperationValue::Overflow {
                overflow: CommitId(Uuid::from_u128(7)),
                at: 5,
                length: 70_000,
            },
            progress: OperationValue::Inline(Bytes::new()),
        };
        StoredOperation { row, worker, parts }
    }

    #[test]
    fn an_operation_round_trips() {
        for job in [
            job(State::Waiting, None, None),
            job(State::Ready, None, None),
            job(State::Running, Some(WorkerId::fresh()), None),
            job(State::Done(Outcome::Succeeded), None, Some(StoreTime(9))),
            job(State::Done(Outcome::Failed), None, Some(StoreTime(9))),
            job(State::Done(Outcome::Cancelled), None, Some(StoreTime(9))),
        ] {
            let value = Bytes::from(operation(&job));
            assert_eq!(read_operation(job.row.id, &value).unwrap(), job);
            let short = value.slice(..value.len() - 1);
            assert!(read_operation(job.row.id, &short).is_err(), "cut short");
        }
    }

    #[test]
    fn a_document_and_a_commit_come_back_as_they_were_written() {
        let version = Version(CommitId(Uuid::from_u128(3)));
        let terms = [Term::new("plan", b"\0\xff".to_vec()), Term::new("x", "")];
        let value = Bytes::from(document(version, &terms, b"body"));
        let stored = read_document(&value).unwrap();
        assert_eq!((stored.version, &stored.body[..]), (version, &b"body"[..]));
        let expected = [
            ("plan".to_owned(), b"\0\xff".to_vec()),
            ("x".to_owned(), Vec::new()),
        ];
        assert_eq!(stored.terms, expected);

        let written = CommitRecord {
            at: StoreTime(12),
            subjects: vec![
                Subject::Put(key("a")),
                Subject::Removed(key("b")),
                Subject::Operation(OperationId::fresh()),
            ],
        };
        assert_eq!(read_record(&record(&written)).unwrap(), written);
        assert!(read_record(b"short").is_err());
    }

    #[test]
    fn only_large_contents_are_in_the_overflow_value() {
        let (commit, mut overflow) = (CommitId(Uuid::from_u128(1)), OverflowValue::default());
        let small = Bytes::from(vec![1; INLINE_BYTES_MAX]);
        assert_eq!(
            overflow.place(commit, &small),
            OperationValue::Inline(small.clone())
        );
        for at in [0, INLINE_BYTES_MAX + 1] {
            let large = Bytes::from(vec![2; INLINE_BYTES_MAX + 1]);
            let placed = OperationValue::Overflow {
                overflow: commit,
                at,
                length: large.len(),
            };
            assert_eq!(overflow.place(commit, &large), placed);
        }
        assert_eq!(overflow.0.len(), 2 * (INLINE_BYTES_MAX + 1));
    }
}
