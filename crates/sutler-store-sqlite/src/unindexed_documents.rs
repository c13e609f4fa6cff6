//! Documents that are in the file but not yet in its indexes.
//!
//! Keys are random, so adding a document to the indexes of its key and its terms touches as many pages of
//! the file as there are entries, in every commit. A new document is therefore only appended, and found
//! through this map; the writer indexes many at once, in order of their keys, so that neighbours
//! share a page (`writer/index_backfill.rs`). Nothing is lost with the process: the file records up to
//! which number all are indexed, and the few after it are read at opening.
//!
//! A reader reads this map first and takes its snapshot of the file afterwards: so it may find a document
//! in both, never in neither.

use crate::codec;
use crate::sql;
use rusqlite::{Connection, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// One of them, without its body.
#[derive(Clone)]
pub(crate) struct UnindexedDocument {
    pub(crate) number: i64,
    pub(crate) version: [u8; 16],
    pub(crate) terms: Vec<u8>,
}

/// Position of a document in a list; in a list by term, `key` is without realm and kind.
pub(crate) struct ListPlace {
    pub(crate) value: Vec<u8>,
    pub(crate) key: Box<[u8]>,
    pub(crate) number: i64,
}

/// All of them, by key.
#[derive(Default)]
pub(crate) struct UnindexedDocuments(RwLock<BTreeMap<Box<[u8]>, UnindexedDocument>>);

impl UnindexedDocuments {
    /// Reads them from the file: those after the last number up to which all are indexed.
    pub(crate) fn reload(&self, db: &Connection) -> Result<()> {
        let mut found = BTreeMap::new();
        let mut statement = db.prepare(sql::YOUNG)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let key: Vec<u8> = row.get(1)?;
            let doc = UnindexedDocument {
                number: row.get(0)?,
                version: row.get(3)?,
                terms: row.get(2)?,
            };
            found.insert(key.into_boxed_slice(), doc);
        }
        *self.write() = found;
        Ok(())
    }

    pub(crate) fn number(&self, key: &[u8]) -> Option<i64> {
        self.read().get(key).map(|doc| doc.number)
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<UnindexedDocument> {
        self.read().get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.read().len()
    }

    /// Applies the changes of a durable group: documents added, and those removed or indexed.
    pub(crate) fn publish(
        &self,
        changes: impl Iterator<Item = (Box<[u8]>, Option<UnindexedDocument>)>,
    ) {
        let mut unindexed = self.write();
        for (key, doc) in changes {
            match doc {
                Some(doc) => drop(unindexed.insert(key, doc)),
                None => drop(unindexed.remove(&key)),
            }
        }
    }

    /// The next ones in order of keys, to be indexed.
    pub(crate) fn after(&self, key: &[u8], limit: usize) -> Vec<(Box<[u8]>, UnindexedDocument)> {
        let unindexed = self.read();
        let behind = unindexed.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded));
        behind
            .take(limit)
            .map(|(key, doc)| (key.clone(), doc.clone()))
            .collect()
    }

    /// Those with a prefix, from a bound on, by key.
    pub(crate) fn with_prefix(
        &self,
        prefix: &[u8],
        start: Bound<&[u8]>,
        limit: usize,
    ) -> Vec<ListPlace> {
        let unindexed = self.read();
        unindexed
            .range::<[u8], _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, doc)| ListPlace {
                value: Vec::new(),
                key: key.clone(),
                number: doc.number,
            })
            .collect()
    }

    /// Those with a term's value in a range, after a position, by value and key. There are few of
    /// them, so all are visited.
    pub(crate) fn with_term(
        &self,
        scope: i64,
        (from, to): (&[u8], &[u8]),
        after: Option<(&[u8], &[u8])>,
        limit: usize,
    ) -> Vec<ListPlace> {
        let mut places = Vec::new();
        for (key, doc) in self.read().iter() {
            for (of, value) in codec::terms(&doc.terms) {
                let ids = codec::ids_of(key);
                let behind = after.is_none_or(|after| (value, ids) > after);
                if of == scope && value >= from && value <= to && behind {
                    places.push(ListPlace {
                        value: value.to_vec(),
                        key: ids.into(),
                        number: doc.number,
                    });
                }
            }
        }
        places.sort_unstable_by(|a, b| (&a.value, &a.key).cmp(&(&b.value, &b.key)));
        places.truncate(limit);
        places
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Box<[u8]>, UnindexedDocument>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<[u8]>, UnindexedDocument>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
