//! Opens sealed records for checks of a whole store (`sutler_journal::inspect`): what the readers of all realms share.
//!
//! What a document is, and what must be true of it, is known to the owner of its realm.

use crate::key_check::is_write_probe;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::sync::Arc;
use sutler_journal::inspect::UnreadableError;
use sutler_journal::{IndexedDocument, KeyRing, Operation, SealContext, SealError, Term};

/// Opens records with a key ring.
pub struct RecordOpener(Arc<KeyRing>);

impl RecordOpener {
    /// Opens with these keys.
    pub fn new(keys: impl Into<Arc<KeyRing>>) -> Self {
        Self(keys.into())
    }

    /// The contents of a document; `None`: it is a probe of the store and has none.
    ///
    /// # Errors
    /// A key is missing, or it was changed.
    pub fn document(&self, indexed: &IndexedDocument) -> Result<Option<Vec<u8>>, UnreadableError> {
        let document = &indexed.document;
        if document.body.is_empty() && is_write_probe(&document.key) {
            return Ok(None);
        }
        self.open(SealContext::Document(&document.key), &document.body)
            .map(Some)
    }

    /// Opens everything sealed of an operation.
    ///
    /// # Errors
    /// A key is missing, or it was changed.
    pub fn operation(&self, operation: &Operation) -> Result<(), UnreadableError> {
        let id = operation.row.id;
        for (place, sealed) in [
            (SealContext::Request(id), &operation.request),
            (SealContext::Progress(id), &operation.progress),
            (SealContext::Detail(id), &operation.row.detail),
        ] {
            // An empty value was never written.
            if !sealed.is_empty() {
                self.open(place, sealed)?;
            }
        }
        Ok(())
    }

    fn open(&self, place: SealContext<'_>, sealed: &[u8]) -> Result<Vec<u8>, UnreadableError> {
        let opened = self.0.open(place, sealed);
        opened.map(|(plain, _)| plain).map_err(unreadable)
    }
}

/// Reads the contents of a document.
///
/// # Errors
/// They have another form.
pub fn read_contents<T: DeserializeOwned>(plain: &[u8]) -> Result<T, UnreadableError> {
    serde_json::from_slice(plain).map_err(|_| unknown_form())
}

/// A document of a form that this program does not know.
pub fn unknown_form() -> UnreadableError {
    UnreadableError("it has no form that this program knows: use the newer one".to_owned())
}

/// Whether two lists have the same terms. The value of the `dated` one does not count: it depends on the moment of writing.
pub fn same_terms(one: &[Term], other: &[Term], dated: &str) -> bool {
    let described = |terms: &[Term]| -> BTreeSet<(String, Vec<u8>)> {
        let described = terms.iter().map(|term| match term.name.as_ref() {
            name if name == dated => (name.to_owned(), Vec::new()),
            name => (name.to_owned(), term.value.clone()),
        });
        described.collect()
    };
    described(one) == described(other)
}

fn unreadable(error: SealError) -> UnreadableError {
    UnreadableError(match error {
        SealError::UnknownKey(id) => {
            format!("it is sealed with the key {id:?}, which the key file does not have: add it")
        }
        SealError::Layout | SealError::Broken => {
            "it was changed, or another key has the same name: restore a backup".to_owned()
        }
    })
}
