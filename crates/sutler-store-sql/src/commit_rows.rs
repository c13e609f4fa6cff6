//! A commit as parameters for a server: plain rows of expectations and writes.
//!
//! Everything that does not depend on the state of the server is computed here: the locks and their
//! order, the subjects in the feed, the scopes of terms. Not here: applying it, which the server
//! does (`postgres/layout_3/commit.sql`).

use crate::codec::{self, Lock};
use std::collections::BTreeMap;
use sutler_journal::{
    Commit, Due, Expect, NewOperation, Next, Operation, OperationId, Start, Subject, Term, Version,
    Write,
};
use uuid::Uuid;

/// Kinds of expectations.
pub(crate) const ABSENT: i16 = 0;
pub(crate) const VERSION: i16 = 1;
pub(crate) const FENCE: i16 = 2;
/// Kinds of writes.
pub(crate) const PUT_NEW: i16 = 0;
pub(crate) const PUT: i16 = 1;
pub(crate) const REMOVE: i16 = 2;
pub(crate) const START: i16 = 3;
pub(crate) const ADVANCE: i16 = 4;
pub(crate) const CANCEL: i16 = 5;
pub(crate) const WAKE: i16 = 6;
pub(crate) const UNPIN: i16 = 7;
pub(crate) const RESEAL: i16 = 8;
pub(crate) const IMPORT: i16 = 9;
/// Codes for the next state of an advance, in addition to the states.
const STAYS: i16 = 6;
const TRIED_AGAIN: i16 = 7;
const PUT_BACK: i16 = 8;

/// An expectation.
#[derive(Default)]
pub(crate) struct ExpectRow<'c> {
    pub(crate) kind: i16,
    pub(crate) key: Option<&'c [u8]>,
    /// A version, or an operation.
    pub(crate) id: Option<Uuid>,
    pub(crate) fence: Option<i64>,
}

/// A write. The meaning of `a` to `e` depends on the kind.
#[derive(Default)]
pub(crate) struct WriteRow<'c> {
    pub(crate) kind: i16,
    /// A document, or a lane.
    pub(crate) key: Option<&'c [u8]>,
    pub(crate) id: Option<Uuid>,
    pub(crate) worker: Option<Uuid>,
    pub(crate) state: Option<i16>,
    /// Microseconds until the due time.
    pub(crate) wait: Option<i64>,
    pub(crate) verb: Option<&'c [u8]>,
    pub(crate) queue: Option<&'c [u8]>,
    pub(crate) a: Option<&'c [u8]>,
    pub(crate) b: Option<&'c [u8]>,
    pub(crate) c: Option<&'c [u8]>,
    pub(crate) d: Option<&'c [u8]>,
    pub(crate) e: Option<&'c [u8]>,
    pub(crate) subject: Vec<u8>,
    /// Scopes and values.
    pub(crate) terms: Vec<(Vec<u8>, &'c [u8])>,
    /// Of an import: due, fence, accepted, finished, attempt, takeovers, cancel, pinned.
    pub(crate) numbers: Option<[Option<i64>; 8]>,
}

/// A whole commit.
pub struct CommitRows<'c> {
    pub(crate) id: Uuid,
    /// Numbers of locks in the order in which they are taken, and whether they are shared.
    pub(crate) locks: Vec<(i64, bool)>,
    /// Operations whose rows are locked, in order.
    pub(crate) operations: Vec<Uuid>,
    pub(crate) expects: Vec<ExpectRow<'c>>,
    pub(crate) writes: Vec<WriteRow<'c>>,
}

impl<'c> CommitRows<'c> {
    pub(crate) fn of(commit: &'c Commit) -> Self {
        let mut locks = Locks::default();
        let expects: Vec<ExpectRow<'c>> = commit
            .expects()
            .iter()
            .map(|expect| wanted(expect, &mut locks))
            .collect();
        let absent: Vec<&[u8]> = expects
            .iter()
            .filter(|wanted| wanted.kind == ABSENT)
            .filter_map(|wanted| wanted.key)
            .collect();
        let writes = commit
            .writes()
            .iter()
            .map(|write| row(write, &absent, &mut locks))
            .collect();
        locks.operations.sort_unstable();
        locks.operations.dedup();
        Self {
            id: commit.id().0,
            locks: locks.numbers.into_iter().collect(),
            operations: locks.operations,
            expects,
            writes,
        }
    }
}

/// Locks by number, and whether they are shared: sorted, so that there is no deadlock.
#[derive(Default)]
struct Locks {
    numbers: BTreeMap<i64, bool>,
    operations: Vec<Uuid>,
}

impl Locks {
    fn exclusive(&mut self, sort: Lock, name: &[u8]) {
        self.numbers.insert(codec::lock_number(sort, name), false);
    }

    fn shared(&mut self, sort: Lock, name: &[u8]) {
        let number = codec::lock_number(sort, name);
        self.numbers.entry(number).or_insert(true);
    }

    fn operation(&mut self, id: OperationId) -> Uuid {
        self.operations.push(id.0);
        id.0
    }
}

fn wanted<'c>(expect: &'c Expect, locks: &mut Locks) -> ExpectRow<'c> {
    match expect {
        Expect::Absent(key) => {
            locks.shared(Lock::Document, key.as_bytes());
            ExpectRow {
                kind: ABSENT,
                key: Some(key.as_bytes()),
                ..ExpectRow::default()
            }
        }
        Expect::Version(key, Version(read)) | Expect::Unchanged(key, Version(read)) => {
            locks.shared(Lock::Document, key.as_bytes());
            ExpectRow {
                kind: VERSION,
                key: Some(key.as_bytes()),
                id: Some(read.0),
                ..ExpectRow::default()
            }
        }
        Expect::Fence(id, fence) => ExpectRow {
            kind: FENCE,
            id: Some(locks.operation(*id)),
            fence: Some(i64::try_from(fence.0).unwrap_or(i64::MAX)),
            ..ExpectRow::default()
        },
    }
}

fn row<'c>(write: &'c Write, absent: &[&[u8]], locks: &mut Locks) -> WriteRow<'c> {
    match write {
        Write::Put { key, terms, body } => {
            locks.exclusive(Lock::Document, key.as_bytes());
            let known_absent = absent.contains(&key.as_bytes());
            WriteRow {
                kind: if known_absent { PUT_NEW } else { PUT },
                key: Some(key.as_bytes()),
                a: Some(body),
                subject: codec::subject(&Subject::Put(key.clone())),
                terms: scoped(key.realm(), key.kind(), terms),
                ..WriteRow::default()
            }
        }
        Write::Remove(key) => {
            locks.exclusive(Lock::Document, key.as_bytes());
            WriteRow {
                kind: REMOVE,
                key: Some(key.as_bytes()),
                subject: codec::subject(&Subject::Removed(key.clone())),
                ..WriteRow::default()
            }
        }
        Write::Start(new) => start(new, locks),
        Write::Advance {
            operation,
            next,
            detail,
            progress,
        } => WriteRow {
            a: detail.as_deref(),
            b: progress.as_deref(),
            ..advance(*operation, *next, locks)
        },
        Write::Cancel(id) => touch(CANCEL, *id, locks),
        Write::Wake(id) => touch(WAKE, *id, locks),
        Write::Unpin(id) => touch(UNPIN, *id, locks),
        Write::Reseal {
            operation,
            read,
            detail,
            request,
            progress,
        } => WriteRow {
            a: Some(detail),
            b: Some(request),
            c: Some(progress),
            d: Some(&read.0),
            e: Some(&read.1),
            ..touch(RESEAL, *operation, locks)
        },
        Write::Import(operation) => import(operation),
    }
}

fn start<'c>(new: &'c NewOperation, locks: &mut Locks) -> WriteRow<'c> {
    let (state, wait, worker) = match new.start {
        Start::Waiting => (codec::WAITING, 0, None),
        Start::Ready(due) => (codec::READY, wait(due), None),
        Start::Claimed(worker) => {
            locks.shared(Lock::Worker, worker.0.as_bytes());
            (codec::RUNNING, 0, Some(worker.0))
        }
    };
    WriteRow {
        kind: START,
        key: Some(new.lane.as_bytes()),
        id: Some(new.id.0),
        worker,
        state: Some(state),
        wait: Some(wait),
        verb: Some(new.verb.as_bytes()),
        queue: Some(new.queue.as_str().as_bytes()),
        a: Some(&new.detail),
        b: Some(&new.request),
        subject: codec::operation_in_lane(new.id, &new.lane),
        ..WriteRow::default()
    }
}

fn advance<'c>(operation: OperationId, next: Next, locks: &mut Locks) -> WriteRow<'c> {
    let (state, wait) = match next {
        Next::Same => (STAYS, 0),
        Next::Ready(due) => (codec::READY, wait(due)),
        Next::PutBack(due) => (PUT_BACK, wait(due)),
        Next::Retry(due) => (TRIED_AGAIN, wait(due)),
        Next::Waiting => (codec::WAITING, 0),
        Next::Done(outcome) => (codec::outcome_number(outcome), 0),
    };
    WriteRow {
        state: Some(state),
        wait: Some(wait),
        ..touch(ADVANCE, operation, locks)
    }
}

fn touch<'c>(kind: i16, operation: OperationId, locks: &mut Locks) -> WriteRow<'c> {
    WriteRow {
        kind,
        id: Some(locks.operation(operation)),
        subject: codec::subject(&Subject::Operation(operation)),
        ..WriteRow::default()
    }
}

fn import(operation: &Operation) -> WriteRow<'_> {
    let row = &operation.row;
    WriteRow {
        kind: IMPORT,
        key: Some(row.lane.as_bytes()),
        id: Some(row.id.0),
        state: Some(codec::state_number(row.state)),
        verb: Some(row.verb.as_bytes()),
        queue: Some(row.queue.as_str().as_bytes()),
        a: Some(&row.detail),
        b: Some(&operation.request),
        c: Some(&operation.progress),
        subject: codec::operation_in_lane(row.id, &row.lane),
        numbers: Some([
            Some(row.due.0),
            Some(i64::try_from(row.fence.0).unwrap_or(i64::MAX)),
            Some(row.accepted.0),
            row.finished.map(|finished| finished.0),
            Some(i64::from(row.attempt)),
            Some(i64::from(row.takeovers)),
            Some(i64::from(row.cancel)),
            Some(i64::from(row.pinned)),
        ]),
        ..WriteRow::default()
    }
}

/// Sorts terms and removes duplicates, so that equal terms are equal rows.
fn scoped<'c>(realm: &str, kind: &str, terms: &'c [Term]) -> Vec<(Vec<u8>, &'c [u8])> {
    let mut terms: Vec<(Vec<u8>, &[u8])> = terms
        .iter()
        .map(|term| (codec::scope(realm, kind, &term.name), term.value.as_slice()))
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn wait(due: Due) -> i64 {
    match due {
        Due::Now => 0,
        Due::In(wait) => codec::micros(wait),
    }
}

#[cfg(test)]
mod tests {
    use super::{CommitRows, PUT, PUT_NEW};
    use bytes::Bytes;
    use sutler_journal::{Commit, CommitId, Fence, Key, Kind, OperationId, Realm, Version, Write};
    use uuid::Uuid;

    fn key(id: &str) -> Key {
        Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &[id]).unwrap()
    }

    #[test]
    fn locks_are_in_one_order_and_a_written_document_is_locked_alone() {
        let read = Version(CommitId(Uuid::nil()));
        let body = Bytes::new();
        let one = Commit::new().unchanged(key("a"), read).replace(
            key("b"),
            read,
            Vec::new(),
            body.clone(),
        );
        let other = Commit::new()
            .insert(key("b"), Vec::new(), body)
            .unchanged(key("a"), read);
        let (one, other) = (CommitRows::of(&one), CommitRows::of(&other));
        assert_eq!(one.locks, other.locks);
        assert!(one.locks.is_sorted());
        let shared = one.locks.iter().filter(|(_, shared)| *shared);
        assert_eq!(shared.count(), 1, "only what is read is shared");
        assert_eq!((one.writes[0].kind, other.writes[0].kind), (PUT, PUT_NEW));
    }

    #[test]
    fn each_operation_is_locked_once() {
        let (a, b) = (OperationId::fresh(), OperationId::fresh());
        let commit = Commit::new()
            .fenced(b, Fence(1))
            .write(Write::Cancel(a))
            .write(Write::Unpin(b));
        assert_eq!(CommitRows::of(&commit).operations, [a.0, b.0]);
    }
}
