//! Inspection of a whole store: counts, and consistency checks.
//!
//! Everything is read in pages, so a store may be in use and of any size; memory use is a few bytes for
//! each operation. `inspect/counts.rs` counts, `inspect/check.rs` searches for
//! inconsistencies, `inspect/references.rs` for those between documents. A [`SealedReader`] opens bodies, and [`RealmReaders`] choose it. Nothing is changed here.

mod check;
mod counts;
mod finding;
mod realm_readers;
mod references;

pub use check::check;
pub use counts::{OldestOperation, StoreCounts, count_all};
pub(crate) use finding::name as record_name;
pub use finding::{CheckReport, Finding, Severity};
pub use realm_readers::RealmReaders;

use crate::copy::is_copy_document;
use crate::document::IndexedDocument;
use crate::key::Key;
use crate::operation::{Operation, OperationId, OperationRow};
use crate::query::{OperationFilter, OperationList};
use crate::store::{Store, StoreError};

/// Documents, and operations, per read.
const PAGE: usize = 200;

/// Why something sealed cannot be read; a sentence without any of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableError(pub String);

/// Facts read from the body of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFacts {
    /// The operations it points to; `None` if documents of its kind point to none.
    pub points_to: Option<Vec<OperationId>>,
    /// Its stored terms differ from those derived from its content.
    pub misfiled: bool,
    /// Other documents that must exist.
    pub refers_to: Vec<DocumentReference>,
}

/// Another document that must exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentReference {
    /// Its key.
    pub to: Key,
    /// Whether it must refer back.
    pub is_mutual: bool,
}

/// Opens sealed records of some realms.
pub trait SealedReader: Send + Sync {
    /// Reads the facts of a document.
    ///
    /// # Errors
    /// No key opens it, or its format is unknown.
    fn document(&self, indexed: &IndexedDocument) -> Result<DocumentFacts, UnreadableError>;

    /// Whether all parts of an operation can be opened.
    ///
    /// # Errors
    /// No key opens one of them.
    fn operation(&self, operation: &Operation) -> Result<(), UnreadableError>;
}

/// Reports progress: (documents, operations) read so far.
pub type ProgressCallback<'s> = &'s (dyn Fn(u64, u64) + Send + Sync);

/// Calls back for every document except those of copying.
async fn every_document(
    store: &dyn Store,
    mut each: impl FnMut(IndexedDocument),
) -> Result<(), StoreError> {
    let mut from = Some(Vec::new());
    while let Some(start) = from {
        let (page, next) = next_documents(store, &start).await?;
        page.into_iter().for_each(&mut each);
        from = next;
    }
    Ok(())
}

/// A page of documents from these bytes on, without those of copying, and where the next page begins.
pub(crate) async fn next_documents(
    store: &dyn Store,
    from: &[u8],
) -> Result<(Vec<IndexedDocument>, Option<Vec<u8>>), StoreError> {
    let mut page = store.scan_documents(from, PAGE).await?;
    let last = page.last().filter(|_| page.len() == PAGE);
    let next = last.map(|it| [it.document.key.as_bytes(), &[0]].concat());
    page.retain(|it| !is_copy_document(&it.document.key));
    Ok((page, next))
}

/// The next operations, newest first; none at the end.
pub(crate) async fn some_operations(
    store: &dyn Store,
    before: Option<OperationId>,
) -> Result<Vec<OperationRow>, StoreError> {
    let list = OperationList {
        filter: OperationFilter::All,
        before,
        limit: PAGE,
    };
    store.operations(&list).await
}
