//! Reads of documents: one by key, pages by key or by term.
//!
//! A page scans one index from one position to its limit, and merges in the few documents that are not
//! in the index yet (`unindexed_documents.rs`). Both are of one moment: no document is returned under a term
//! that it had before. A document that was indexed in between is in both and returned once.

use crate::codec;
use crate::interned_strings::{self, Interner};
use crate::rows::{self, unreadable};
use crate::sql;
use crate::unindexed_documents::{HeldDocuments, ListPlace, UnindexedDocuments};
use rusqlite::{Connection, OptionalExtension, Rows};
use std::collections::HashSet;
use std::iter::Peekable;
use std::ops::Bound;
use std::vec::IntoIter;
use sutler_journal::{Document, IndexedDocument, Key, List, Page, Position, StoreError, Term};

/// Result of a read.
pub(crate) type ReadResult<T> = Result<T, StoreError>;

/// Everything a read uses.
pub(crate) struct View<'v> {
    pub(crate) db: &'v Connection,
    pub(crate) words: &'v Interner,
    pub(crate) unindexed: &'v UnindexedDocuments,
}

pub(crate) fn get(view: &View<'_>, key: &Key) -> ReadResult<Option<Document>> {
    let unindexed = view.unindexed.number(key.as_bytes());
    let text = match unindexed {
        Some(_) => sql::DOC_GET_YOUNG,
        None => sql::DOC_GET,
    };
    let mut statement = view.db.prepare_cached(text).map_err(unreadable)?;
    let mut found = match unindexed {
        Some(number) => statement.query([number]),
        None => statement.query([key.as_bytes()]),
    }
    .map_err(unreadable)?;
    match found.next().map_err(unreadable)? {
        Some(row) => Ok(Some(rows::document(key.clone(), row, 0)?)),
        None => Ok(None),
    }
}

/// One page; `None` if the file is ahead of the memory for a moment: read it again.
pub(crate) fn list(
    view: &View<'_>,
    list: &List,
    after: Option<&Position>,
    limit: usize,
) -> ReadResult<Option<Page>> {
    let walk = match list {
        List::Prefix(prefix) => IndexScan::Keys {
            prefix,
            after: after
                .map(|position| position.key.as_bytes())
                .filter(|key| *key >= prefix.as_slice()),
        },
        List::Term {
            realm,
            kind,
            name,
            from,
            to,
        } => {
            let word = interned_strings::scope(realm.as_str(), kind.as_str(), name);
            let Some(scope) = scope_number(view, word)? else {
                // A term without a number occurs in no document.
                return Ok(Some(Page {
                    documents: Vec::new(),
                    next: None,
                }));
            };
            let behind = after.filter(|position| position.value >= *from);
            IndexScan::Term {
                scope,
                from,
                to,
                after: behind.map(|position| {
                    let ids = codec::ids_of(position.key.as_bytes());
                    (position.value.as_slice(), ids)
                }),
            }
        }
    };
    let whole = |document, _: &rusqlite::Row<'_>| Ok(document);
    let found = walk.find(view, limit, sql::LISTED, &whole)?;
    Ok(found.map(|found| Page {
        documents: found.items,
        next: found.next,
    }))
}

/// Documents with their terms; `None` as in [`list`].
pub(crate) fn indexed(
    view: &View<'_>,
    from: &[u8],
    limit: usize,
) -> ReadResult<Option<Vec<IndexedDocument>>> {
    let with_terms = |document, row: &rusqlite::Row<'_>| {
        let terms = codec::terms(rows::blob(row, 3)?).map(|(scope, value)| {
            let scope = rows::text(scope, view.words, view.db)?;
            Ok(Term::read(
                interned_strings::term_of(&scope).to_owned(),
                value,
            ))
        });
        Ok(IndexedDocument::new(
            document,
            terms.collect::<ReadResult<_>>()?,
        ))
    };
    let found = IndexScan::From(from).find(view, limit, sql::LISTED_FILED, &with_terms)?;
    Ok(found.map(|found| found.items))
}

fn scope_number(view: &View<'_>, word: Vec<u8>) -> ReadResult<Option<i64>> {
    if let Some(number) = view.words.number(&word) {
        return Ok(Some(number));
    }
    let mut statement = view
        .db
        .prepare_cached(sql::WORD_NUMBER)
        .map_err(unreadable)?;
    let found = statement
        .query_row([&word], |row| row.get(0))
        .optional()
        .map_err(unreadable)?;
    if let Some(number) = found {
        view.words.learn(word, number);
    }
    Ok(found)
}

/// An index and the start position.
enum IndexScan<'w> {
    From(&'w [u8]),
    Keys {
        prefix: &'w [u8],
        after: Option<&'w [u8]>,
    },
    Term {
        scope: i64,
        from: &'w [u8],
        to: &'w [u8],
        after: Option<(&'w [u8], &'w [u8])>,
    },
}

/// Part of a scan, and the next position.
struct ScanPage<T> {
    items: Vec<T>,
    next: Option<Position>,
}

/// Makes an item from a document and its row.
type Make<'m, T> = &'m dyn Fn(Document, &rusqlite::Row<'_>) -> ReadResult<T>;

impl IndexScan<'_> {
    /// One page; `None` as in [`list`].
    fn find<T>(
        &self,
        view: &View<'_>,
        limit: usize,
        text: &str,
        make: Make<'_, T>,
    ) -> ReadResult<Option<ScanPage<T>>> {
        let held = view.unindexed.hold();
        let snapshot = view.db.unchecked_transaction().map_err(unreadable)?;
        if !held.are_of(&snapshot).map_err(unreadable)? {
            return Ok(None);
        }
        let unindexed = self.unindexed(&held, limit.saturating_add(1));
        drop(held);
        let mut statement = snapshot.prepare_cached(self.text()).map_err(unreadable)?;
        let indexed = self.indexed(&mut statement)?;
        let mut read = snapshot.prepare_cached(text).map_err(unreadable)?;
        let mut items = Vec::new();
        let (mut last, mut next) = (None, None);
        let mut merged = MergedDocuments::of(unindexed, indexed, self);
        while let Some(place) = merged.next()? {
            let mut found = read.query([place.number]).map_err(unreadable)?;
            let Some(row) = found.next().map_err(unreadable)? else {
                return Err(codec::damaged("a document is in an index only"));
            };
            if items.len() == limit {
                next = last;
                break;
            }
            let key = codec::key(rows::blob(row, 2)?)?;
            if items.len() + 1 == limit {
                last = Some(Position {
                    value: place.value,
                    key: key.clone(),
                });
            }
            items.push(make(rows::document(key, row, 0)?, row)?);
        }
        Ok(Some(ScanPage { items, next }))
    }

    fn unindexed(&self, unindexed: &HeldDocuments<'_>, limit: usize) -> Vec<ListPlace> {
        match self {
            IndexScan::From(from) => unindexed.with_prefix(&[], Bound::Included(from), limit),
            IndexScan::Keys { prefix, after } => {
                let start = after.map_or(Bound::Included(*prefix), Bound::Excluded);
                unindexed.with_prefix(prefix, start, limit)
            }
            IndexScan::Term {
                scope,
                from,
                to,
                after,
            } => unindexed.with_term(*scope, (from, to), *after, limit),
        }
    }

    fn text(&self) -> &'static str {
        match self {
            IndexScan::From(_) | IndexScan::Keys { after: None, .. } => sql::LIST_BY_KEY_FROM,
            IndexScan::Keys { after: Some(_), .. } => sql::LIST_BY_KEY_AFTER,
            IndexScan::Term { after: None, .. } => sql::LIST_BY_TERM_FROM,
            IndexScan::Term { after: Some(_), .. } => sql::LIST_BY_TERM_AFTER,
        }
    }

    fn indexed<'s>(&self, statement: &'s mut rusqlite::Statement<'_>) -> ReadResult<Rows<'s>> {
        match self {
            IndexScan::From(from) => statement.query([from]),
            IndexScan::Keys { prefix, after } => statement.query([after.unwrap_or(prefix)]),
            IndexScan::Term {
                scope,
                from,
                to,
                after,
            } => match after {
                Some((value, ids)) => statement.query((scope, value, to, ids)),
                None => statement.query((scope, from, to)),
            },
        }
        .map_err(unreadable)
    }

    fn place(&self, row: &rusqlite::Row<'_>) -> ReadResult<Option<ListPlace>> {
        let key = rows::blob(row, 0)?;
        let value = match self {
            IndexScan::Keys { prefix, .. } if !key.starts_with(prefix) => return Ok(None),
            IndexScan::From(_) | IndexScan::Keys { .. } => Vec::new(),
            IndexScan::Term { .. } => rows::blob(row, 2)?.to_vec(),
        };
        Ok(Some(ListPlace {
            value,
            key: key.into(),
            number: row.get(1).map_err(unreadable)?,
        }))
    }
}

/// Unindexed and indexed documents in one order, each once.
struct MergedDocuments<'m> {
    unindexed: Peekable<IntoIter<ListPlace>>,
    unindexed_numbers: HashSet<i64>,
    indexed: Rows<'m>,
    next_indexed: Option<ListPlace>,
    ended: bool,
    walk: &'m IndexScan<'m>,
}

impl<'m> MergedDocuments<'m> {
    fn of(unindexed: Vec<ListPlace>, indexed: Rows<'m>, walk: &'m IndexScan<'m>) -> Self {
        Self {
            unindexed_numbers: unindexed.iter().map(|place| place.number).collect(),
            unindexed: unindexed.into_iter().peekable(),
            indexed,
            next_indexed: None,
            ended: false,
            walk,
        }
    }

    fn next(&mut self) -> ReadResult<Option<ListPlace>> {
        while self.next_indexed.is_none() && !self.ended {
            let row = self.indexed.next().map_err(unreadable)?;
            let place = row.map(|row| self.walk.place(row)).transpose()?.flatten();
            match place {
                Some(place) if self.unindexed_numbers.contains(&place.number) => {}
                Some(place) => self.next_indexed = Some(place),
                None => self.ended = true,
            }
        }
        let unindexed_first = match (self.unindexed.peek(), &self.next_indexed) {
            (Some(unindexed), Some(indexed)) => {
                (&unindexed.value, &unindexed.key) < (&indexed.value, &indexed.key)
            }
            (Some(_), None) => true,
            (None, _) => false,
        };
        Ok(match unindexed_first {
            true => self.unindexed.next(),
            false => self.next_indexed.take(),
        })
    }
}
