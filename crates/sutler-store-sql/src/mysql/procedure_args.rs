//! A commit as the two parameters of its procedure: numbers of twenty characters, and bytes.
//!
//! MySQL has no arrays, and its JSON would have to encode bytes as text; a procedure reads this format from
//! left to right without parsing. The order is described in `layout_3/commit.sql`.

use crate::commit_rows::{CommitRows, WriteRow};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Number of rows that are locked in place of names.
const BUCKETS: i64 = 16_384;
/// Length of an absent value.
const NONE: i64 = -1;
/// Characters of a number.
const DIGITS: usize = 20;

/// The row that is locked in place of a name, by the number of its lock.
pub(super) fn bucket(lock: i64) -> i64 {
    lock.rem_euclid(BUCKETS)
}

/// Numbers and bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProcedureArgs {
    pub(super) head: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl ProcedureArgs {
    pub(super) fn number(&mut self, number: i64) {
        // Writing to memory cannot fail.
        let _ = write!(self.head, "{number:>20}");
    }

    /// Appends a length to the numbers, and the bytes to the bytes.
    pub(super) fn bytes(&mut self, bytes: Option<&[u8]>) {
        let length = bytes.map(|bytes| i64::try_from(bytes.len()).unwrap_or(NONE));
        self.number(length.unwrap_or(NONE));
        self.data.extend_from_slice(bytes.unwrap_or_default());
    }

    fn count(&mut self, count: usize) {
        self.number(i64::try_from(count).unwrap_or_default());
    }
}

pub(super) fn pack(staged: &CommitRows<'_>) -> ProcedureArgs {
    let mut packed = ProcedureArgs::default();
    // Several names may share a row: it is locked once, and exclusively if any of them is.
    let mut locks: BTreeMap<i64, bool> = BTreeMap::new();
    for (number, shared) in &staged.locks {
        let entry = locks.entry(bucket(*number)).or_insert(true);
        *entry &= *shared;
    }
    packed.count(locks.len());
    for (number, shared) in locks {
        packed.number(number * 2 + i64::from(shared));
    }
    packed.count(staged.operations.len());
    packed.count(staged.expects.len());
    packed.count(staged.writes.len());
    for id in &staged.operations {
        packed.data.extend_from_slice(id.as_bytes());
    }
    for wanted in &staged.expects {
        packed.number(i64::from(wanted.kind));
        packed.bytes(wanted.key);
        packed.bytes(wanted.id.as_ref().map(|id| &id.as_bytes()[..]));
        packed.number(wanted.fence.unwrap_or(NONE));
    }
    for row in &staged.writes {
        pack_row(&mut packed, row);
    }
    packed
}

fn pack_row(packed: &mut ProcedureArgs, row: &WriteRow<'_>) {
    packed.number(i64::from(row.kind));
    packed.number(row.state.map_or(NONE, i64::from));
    packed.number(row.wait.unwrap_or_default());
    packed.bytes(row.key);
    packed.bytes(row.id.as_ref().map(|id| &id.as_bytes()[..]));
    packed.bytes(row.worker.as_ref().map(|id| &id.as_bytes()[..]));
    for part in [row.verb, row.queue, row.a, row.b, row.c, row.d, row.e] {
        packed.bytes(part);
    }
    packed.bytes(Some(&row.subject));
    packed.bytes(Some(&pack_terms(row)));
    for number in row.numbers.iter().flatten() {
        packed.number(number.unwrap_or(NONE));
    }
}

fn pack_terms(row: &WriteRow<'_>) -> Vec<u8> {
    let mut packed = ProcedureArgs::default();
    packed.count(row.terms.len());
    for (scope, value) in &row.terms {
        packed.bytes(Some(scope));
        packed.bytes(Some(value));
    }
    [packed.head, packed.data].concat()
}

/// Decodes the result of `pack_terms`: scopes and values.
pub(super) fn unpack_terms(packed: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let number = |at: usize| -> Option<usize> {
        let digits = packed.get(at * DIGITS..(at + 1) * DIGITS)?;
        std::str::from_utf8(digits).ok()?.trim().parse().ok()
    };
    let count = number(0)?;
    let mut rest = packed.get(count.checked_mul(2)?.checked_add(1)?.checked_mul(DIGITS)?..)?;
    let mut terms = Vec::new();
    for n in 0..count {
        let (scope, behind) = rest.split_at_checked(number(2 * n + 1)?)?;
        let (value, behind) = behind.split_at_checked(number(2 * n + 2)?)?;
        terms.push((scope, value));
        rest = behind;
    }
    Some(terms)
}

#[cfg(test)]
mod tests {
    use super::{ProcedureArgs, bucket, pack, pack_terms, unpack_terms};
    use crate::commit_rows::CommitRows;
    use bytes::Bytes;
    use sutler_journal::{Commit, Key, Kind, Realm, Term};

    #[test]
    fn numbers_are_twenty_characters_and_nothing_is_minus_one() {
        let mut packed = ProcedureArgs::default();
        packed.number(i64::MIN);
        packed.bytes(None);
        packed.bytes(Some(b"ab"));
        assert_eq!(packed.head.len(), 60);
        assert!(
            packed
                .head
                .ends_with(b"                  -1                   2")
        );
        assert_eq!(packed.data, b"ab");
    }

    #[test]
    fn the_order_of_terms_does_not_matter() {
        let key = Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &["a"]).unwrap();
        let (one, other) = (Term::new("one", "1"), Term::new("other", "2"));
        let commit = Commit::new();
        let with = |terms: Vec<Term>| {
            let commit = commit.clone().insert(key.clone(), terms, Bytes::new());
            pack(&CommitRows::of(&commit))
        };
        assert_eq!(
            with(vec![one.clone(), other.clone()]),
            with(vec![other, one])
        );
    }

    #[test]
    fn terms_come_back_as_they_were_packed() {
        let key = Key::new(&Realm::new("r").unwrap(), Kind::new("k"), &["a"]).unwrap();
        let two = vec![Term::new("one", "1"), Term::new("two", vec![0, 255])];
        let values: [&[&[u8]]; 2] = [&[], &[b"1", &[0, 255]]];
        for (terms, values) in [Vec::new(), two].into_iter().zip(values) {
            let commit = Commit::new().insert(key.clone(), terms, Bytes::new());
            let packed = pack_terms(&CommitRows::of(&commit).writes[0]);
            let back = unpack_terms(&packed).expect("terms");
            let back: Vec<&[u8]> = back.into_iter().map(|(_, value)| value).collect();
            assert_eq!(back, values);
            assert_eq!(unpack_terms(&packed[..packed.len() - 1]), None);
        }
    }

    #[test]
    fn every_name_has_a_row_to_be_locked() {
        for number in [0, 16_383, 16_384, i64::MAX] {
            assert!((0..16_384).contains(&bucket(number)));
        }
    }
}
