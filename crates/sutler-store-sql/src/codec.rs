//! Encoding of the journal's values in columns: states, times, subjects, cursors, locks.
//!
//! Both directions of each encoding are here, and both families of servers use them. Not here: whole
//! rows (`postgres/rows.rs`).

use crate::error::{SqlError, odd};
use std::time::Duration;
use sutler_journal::{
    Change, CommitId, Cursor, Key, Layout, OperationId, Outcome, State, StoreError, Subject, Term,
};
use uuid::Uuid;

pub(crate) const WAITING: i16 = 0;
pub(crate) const READY: i16 = 1;
pub(crate) const RUNNING: i16 = 2;
const SUCCEEDED: i16 = 3;
const FAILED: i16 = 4;
const CANCELLED: i16 = 5;

/// Longest stored wait: a hundred years, which never overflows when added to a time.
const WAIT_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

pub(crate) fn state_number(state: State) -> i16 {
    match state {
        State::Waiting => WAITING,
        State::Ready => READY,
        State::Running => RUNNING,
        State::Done(outcome) => outcome_number(outcome),
    }
}

pub(crate) fn outcome_number(outcome: Outcome) -> i16 {
    match outcome {
        Outcome::Succeeded => SUCCEEDED,
        Outcome::Failed => FAILED,
        Outcome::Cancelled => CANCELLED,
    }
}

/// Whether a state is final.
#[cfg(feature = "postgres")]
pub(crate) fn is_end(number: i16) -> bool {
    [SUCCEEDED, FAILED, CANCELLED].contains(&number)
}

pub(crate) fn state_of(number: i16) -> Result<State, SqlError> {
    match number {
        WAITING => Ok(State::Waiting),
        READY => Ok(State::Ready),
        RUNNING => Ok(State::Running),
        SUCCEEDED => Ok(State::Done(Outcome::Succeeded)),
        FAILED => Ok(State::Done(Outcome::Failed)),
        CANCELLED => Ok(State::Done(Outcome::Cancelled)),
        other => Err(odd(format!("{other} is no state of an operation"))),
    }
}

/// States that a sweep for this outcome deletes.
pub(crate) fn swept_states(wanted: Option<Outcome>) -> Vec<i16> {
    match wanted {
        None => vec![SUCCEEDED, FAILED, CANCELLED],
        Some(Outcome::Succeeded) => vec![SUCCEEDED],
        Some(Outcome::Failed) => vec![FAILED, CANCELLED],
        Some(Outcome::Cancelled) => vec![CANCELLED],
    }
}

pub(crate) fn micros(wait: Duration) -> i64 {
    i64::try_from(wait.min(WAIT_MAX).as_micros()).unwrap_or(i64::MAX)
}

/// A limit as a parameter.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Scope of a term: realm, kind and name.
pub(crate) fn scope(realm: &str, kind: &str, name: &str) -> Vec<u8> {
    [realm.as_bytes(), kind.as_bytes(), name.as_bytes()].join(&0)
}

/// Decodes a term from its scope and value.
pub(crate) fn term(scope: &[u8], value: &[u8]) -> Result<Term, SqlError> {
    let name = scope.rsplit(|byte| *byte == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(odd)?;
    Ok(Term::read(name.to_owned(), value))
}

/// The layout found by a migration, and the layout after it.
pub(crate) fn layout(found: i64, known: i64) -> Layout {
    let number = |n: i64| u64::try_from(n).unwrap_or_default();
    Layout {
        found: number(found),
        now: number(known),
    }
}

/// The first bytes that sort after every key with this prefix. Keys are UTF-8, so none of them
/// contains the byte 255.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![u8::MAX]
}

/// The first bytes that sort after these.
pub(crate) fn behind(bytes: &[u8]) -> Vec<u8> {
    [bytes, &[0]].concat()
}

/// Number of the lock of a name: the same in every replica, so it must never change.
/// Two names with one number only wait for each other. The two highest bits are reserved.
pub(crate) fn lock_number(sort: Lock, name: &[u8]) -> i64 {
    // FNV-1a, then mixed so that all bits depend on all bytes.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ sort as u64;
    for byte in name {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((hash ^ (hash >> 32)) >> 2) as i64
}

/// Kind of a lock.
#[derive(Clone, Copy)]
pub(crate) enum Lock {
    /// A document, existing or not.
    Document = 1,
    /// The lease of a worker.
    Worker = 2,
}

const PUT: u8 = 0;
const REMOVED: u8 = 1;
const OPERATION: u8 = 2;
/// Not a subject, but the lane of the operation before it. The server adds it to operations that a commit only knows by
/// their id.
const LANE: u8 = 3;

/// One entry of the subjects of a commit.
enum FeedItem {
    Subject(Subject),
    Lane(Key),
}

pub(crate) fn subject(subject: &Subject) -> Vec<u8> {
    match subject {
        Subject::Put(key) => feed_item(PUT, key.as_bytes()),
        Subject::Removed(key) => feed_item(REMOVED, key.as_bytes()),
        Subject::Operation(OperationId(id)) => feed_item(OPERATION, id.as_bytes()),
    }
}

/// An operation as a subject, with its lane.
pub(crate) fn operation_in_lane(id: OperationId, lane: &Key) -> Vec<u8> {
    let id = subject(&Subject::Operation(id));
    [id, feed_item(LANE, lane.as_bytes())].concat()
}

fn feed_item(kind: u8, name: &[u8]) -> Vec<u8> {
    // A key is shorter than 2,000 bytes.
    let length = u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[kind], &length[..], name].concat()
}

/// The changes of one commit, each subject once.
pub(crate) fn changes(commit: CommitId, mut encoded: &[u8]) -> Result<Vec<Change>, SqlError> {
    let damaged = || odd("a change in the feed is damaged");
    let mut changes: Vec<Change> = Vec::new();
    let mut named = 0;
    while !encoded.is_empty() {
        match take_feed_item(&mut encoded).ok_or_else(damaged)? {
            FeedItem::Subject(subject) => {
                let known = changes.iter().position(|change| change.subject == subject);
                named = known.unwrap_or(changes.len());
                if known.is_none() {
                    changes.push(Change {
                        commit,
                        subject,
                        lane: None,
                    });
                }
            }
            FeedItem::Lane(lane) => changes.get_mut(named).ok_or_else(damaged)?.lane = Some(lane),
        }
    }
    Ok(changes)
}

fn take_feed_item(encoded: &mut &[u8]) -> Option<FeedItem> {
    let (kind, rest) = encoded.split_first()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *encoded = rest;
    let subject = match *kind {
        PUT => Subject::Put(Key::from_bytes(name).ok()?),
        REMOVED => Subject::Removed(Key::from_bytes(name).ok()?),
        OPERATION => Subject::Operation(OperationId(Uuid::from_slice(name).ok()?)),
        LANE => return Some(FeedItem::Lane(Key::from_bytes(name).ok()?)),
        _ => return None,
    };
    Some(FeedItem::Subject(subject))
}

pub(crate) fn seq_of(cursor: &Cursor) -> Result<i64, StoreError> {
    let foreign = "the cursor is none of this store's: list again and begin a new one";
    let number = cursor
        .number()
        .and_then(|number| i64::try_from(number).ok());
    number.ok_or_else(|| StoreError::new(foreign))
}

#[cfg(test)]
mod tests {
    use super::{Lock, changes, end_of_prefix, lock_number, operation_in_lane, subject};
    use sutler_journal::{CommitId, Key, Kind, OperationId, Realm, Subject};
    use uuid::Uuid;

    #[test]
    fn changes_come_back_in_order_each_once() {
        let realm = Realm::new("r").unwrap();
        let key = |id: &str| Key::new(&realm, Kind::new("k"), &[id]).unwrap();
        let operation = Subject::Operation(OperationId(Uuid::from_u128(7)));
        let subjects = [
            Subject::Put(key("a")),
            operation.clone(),
            Subject::Removed(key("a")),
            operation,
        ];
        let encoded: Vec<u8> = subjects.iter().flat_map(subject).collect();
        let back = changes(CommitId(Uuid::nil()), &encoded).unwrap();
        let back: Vec<Subject> = back.into_iter().map(|change| change.subject).collect();
        assert_eq!(back, subjects[..3]);
        assert!(changes(CommitId(Uuid::nil()), &encoded[..9]).is_err());
    }

    #[test]
    fn a_lane_is_that_of_the_operation_before_it() {
        let realm = Realm::new("r").unwrap();
        let key = |id: &str| Key::new(&realm, Kind::new("k"), &[id]).unwrap();
        let [one, other] = [7, 8].map(|id| OperationId(Uuid::from_u128(id)));
        let encoded = [
            subject(&Subject::Put(key("a"))),
            operation_in_lane(one, &key("a")),
            // As a version wrote it that named no lanes.
            subject(&Subject::Operation(other)),
            operation_in_lane(one, &key("a")),
        ];
        let back = changes(CommitId(Uuid::nil()), &encoded.concat()).unwrap();
        let lanes: Vec<Option<Key>> = back.into_iter().map(|change| change.lane).collect();
        assert_eq!(lanes, [None, Some(key("a")), None]);
        let alone = &encoded[1][19..];
        assert!(changes(CommitId(Uuid::nil()), alone).is_err(), "of nothing");
    }

    #[test]
    fn a_prefix_ends_before_its_neighbour() {
        assert_eq!(end_of_prefix(b"ab"), b"ac");
        assert_eq!(end_of_prefix(b"a\xff\xff"), b"b");
        assert_eq!(end_of_prefix(b""), [255]);
    }

    #[test]
    fn locks_are_the_same_in_every_replica_and_leave_the_high_bits() {
        assert_eq!(lock_number(Lock::Document, b"a"), 0x27f7_3bfb_46ba_f779);
        for n in 0..1000_u32 {
            let number = lock_number(Lock::Worker, &n.to_be_bytes());
            assert!((0..1 << 62).contains(&number));
        }
    }
}
