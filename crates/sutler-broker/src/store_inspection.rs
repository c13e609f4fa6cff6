//! Opens records of a broker, for checks of a whole store. The checks themselves are in
//! `sutler_journal::inspect`.

use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::resources::{BINDING, GONE, INSTANCE, LIFECYCLE};
use sutler_journal::inspect::{DocumentFacts, SealedReader, UnreadableError};
use sutler_journal::{IndexedDocument, KeyRing, Operation, StoreTime, Term};
use sutler_records::{
    PlannedOperation, RecordOpener, Resource, SINGLETON, read_contents, same_terms,
};

/// Opens documents and operations of a broker's realms with a key ring.
pub struct DocumentOpener(RecordOpener);

impl DocumentOpener {
    /// Opens with these keys.
    pub fn new(keys: KeyRing) -> Self {
        Self(RecordOpener::new(keys))
    }
}

impl SealedReader for DocumentOpener {
    fn document(&self, indexed: &IndexedDocument) -> Result<DocumentFacts, UnreadableError> {
        let Some(plain) = self.0.document(indexed)? else {
            return Ok(DocumentFacts::default());
        };
        match indexed.document.key.kind() {
            kind if kind == INSTANCE.as_str() => open_resource::<Instance>(indexed, &plain),
            kind if kind == BINDING.as_str() => open_resource::<Binding>(indexed, &plain),
            kind if kind == SINGLETON.as_str() => {
                open_resource::<PlannedOperation>(indexed, &plain)
            }
            _ => Ok(DocumentFacts::default()),
        }
    }

    fn operation(&self, operation: &Operation) -> Result<(), UnreadableError> {
        self.0.operation(operation)
    }
}

fn open_resource<T: Resource>(
    indexed: &IndexedDocument,
    plain: &[u8],
) -> Result<DocumentFacts, UnreadableError> {
    let at: T = read_contents(plain)?;
    let mut terms = at.terms(&indexed.document.key);
    terms.extend(at.dated_terms(StoreTime::default()));
    Ok(DocumentFacts {
        points_to: Some(at.referenced_operations()),
        misfiled: !same_terms(&indexed.terms, &terms, GONE)
            && !is_purge_without_term(&indexed.terms, &terms),
        refers_to: Vec::new(),
    })
}

/// Whether it is the tombstone of a purge that an earlier version wrote, without its term.
fn is_purge_without_term(found: &[Term], expected: &[Term]) -> bool {
    let purging = Term::new(LIFECYCLE, Instance::PURGING);
    found.is_empty() && expected == [purging]
}
