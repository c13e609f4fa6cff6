//! Records of whoever builds on this broker: sealed like all others, listed by name, written once at a time.
//!
//! They lie in a realm of their own, beside those of the platforms. Anybody may read them. Chores
//! (`chore.rs`) write them under their claim, so that a worker that was taken over writes nothing; whoever
//! does without one stands on the states that were read. What a record means is not known here.
//! Who has instances is asked in `realms.rs`.

use crate::aside::aside;
use crate::records::{RecordError, Records};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use sutler_journal::{
    Commit, CommitError, Document, Key, Kind, List, Realm, SealContext, Store, StoreError, Version,
};

/// Where the records lie. No prefix of a platform makes such a name.
pub(crate) const LEDGER_REALM: &str = "sutler:ledger";
/// What they are.
const LEDGER: Kind = Kind::new("ledger");
/// Records read in one go.
const PAGE: usize = 200;
/// Most writes that a batch should have; the commit needs some for itself.
pub const BATCH_WRITES_MAX: usize = 90;
/// Most bytes that a batch should have, sealed.
pub const BATCH_BYTES_MAX: usize = 900_000;

/// Names one state of a record: it is another after every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub(crate) Version);

/// A record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// Its name in its collection.
    pub id: String,
    /// What it says.
    pub value: T,
    /// Which state of it this is.
    pub stamp: Stamp,
}

/// Why a record cannot be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "the records of this broker cannot be read or written now; see whether its store answers: {0}"
)]
pub struct LedgerFault(#[source] Box<dyn std::error::Error + Send + Sync>);

impl From<RecordError> for LedgerFault {
    fn from(error: RecordError) -> Self {
        Self(error.into())
    }
}

impl From<tokio::task::JoinError> for LedgerFault {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for LedgerFault {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

/// The records. Cheap to clone.
#[derive(Clone)]
pub struct Ledger {
    pub(crate) records: Arc<Records>,
}

impl Ledger {
    /// Whether a store has records of any of these collections. Nothing is opened, and nobody needs to run.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn has_any(store: &dyn Store, collections: &[&str]) -> Result<bool, LedgerFault> {
        let unnameable = |error: sutler_journal::KeyError| LedgerFault(error.into());
        let realm = Realm::new(LEDGER_REALM).map_err(unnameable)?;
        for collection in collections {
            let prefix = Key::prefix(&realm, LEDGER, &[collection]);
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
    ) -> Result<Option<Entry<T>>, LedgerFault> {
        let Ok(key) = self.key(collection, id) else {
            return Ok(None);
        };
        let Some(document) = self.records.store.get(&key).await? else {
            return Ok(None);
        };
        let (value, _) = self
            .records
            .open(SealContext::Document(&key), &document.body)?;
        Ok(Some(Entry {
            id: id.to_owned(),
            value,
            stamp: Stamp(document.version),
        }))
    }

    /// Reads a collection, and gathers something of each record, in the order of names. There may be thousands, so
    /// that is done where nobody's request waits for it.
    ///
    /// # Errors
    /// As [`Ledger::get`].
    pub async fn gather<T: DeserializeOwned, G: Send + 'static>(
        &self,
        collection: &str,
        mut gathered: G,
        take: impl Fn(&mut G, Entry<T>) + Copy + Send + 'static,
    ) -> Result<G, LedgerFault> {
        let prefix = Key::prefix(&self.records.realm, LEDGER, &[collection]);
        let list = List::Prefix(prefix.map_err(|error| LedgerFault(error.into()))?);
        let mut after = None;
        loop {
            let store = &self.records.store;
            let page = store.list(&list, after.as_ref(), PAGE).await?;
            let records = Arc::clone(&self.records);
            let taken = aside(move || {
                let mut each = page.documents.into_iter();
                let taken = each.try_for_each(|document| {
                    take(&mut gathered, opened(&records, &document)?);
                    Ok(())
                });
                taken.map(|()| gathered)
            });
            let taken: Result<G, LedgerFault> = taken.await?;
            gathered = taken?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(gathered),
            }
        }
    }

    /// Begins to write without a claim.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Writes all of a batch, or nothing. `false`: somebody wrote first; read again and decide again.
    ///
    /// # Errors
    /// The store does not answer, or takes no such batch.
    pub async fn write(&self, batch: Batch<'_>) -> Result<bool, LedgerFault> {
        if let Some(id) = batch.unnameable() {
            let sentence = format!("a record cannot be named {id:?}; rename it");
            return Err(LedgerFault(sentence.into()));
        }
        batch
            .commit
            .check()
            .map_err(|why| LedgerFault(why.into()))?;
        match sutler_journal::commit_until_known(self.records.store.as_ref(), &batch.commit).await {
            Ok(()) => Ok(true),
            Err(CommitError::Stale(_)) => Ok(false),
            Err(CommitError::NotWritten(error) | CommitError::Unknown(error)) => Err(error.into()),
        }
    }

    pub(crate) fn key(&self, collection: &str, id: &str) -> Result<Key, sutler_journal::KeyError> {
        Key::new(&self.records.realm, LEDGER, &[collection, id])
    }
}

fn opened<T: DeserializeOwned>(
    records: &Records,
    document: &Document,
) -> Result<Entry<T>, LedgerFault> {
    let (value, _) = records.open(SealContext::Document(&document.key), &document.body)?;
    Ok(Entry {
        id: document.key.id(1).to_owned(),
        value,
        stamp: Stamp(document.version),
    })
}

/// Writes that happen together or not at all.
#[must_use]
pub struct Batch<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) commit: Commit,
    writes: usize,
    bytes: usize,
    unnameable: Option<String>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(ledger: &'a Ledger) -> Self {
        Self {
            ledger,
            commit: Commit::new(),
            writes: 0,
            bytes: 0,
            unnameable: None,
        }
    }

    /// Writes a record. `was`: the state it must be in; `None`: there must be none.
    pub fn put<T: Serialize>(
        mut self,
        collection: &str,
        id: &str,
        was: Option<Stamp>,
        value: &T,
    ) -> Self {
        let Ok(key) = self.ledger.key(collection, id) else {
            self.unnameable = Some(id.to_owned());
            return self;
        };
        let body = self.ledger.records.seal(SealContext::Document(&key), value);
        self.writes += 1;
        self.bytes += body.len();
        self.commit = match was {
            None => self.commit.insert(key, Vec::new(), body),
            Some(Stamp(version)) => self.commit.replace(key, version, Vec::new(), body),
        };
        self
    }

    /// Removes a record that is in this state.
    pub fn remove(mut self, collection: &str, id: &str, was: Stamp) -> Self {
        if let Ok(key) = self.ledger.key(collection, id) {
            self.writes += 1;
            self.commit = self.commit.remove(key, was.0);
        }
        self
    }

    /// Writes only if a record that is not written is still in this state.
    pub fn unchanged(mut self, collection: &str, id: &str, was: Stamp) -> Self {
        match self.ledger.key(collection, id) {
            Ok(key) => self.commit = self.commit.unchanged(key, was.0),
            Err(_) => self.unnameable = Some(id.to_owned()),
        }
        self
    }

    /// Writes only if there is still no such record.
    pub fn absent(mut self, collection: &str, id: &str) -> Self {
        match self.ledger.key(collection, id) {
            Ok(key) => self.commit = self.commit.absent(key),
            Err(_) => self.unnameable = Some(id.to_owned()),
        }
        self
    }

    /// The state that every record which it writes is in afterwards.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp(Version(self.commit.id()))
    }

    /// Whether nothing more should be added to it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        // One more record must fit, and the longest is a version: its manifest, with every second letter escaped.
        self.writes >= BATCH_WRITES_MAX || self.bytes >= BATCH_BYTES_MAX / 3
    }

    /// Whether it writes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes == 0
    }

    /// The name of a record that no store could keep, if there is one.
    pub(crate) fn unnameable(&self) -> Option<&str> {
        self.unnameable.as_deref()
    }
}
