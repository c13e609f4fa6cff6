//! Finds the registrations of brokers in the store.

use super::Brokers;
use super::broker_view::BrokerViewError;
use crate::platform_records::RecordPage;
use crate::records::{BROKER, BrokerRegistration, BrokerState, Record, ResourceName, UID_TERM};
use sutler_journal::{Key, List, Position, Version};
use sutler_records::{LoadedDocument, RecordError};
use uuid::Uuid;

/// A registration as it was read.
pub(super) struct StoredRegistration {
    /// Its key.
    pub(super) key: Key,
    /// Its version.
    pub(super) version: Version,
    /// What it contains.
    pub(super) registration: BrokerRegistration,
}

impl StoredRegistration {
    /// The document as it was read, for replacing it.
    pub(super) fn document(&self) -> LoadedDocument<Record<BrokerRegistration>> {
        LoadedDocument::written(Record::of(self.registration.clone()), self.version)
    }
}

impl Brokers {
    /// A registration by the uid of its broker: one read if this process knows its key, else one or two.
    pub(super) async fn registration(
        &self,
        broker: Uuid,
    ) -> Result<Option<StoredRegistration>, BrokerViewError> {
        if let Some(key) = self.cache.registration(broker) {
            let found = self.registration_at(&key).await?;
            if let Some(found) = found.filter(|it| it.registration.uid == broker) {
                return Ok(Some(found));
            }
        }
        let records = &self.records;
        let value = broker.to_string();
        let list = List::term(records.keys.realm(), BROKER, UID_TERM, value.as_bytes());
        let page = records.documents.store.list(&list, None, 1).await;
        let page = page.map_err(RecordError::Store)?;
        let Some(document) = page.documents.into_iter().next() else {
            self.cache.forget(broker);
            return Ok(None);
        };
        let contents = records.open(&document)?;
        let registration = contents.ok_or(BrokerViewError::NewerForm(broker))?;
        self.cache.keep_registration(broker, &document.key);
        Ok(Some(StoredRegistration {
            key: document.key,
            version: document.version,
            registration,
        }))
    }

    /// The registration under a key; `None`: there is none that this version can read.
    pub(super) async fn registration_at(
        &self,
        key: &Key,
    ) -> Result<Option<StoredRegistration>, RecordError> {
        let loaded = self.records.load::<BrokerRegistration>(key).await?;
        let (state, version) = (loaded.state.into_inner(), loaded.version);
        let Some((registration, version)) = state.zip(version) else {
            return Ok(None);
        };
        self.cache.keep_registration(registration.uid, key);
        Ok(Some(StoredRegistration {
            key: key.clone(),
            version,
            registration,
        }))
    }

    /// Finds a broker by its name, among those of all namespaces (`None`) or of one.
    ///
    /// # Errors
    /// The store does not answer, or the registration cannot be opened.
    pub async fn find(
        &self,
        scope: Option<&ResourceName>,
        name: &ResourceName,
    ) -> Result<Option<BrokerRegistration>, RecordError> {
        let key = self.records.keys.broker(scope, name);
        let found = self.registration_at(&key).await?;
        Ok(found.map(|it| it.registration))
    }

    /// Lists registrations by scope and name: all of them (`None`), those that serve all namespaces (`Some(None)`), or
    /// those of one.
    ///
    /// # Errors
    /// The store does not answer, or a registration cannot be opened.
    pub async fn list(
        &self,
        scope: Option<Option<&ResourceName>>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<RecordPage<BrokerRegistration>, RecordError> {
        let keys = &self.records.keys;
        let prefix = match scope {
            None => keys.all_of(BROKER),
            Some(scope) => keys.brokers_of(scope),
        };
        let list = List::Prefix(prefix);
        self.records.list(&list, after, limit).await
    }

    /// What is known of a broker at present: its breaker, and its syncs.
    ///
    /// # Errors
    /// The store does not answer, or the state cannot be opened.
    pub async fn state(&self, broker: Uuid) -> Result<Option<BrokerState>, RecordError> {
        let key = self.records.keys.broker_state(broker);
        let loaded = self.records.load::<BrokerState>(&key).await?;
        Ok(loaded.state.into_inner())
    }
}
