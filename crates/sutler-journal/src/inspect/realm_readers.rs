//! The reader of each realm: what a record means is known to the program that owns its realm only.
//!
//! A record of a realm without a reader is counted and not opened. Not here: the readers, which belong to their programs.

use super::SealedReader;
use std::collections::BTreeMap;

/// Readers by realm.
#[derive(Default)]
pub struct RealmReaders {
    /// `None`: this build has none.
    by_realm: BTreeMap<String, Option<Box<dyn SealedReader>>>,
    others: Option<Box<dyn SealedReader>>,
}

impl RealmReaders {
    /// One reader for all realms that are not named by [`RealmReaders::with`] or [`RealmReaders::without`].
    pub fn of_others(reader: impl SealedReader + 'static) -> Self {
        Self {
            by_realm: BTreeMap::new(),
            others: Some(Box::new(reader)),
        }
    }

    /// Sets the reader of a realm.
    #[must_use]
    pub fn with(mut self, realm: &str, reader: impl SealedReader + 'static) -> Self {
        self.by_realm
            .insert(realm.to_owned(), Some(Box::new(reader)));
        self
    }

    /// Says that this build has no reader of a realm.
    #[must_use]
    pub fn without(mut self, realm: &str) -> Self {
        self.by_realm.insert(realm.to_owned(), None);
        self
    }

    /// The reader of a realm.
    pub(super) fn of(&self, realm: &str) -> Option<&dyn SealedReader> {
        let reader = self.by_realm.get(realm).unwrap_or(&self.others);
        reader.as_deref()
    }
}
