//! Encoding of the journal's values in columns: states, terms, subjects, cursors.
//!
//! Written by the writer, read by the readers; both directions of each encoding are here. Not
//! here: whole rows (`rows.rs`).

use sutler_journal::{
    Change, CommitId, Cursor, Key, OperationId, Outcome, State, StoreError, Subject,
};
use uuid::Uuid;

pub(crate) const WAITING: i64 = 0;
pub(crate) const READY: i64 = 1;
pub(crate) const RUNNING: i64 = 2;
const SUCCEEDED: i64 = 3;
const FAILED: i64 = 4;
const CANCELLED: i64 = 5;

/// Every final state of an operation.
pub(crate) const ENDED: [i64; 3] = [SUCCEEDED, FAILED, CANCELLED];

pub(crate) fn is_done(state: i64) -> bool {
    state >= SUCCEEDED
}

pub(crate) fn outcome_number(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Succeeded => SUCCEEDED,
        Outcome::Failed => FAILED,
        Outcome::Cancelled => CANCELLED,
    }
}

/// States that a sweep for this outcome deletes.
pub(crate) fn swept_states(wanted: Option<Outcome>) -> &'static [i64] {
    match wanted {
        None => &ENDED,
        Some(Outcome::Succeeded) => &[SUCCEEDED],
        Some(Outcome::Failed) => &[FAILED, CANCELLED],
        Some(Outcome::Cancelled) => &[CANCELLED],
    }
}

pub(crate) fn state_of(number: i64) -> Result<State, StoreError> {
    match number {
        WAITING => Ok(State::Waiting),
        READY => Ok(State::Ready),
        RUNNING => Ok(State::Running),
        SUCCEEDED => Ok(State::Done(Outcome::Succeeded)),
        FAILED => Ok(State::Done(Outcome::Failed)),
        CANCELLED => Ok(State::Done(Outcome::Cancelled)),
        other => Err(damaged(&format!("{other} is no state of an operation"))),
    }
}

/// The part of a key after realm and kind; two keys of one scope sort by it as by the whole key.
pub(crate) fn ids_of(key: &[u8]) -> &[u8] {
    let mut parts = key.splitn(3, |byte| *byte == 0);
    parts.nth(2).unwrap_or_default()
}

/// The first bytes that sort after everything with this prefix; `None` if nothing does.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

/// Appends one term: the scope's number, the value's length, the value.
pub(crate) fn put_term(terms: &mut Vec<u8>, scope: i64, value: &[u8]) {
    put_number(terms, scope as u64);
    put_bytes(terms, value);
}

/// The terms in a column, in the order in which they were put.
pub(crate) fn terms(mut encoded: &[u8]) -> impl Iterator<Item = (i64, &[u8])> {
    std::iter::from_fn(move || {
        let scope = take_number(&mut encoded)?;
        let value = take_bytes(&mut encoded)?;
        Some((scope as i64, value))
    })
}

const PUT: u8 = 0;
const REMOVED: u8 = 1;
const OPERATION: u8 = 2;

/// Subjects of one commit, encoded; each operation once.
#[derive(Default)]
pub(crate) struct Subjects {
    encoded: Vec<u8>,
    operations: Vec<OperationId>,
}

impl Subjects {
    pub(crate) fn clear(&mut self) {
        self.encoded.clear();
        self.operations.clear();
    }

    pub(crate) fn put(&mut self, key: &Key) {
        self.encoded.push(PUT);
        put_bytes(&mut self.encoded, key.as_bytes());
    }

    pub(crate) fn removed(&mut self, key: &Key) {
        self.encoded.push(REMOVED);
        put_bytes(&mut self.encoded, key.as_bytes());
    }

    pub(crate) fn operation(&mut self, id: OperationId) {
        if !self.operations.contains(&id) {
            self.operations.push(id);
            self.encoded.push(OPERATION);
            self.encoded.extend_from_slice(id.0.as_bytes());
        }
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// Decodes the changes of one commit. `lane_of` finds the lane of an operation.
pub(crate) fn changes(
    commit: CommitId,
    mut encoded: &[u8],
    mut lane_of: impl FnMut(OperationId) -> Result<Option<Key>, StoreError>,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    while let Some((kind, rest)) = encoded.split_first() {
        encoded = rest;
        let subject = subject(*kind, &mut encoded)
            .ok_or_else(|| damaged("a change in the feed cannot be read"))?;
        let lane = match subject.operation() {
            Some(id) => lane_of(id)?,
            None => None,
        };
        changes.push(Change {
            commit,
            subject,
            lane,
        });
    }
    Ok(changes)
}

fn subject(kind: u8, encoded: &mut &[u8]) -> Option<Subject> {
    match kind {
        PUT => Some(Subject::Put(key(take_bytes(encoded)?).ok()?)),
        REMOVED => Some(Subject::Removed(key(take_bytes(encoded)?).ok()?)),
        OPERATION => {
            let (id, rest) = encoded.split_at_checked(16)?;
            *encoded = rest;
            Some(Subject::Operation(OperationId(uuid(id).ok()?)))
        }
        _ => None,
    }
}

pub(crate) fn key(bytes: &[u8]) -> Result<Key, StoreError> {
    Key::from_bytes(bytes).map_err(|cause| StoreError::caused("a key cannot be read back", cause))
}

pub(crate) fn uuid(bytes: &[u8]) -> Result<Uuid, StoreError> {
    Uuid::from_slice(bytes).map_err(|cause| StoreError::caused("an id cannot be read back", cause))
}

pub(crate) fn seq_of(cursor: &Cursor) -> Result<i64, StoreError> {
    let foreign = "the cursor is none of this store's";
    let number = cursor
        .number()
        .and_then(|number| i64::try_from(number).ok());
    number.ok_or_else(|| StoreError::new(foreign))
}

pub(crate) fn damaged(what: &str) -> StoreError {
    StoreError::new(format!(
        "the store's file is damaged ({what}): restore a backup"
    ))
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Seven bits per byte, the lowest first; the top bit marks that more follow.
fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{put_number, put_term, take_number, terms};

    #[test]
    fn terms_come_back_as_they_were_put() {
        let long = vec![7; 300];
        let mut encoded = Vec::new();
        put_term(&mut encoded, 1, b"");
        put_term(&mut encoded, 70_000, &long);
        let back: Vec<(i64, &[u8])> = terms(&encoded).collect();
        assert_eq!(back, [(1, &b""[..]), (70_000, &long[..])]);
    }

    #[test]
    fn numbers_of_every_length_come_back() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut encoded = Vec::new();
            put_number(&mut encoded, number);
            assert_eq!(take_number(&mut encoded.as_slice()), Some(number));
        }
    }
}
