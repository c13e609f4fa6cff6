//! Documents that are in the file but not yet in its indexes.
//!
//! Keys are random, so adding a document to the indexes of its key and its terms touches as many pages of
//! the file as there are entries, in every commit. A new document is therefore only appended, and found
//! through this map; the writer indexes many at once, in order of their keys, so that neighbours
//! share a page (`writer/index_backfill.rs`). Nothing is lost with the process: the file records up to
//! which number all are indexed, and the few after it are read at opening.
//!
//! A reader of one document reads this map first and the file afterwards: so it may find a document in both,
//! never in neither. A list needs both of one moment: the map has the number of the last commit that is in
//! it, a list takes its snapshot of the file while the map cannot change ([`UnindexedDocuments::hold`]), and
//! compares the number with that of the snapshot.

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

/// All of them, by key, as of one commit.
#[derive(Default)]
struct UnindexedMap {
    documents: BTreeMap<Box<[u8]>, UnindexedDocument>,
    /// Number in the feed of the last commit that is in `documents`.
    last_commit: i64,
}

/// The unindexed documents of a store.
#[derive(Default)]
pub(crate) struct UnindexedDocuments(RwLock<UnindexedMap>);

/// The unindexed documents, unchanged while this is held. The writer waits meanwhile.
pub(crate) struct HeldDocuments<'h>(RwLockReadGuard<'h, UnindexedMap>);

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
        *self.write() = UnindexedMap {
            documents: found,
            last_commit: last_commit(db)?,
        };
        Ok(())
    }

    pub(crate) fn number(&self, key: &[u8]) -> Option<i64> {
        self.read().documents.get(key).map(|doc| doc.number)
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<UnindexedDocument> {
        self.read().documents.get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.read().documents.len()
    }

    /// Prevents changes until the result is dropped.
    pub(crate) fn hold(&self) -> HeldDocuments<'_> {
        HeldDocuments(self.read())
    }

    /// Applies the changes of a durable group up to its last commit: documents added, and those removed or
    /// indexed.
    pub(crate) fn publish(
        &self,
        last_commit: i64,
        changes: impl Iterator<Item = (Box<[u8]>, Option<UnindexedDocument>)>,
    ) {
        let mut unindexed = self.write();
        unindexed.last_commit = last_commit;
        for (key, doc) in changes {
            match doc {
                Some(doc) => drop(unindexed.documents.insert(key, doc)),
                None => drop(unindexed.documents.remove(&key)),
            }
        }
    }

    /// The next ones in order of keys, to be indexed.
    pub(crate) fn after(&self, key: &[u8], limit: usize) -> Vec<(Box<[u8]>, UnindexedDocument)> {
        let unindexed = self.read();
        let behind = (Bound::Excluded(key), Bound::Unbounded);
        let behind = unindexed.documents.range::<[u8], _>(behind);
        behind
            .take(limit)
            .map(|(key, doc)| (key.clone(), doc.clone()))
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, UnindexedMap> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, UnindexedMap> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldDocuments<'_> {
    /// Whether they are of the same moment as this snapshot of the file. If not, the writer has made a group
    /// durable and is about to publish it.
    pub(crate) fn are_of(&self, snapshot: &Connection) -> Result<bool> {
        Ok(last_commit(snapshot)? == self.0.last_commit)
    }

    /// Those with a prefix, from a bound on, by key.
    pub(crate) fn with_prefix(
        &self,
        prefix: &[u8],
        start: Bound<&[u8]>,
        limit: usize,
    ) -> Vec<ListPlace> {
        self.0
            .documents
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
        for (key, doc) in &self.0.documents {
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
}

/// Number in the feed of the last commit in the file.
fn last_commit(db: &Connection) -> Result<i64> {
    let mut statement = db.prepare_cached(sql::LAST_COMMIT)?;
    statement.query_row([], |row| row.get(0))
}
