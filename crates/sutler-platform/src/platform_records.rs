//! The platform's documents in a store: what is sealed, under which keys, by which clock.

use crate::records::{PlatformKeys, Record, TypedRecord, platform_realm};
use jiff::Timestamp;
use std::sync::Arc;
use sutler_journal::{Document, Key, KeyRing, List, Page, Position, SealContext, Store, StoreTime};
use sutler_records::{Documents, LoadedDocument, RecordError, StoreClock};

/// Documents of the platform. Cheap to clone.
#[derive(Clone)]
pub struct PlatformRecords {
    /// Sealed documents of the realm.
    pub documents: Arc<Documents>,
    /// Keys.
    pub keys: PlatformKeys,
}

/// A page of documents that were read.
pub struct RecordPage<T> {
    /// Keys and contents, without what a newer version wrote.
    pub items: Vec<(Key, T)>,
    /// Where the next page begins, if there is one.
    pub next: Option<Position>,
}

impl PlatformRecords {
    /// Documents in this store, sealed with this ring.
    pub fn new(store: Arc<dyn Store>, ring: Arc<KeyRing>, clock: StoreClock) -> Self {
        let documents = Documents {
            store,
            keys: ring,
            realm: platform_realm(),
            clock: Arc::new(clock),
        };
        Self {
            documents: Arc::new(documents),
            keys: PlatformKeys::default(),
        }
    }

    /// The present time by the store's clock: what documents contain and rules compare.
    pub fn now(&self) -> Timestamp {
        let StoreTime(micros) = self.documents.clock.now();
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// The store does not answer, or the document cannot be opened.
    pub async fn load<T: TypedRecord>(
        &self,
        key: &Key,
    ) -> Result<LoadedDocument<Record<T>>, RecordError> {
        self.documents.load(key).await
    }

    /// Reads a page of documents; those that a newer version wrote are left out.
    ///
    /// # Errors
    /// The store does not answer, or a document cannot be opened.
    pub async fn list<T: TypedRecord>(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<RecordPage<T>, RecordError> {
        let Page { documents, next } = self.documents.store.list(list, after, limit).await?;
        let mut items = Vec::with_capacity(documents.len());
        for document in documents {
            if let Some(contents) = self.open(&document)? {
                items.push((document.key, contents));
            }
        }
        Ok(RecordPage { items, next })
    }

    /// Reads all documents of a list, at most `limit`. Returns whether there are more.
    ///
    /// # Errors
    /// The store does not answer, or a document cannot be opened.
    pub async fn list_all<T: TypedRecord>(
        &self,
        list: &List,
        limit: usize,
    ) -> Result<(Vec<(Key, T)>, bool), RecordError> {
        const PAGE: usize = 500;
        let mut items = Vec::new();
        let mut after = None;
        loop {
            let left = limit - items.len();
            let page = self.list(list, after.as_ref(), left.min(PAGE)).await?;
            items.extend(page.items);
            match page.next {
                None => return Ok((items, false)),
                Some(_) if items.len() >= limit => return Ok((items, true)),
                Some(next) => after = Some(next),
            }
        }
    }

    /// Opens a document of a list; `None` if a newer version wrote it.
    ///
    /// # Errors
    /// The ring does not open it, or it does not have its form.
    pub fn open<T: TypedRecord>(&self, document: &Document) -> Result<Option<T>, RecordError> {
        let place = SealContext::Document(&document.key);
        let (record, _) = self.documents.open::<Record<T>>(place, &document.body)?;
        Ok(record.into_inner())
    }
}
