//! References between documents: what a document names must be there, and name it too where both belong together.
//!
//! Documents are read in pages, so a store in use may change between a document and what it refers to. A document with a
//! broken reference is therefore read again before it is reported.

use super::finding::Finding;
use super::{DocumentReference, RealmReaders, SealedReader, next_documents};
use crate::document::IndexedDocument;
use crate::key::Key;
use crate::store::{Store, StoreError};

/// Attempts to read a document that keeps changing.
const LOOKS_MAX: usize = 10;

/// Calls back for every broken reference.
pub(super) async fn every_broken_reference(
    store: &dyn Store,
    readers: &RealmReaders,
    mut each: impl FnMut(Finding),
) -> Result<(), StoreError> {
    let mut from = Some(Vec::new());
    while let Some(start) = from {
        let (page, next) = next_documents(store, &start).await?;
        for indexed in &page {
            let key = &indexed.document.key;
            let Some(reader) = readers.of(key.realm()) else {
                continue;
            };
            if broken(store, reader, indexed).await?.is_empty() {
                continue;
            }
            for finding in looked_again(store, reader, key).await? {
                each(finding);
            }
        }
        from = next;
    }
    Ok(())
}

/// Broken references of a document, if it does not change meanwhile.
async fn looked_again(
    store: &dyn Store,
    reader: &dyn SealedReader,
    key: &Key,
) -> Result<Vec<Finding>, StoreError> {
    for _ in 0..LOOKS_MAX {
        let Some(before) = indexed(store, key).await? else {
            return Ok(Vec::new());
        };
        let findings = broken(store, reader, &before).await?;
        let after = store.get(key).await?;
        let is_same = after.is_some_and(|it| it.version == before.document.version);
        if findings.is_empty() || is_same {
            return Ok(findings);
        }
    }
    Ok(Vec::new())
}

async fn broken(
    store: &dyn Store,
    reader: &dyn SealedReader,
    indexed: &IndexedDocument,
) -> Result<Vec<Finding>, StoreError> {
    // One that cannot be opened is reported as such.
    let Ok(facts) = reader.document(indexed) else {
        return Ok(Vec::new());
    };
    let from = &indexed.document.key;
    let mut findings = Vec::new();
    for DocumentReference { to, is_mutual } in facts.refers_to {
        let Some(found) = self::indexed(store, &to).await? else {
            findings.push(Finding::NoDocumentReferredTo(from.clone(), to));
            continue;
        };
        let names_it = |reference: &DocumentReference| reference.to == *from;
        let facts = reader.document(&found);
        let is_named = facts.map_or(true, |facts| facts.refers_to.iter().any(names_it));
        if is_mutual && !is_named {
            findings.push(Finding::NotReferredBack(from.clone(), to));
        }
    }
    Ok(findings)
}

/// A document by its key; its terms are not read.
async fn indexed(store: &dyn Store, key: &Key) -> Result<Option<IndexedDocument>, StoreError> {
    let found = store.get(key).await?;
    Ok(found.map(|document| IndexedDocument {
        document,
        terms: Vec::new(),
    }))
}
