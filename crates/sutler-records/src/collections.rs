//! Collections: sealed records of extensions, listed by name, in a separate realm.
//!
//! Reading needs no claim. Periodic tasks (`periodic.rs`) write under their claim, so that a worker that
//! was taken over writes nothing; other writers name the revisions they have read. The meaning of a
//! record is not known here.

use crate::background::run_blocking;
use crate::{Documents, RecordError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use sutler_journal::{
    Commit, CommitError, Document, Key, Kind, List, Realm, SealContext, Store, StoreError, Version,
};

/// Realm of the collections. No path prefix of a platform results in this name.
pub const COLLECTIONS_REALM: &str = "sutler:ledger";
/// Kind of the records.
const COLLECTION: Kind = Kind::new("ledger");
/// Records read at a time.
const PAGE: usize = 200;
/// Most writes that a batch should have; the commit needs some for itself.
pub const BATCH_WRITES_MAX: usize = 90;
/// Most bytes that a batch should have, sealed.
pub const BATCH_BYTES_MAX: usize = 900_000;

/// Revision of a record; every write creates a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(pub Version);

/// A record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionItem<T> {
    /// Name in the collection.
    pub id: String,
    /// Opened content.
    pub value: T,
    /// Revision that was read.
    pub revision: Revision,
}

/// A record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "the records of this broker cannot be read or written now; see whether its store answers: {0}"
)]
pub struct CollectionsError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<RecordError> for CollectionsError {
    fn from(error: RecordError) -> Self {
        Self(error.into())
    }
}

impl From<tokio::task::JoinError> for CollectionsError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for CollectionsError {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

/// The collections of a store. Cheap to clone.
#[derive(Clone)]
pub struct Collections {
    documents: Arc<Documents>,
}

impl Collections {
    /// Collections in the realm of these documents.
    #[must_use]
    pub fn new(documents: Arc<Documents>) -> Self {
        Self { documents }
    }

    /// The documents of the collections' realm.
    #[must_use]
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Whether a store has records of any of these collections. Needs no keys and no running process.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn has_any(
        store: &dyn Store,
        collections: &[&str],
    ) -> Result<bool, CollectionsError> {
        let unnameable = |error: sutler_journal::KeyError| CollectionsError(error.into());
        let realm = Realm::new(COLLECTIONS_REALM).map_err(unnameable)?;
        for collection in collections {
            let prefix = Key::prefix(&realm, COLLECTION, &[collection]);
            let list = List::Prefix(prefix.map_err(unnameable)?);
            if !store.list(&list, None, 1).await?.documents.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads one record.
    ///
    /// # Errors
    /// The store does not answer, or the record cannot be opened.
    pub async fn get<T: DeserializeOwned>(
        &self,
        collection: &str,
        id: &str,
    ) -> Result<Option<CollectionItem<T>>, CollectionsError> {
        let Ok(key) = self.key(collection, id) else {
            return Ok(None);
        };
        let Some(document) = self.documents.store.get(&key).await? else {
            return Ok(None);
        };
        let (value, _) = self
            .documents
            .open(SealContext::Document(&key), &document.body)?;
        Ok(Some(CollectionItem {
            id: id.to_owned(),
            value,
            revision: Revision(document.version),
        }))
    }

    /// Folds a collection into a value, record by record in the order of names. Records are opened on
    /// the background thread, because there may be thousands.
    ///
    /// # Errors
    /// As [`Collections::get`].
    pub async fn fold<T: DeserializeOwned, A: Send + 'static>(
        &self,
        collection: &str,
        mut folded: A,
        take: impl Fn(&mut A, CollectionItem<T>) + Copy + Send + 'static,
    ) -> Result<A, CollectionsError> {
        let prefix = Key::prefix(&self.documents.realm, COLLECTION, &[collection]);
        let list = List::Prefix(prefix.map_err(|error| CollectionsError(error.into()))?);
        let mut after = None;
        loop {
            let store = &self.documents.store;
            let page = store.list(&list, after.as_ref(), PAGE).await?;
            let documents = Arc::clone(&self.documents);
            let taken = run_blocking(move || {
                let mut each = page.documents.into_iter();
                let taken = each.try_for_each(|document| {
                    take(&mut folded, opened(&documents, &document)?);
                    Ok(())
                });
                taken.map(|()| folded)
            });
            let taken: Result<A, CollectionsError> = taken.await?;
            folded = taken?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(folded),
            }
        }
    }

    /// An empty batch, to be written without a claim.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Writes all of a batch, or nothing. `false`: another writer was first; read and decide again.
    ///
    /// # Errors
    /// The store does not answer, or the batch is not valid.
    pub async fn write(&self, batch: Batch<'_>) -> Result<bool, CollectionsError> {
        if let Some(id) = batch.invalid_id() {
            let sentence = format!("a record cannot be named {id:?}; rename it");
            return Err(CollectionsError(sentence.into()));
        }
        batch
            .commit
            .check()
            .map_err(|why| CollectionsError(why.into()))?;
        match sutler_journal::commit_until_known(self.documents.store.as_ref(), &batch.commit).await
        {
            Ok(()) => Ok(true),
            Err(CommitError::Stale(_)) => Ok(false),
            Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
        }
    }

    /// Key of a record.
    ///
    /// # Errors
    /// A name is not a valid id.
    pub fn key(&self, collection: &str, id: &str) -> Result<Key, sutler_journal::KeyError> {
        Key::new(&self.documents.realm, COLLECTION, &[collection, id])
    }
}

fn opened<T: DeserializeOwned>(
    documents: &Documents,
    document: &Document,
) -> Result<CollectionItem<T>, CollectionsError> {
    let (value, _) = documents.open(SealContext::Document(&document.key), &document.body)?;
    Ok(CollectionItem {
        id: document.key.id(1).to_owned(),
        value,
        revision: Revision(document.version),
    })
}

/// Writes of one commit.
#[must_use]
pub struct Batch<'a> {
    collections: &'a Collections,
    commit: Commit,
    writes: usize,
    bytes: usize,
    invalid_id: Option<String>,
}

impl<'a> Batch<'a> {
    fn new(collections: &'a Collections) -> Self {
        Self {
            collections,
            commit: Commit::new(),
            writes: 0,
            bytes: 0,
            invalid_id: None,
        }
    }

    /// Writes a record. `was`: the revision it must have; `None`: it must not exist.
    pub fn put<T: Serialize>(
        mut self,
        collection: &str,
        id: &str,
        was: Option<Revision>,
        value: &T,
    ) -> Self {
        let Ok(key) = self.collections.key(collection, id) else {
            self.invalid_id = Some(id.to_owned());
            return self;
        };
        let body = self
            .collections
            .documents
            .seal(SealContext::Document(&key), value);
        self.writes += 1;
        self.bytes += body.len();
        self.commit = match was {
            None => self.commit.insert(key, Vec::new(), body),
            Some(Revision(version)) => self.commit.replace(key, version, Vec::new(), body),
        };
        self
    }

    /// Removes a record that has this revision.
    pub fn remove(mut self, collection: &str, id: &str, was: Revision) -> Self {
        if let Ok(key) = self.collections.key(collection, id) {
            self.writes += 1;
            self.commit = self.commit.remove(key, was.0);
        }
        self
    }

    /// Expects a record that is not written to have this revision.
    pub fn unchanged(mut self, collection: &str, id: &str, was: Revision) -> Self {
        match self.collections.key(collection, id) {
            Ok(key) => self.commit = self.commit.unchanged(key, was.0),
            Err(_) => self.invalid_id = Some(id.to_owned()),
        }
        self
    }

    /// Expects that a record does not exist.
    pub fn absent(mut self, collection: &str, id: &str) -> Self {
        match self.collections.key(collection, id) {
            Ok(key) => self.commit = self.commit.absent(key),
            Err(_) => self.invalid_id = Some(id.to_owned()),
        }
        self
    }

    /// Revision of every written record after the commit.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision(Version(self.commit.id()))
    }

    /// Whether the batch should be written before more is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        // One more record must fit. The longest is a manifest in which every second character is escaped.
        self.writes >= BATCH_WRITES_MAX || self.bytes >= BATCH_BYTES_MAX / 3
    }

    /// Whether the batch writes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes == 0
    }

    /// A name in the batch that is not a valid id, if there is one.
    pub(crate) fn invalid_id(&self) -> Option<&str> {
        self.invalid_id.as_deref()
    }

    /// The commit of the batch.
    pub(crate) fn into_commit(self) -> Commit {
        self.commit
    }
}
