//! Opens records of a broker, for checks of a whole store. The checks themselves are in
//! `sutler_journal::inspect`.

use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::resources::{BINDING, GONE, INSTANCE, LIFECYCLE};
use std::borrow::Cow;
use std::collections::BTreeSet;
use sutler_journal::inspect::{DocumentFacts, SealedReader, UnreadableError};
use sutler_journal::{
    IndexedDocument, KeyRing, Operation, SealContext, SealError, StoreTime, Term,
};
use sutler_records::{PlannedOperation, Resource, SINGLETON, is_write_probe};

/// Opens documents and operations of a broker's realms with a key ring.
pub struct DocumentOpener {
    keys: KeyRing,
}

impl DocumentOpener {
    /// Opens with these keys.
    pub fn new(keys: KeyRing) -> Self {
        Self { keys }
    }

    fn open(&self, place: SealContext<'_>, sealed: &[u8]) -> Result<Vec<u8>, UnreadableError> {
        let opened = self.keys.open(place, sealed);
        opened.map(|(plain, _)| plain).map_err(unreadable)
    }
}

impl SealedReader for DocumentOpener {
    fn document(&self, indexed: &IndexedDocument) -> Result<DocumentFacts, UnreadableError> {
        let document = &indexed.document;
        if document.body.is_empty() && is_write_probe(&document.key) {
            // It holds nothing.
            return Ok(DocumentFacts::default());
        }
        let plain = self.open(SealContext::Document(&document.key), &document.body)?;
        match document.key.kind() {
            kind if kind == INSTANCE.as_str() => open_resource::<Instance>(indexed, &plain),
            kind if kind == BINDING.as_str() => open_resource::<Binding>(indexed, &plain),
            kind if kind == SINGLETON.as_str() => {
                open_resource::<PlannedOperation>(indexed, &plain)
            }
            _ => Ok(DocumentFacts::default()),
        }
    }

    fn operation(&self, operation: &Operation) -> Result<(), UnreadableError> {
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
}

fn open_resource<T: Resource>(
    indexed: &IndexedDocument,
    plain: &[u8],
) -> Result<DocumentFacts, UnreadableError> {
    let at: T = serde_json::from_slice(plain).map_err(|_| {
        UnreadableError("it has no form that this program knows: use the newer one".to_owned())
    })?;
    let mut terms = at.terms(&indexed.document.key);
    terms.extend(at.dated_terms(StoreTime::default()));
    Ok(DocumentFacts {
        points_to: Some(at.referenced_operations()),
        misfiled: described(&indexed.terms) != described(&terms)
            && !is_purge_without_term(&indexed.terms, &terms),
        refers_to: Vec::new(),
    })
}

/// Terms for comparison: without the time of deletion, which depends on the moment of writing.
fn described(terms: &[Term]) -> BTreeSet<(&Cow<'static, str>, &[u8])> {
    let described = terms.iter().map(|term| match term.name.as_ref() {
        GONE => (&term.name, &[][..]),
        _ => (&term.name, term.value.as_slice()),
    });
    described.collect()
}

/// Whether it is the tombstone of a purge that an earlier version wrote, without its term.
fn is_purge_without_term(found: &[Term], expected: &[Term]) -> bool {
    let purging = Term::new(LIFECYCLE, Instance::PURGING);
    found.is_empty() && expected == [purging]
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
