//! A commit as the two parameters of its procedure: numbers of twenty characters, and bytes.
//!
//! MySQL has no arrays, and its JSON would have to carry bytes as text; a procedure reads this form from
//! left to right without parsing. Its order is told in `layout_1/commit.sql`.

use crate::staged::{Row, Staged};
use std::collections::BTreeMap;
use std::io::Write as _;

/// How many rows there are to be locked in the place of names.
const BUCKETS: i64 = 16_384;
/// Stands for a length where there is nothing.
const NONE: i64 = -1;

/// The row that is locked in the place of a name, by the number of its lock.
pub(super) fn bucket(lock: i64) -> i64 {
    lock.rem_euclid(BUCKETS)
}

/// Numbers and bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) head: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Packed {
    pub(super) fn number(&mut self, number: i64) {
        // Writing to memory does not fail.
        let _ = write!(self.head, "{number:>20}");
    }

    /// A length among the numbers, and the bytes among the bytes.
    pub(super) fn bytes(&mut self, bytes: Option<&[u8]>) {
        let length = bytes.map(|bytes| i64::try_from(bytes.len()).unwrap_or(NONE));
        self.number(length.unwrap_or(NONE));
        self.data.extend_from_slice(bytes.unwrap_or_default());
    }

    fn count(&mut self, count: usize) {
        self.number(i64::try_from(count).unwrap_or_default());
    }
}

pub(super) fn pack(staged: &Staged<'_>) -> Packed {
    let mut packed = Packed::default();
    // Several names may share a row: it is locked once, and alone if any of them is.
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

fn pack_row(packed: &mut Packed, row: &Row<'_>) {
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

fn pack_terms(row: &Row<'_>) -> Vec<u8> {
    let mut packed = Packed::default();
    packed.count(row.terms.len());
    for (scope, value) in &row.terms {
        packed.bytes(Some(scope));
        packed.bytes(Some(value));
    }
    [packed.head, packed.data].concat()
}

#[cfg(test)]
mod tests {
    use super::{Packed, bucket, pack};
    use crate::staged::Staged;
    use bytes::Bytes;
    use sutler_journal::{Commit, Key, Kind, Realm, Term};

    #[test]
    fn numbers_are_twenty_characters_and_nothing_is_minus_one() {
        let mut packed = Packed::default();
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
            pack(&Staged::of(&commit))
        };
        assert_eq!(
            with(vec![one.clone(), other.clone()]),
            with(vec![other, one])
        );
    }

    #[test]
    fn every_name_has_a_row_to_be_locked() {
        for number in [0, 16_383, 16_384, i64::MAX] {
            assert!((0..16_384).contains(&bucket(number)));
        }
    }
}
