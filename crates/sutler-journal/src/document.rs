//! Documents: one per resource. Terms are stored in the clear as index entries; the body is sealed.
//!
//! A store never reads a body; its meaning is defined by the crate above.

use crate::commit::CommitId;
use crate::key::Key;
use bytes::Bytes;
use std::borrow::Cow;

/// Maximum index terms of a document.
pub const TERMS_MAX: usize = 8;

/// The commit that wrote a document last. Never repeats, so a document that was deleted and created
/// again has another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub CommitId);

/// A plain name and value by which a document can be listed. Never a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// Name: `plan`, `lifecycle`, `created` … at most 32 bytes.
    pub name: Cow<'static, str>,
    /// Value; sorted as bytes, at most 512 of them.
    pub value: Vec<u8>,
}

impl Term {
    /// A term.
    pub fn new(name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        Self {
            name: Cow::Borrowed(name),
            value: value.into(),
        }
    }

    /// A term read from a store.
    pub fn read(name: String, value: impl Into<Vec<u8>>) -> Self {
        Self {
            name: Cow::Owned(name),
            value: value.into(),
        }
    }
}

/// A document as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Key.
    pub key: Key,
    /// Id of the commit that wrote it last.
    pub version: Version,
    /// The sealed content.
    pub body: Bytes,
}

/// A document with its terms; for copying or inspecting a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedDocument {
    /// The document.
    pub document: Document,
    /// Sorted by name, then value, without duplicates, regardless of the order in which they were written.
    pub terms: Vec<Term>,
}

impl IndexedDocument {
    /// Sorts terms and removes duplicates.
    pub fn new(document: Document, mut terms: Vec<Term>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self { document, terms }
    }
}
