//! What this process keeps of brokers between two looks at them: where their registration is, the catalog, the connection.
//!
//! An entry is used only if its versions and revisions match those just read. So an entry is never stale, and may be
//! dropped at any time.

use super::broker_view::BrokerView;
use super::catalog_snapshot::CatalogSnapshot;
use super::transport::BrokerTransport;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_journal::{Key, Version};
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Most brokers that are kept.
const BROKERS_MAX: usize = 4_000;
/// Most bytes of the stored offerings and plans of all of them together. An item may have half a megabyte, and who
/// registers a broker chooses how large its items are, so their number says nothing.
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// A catalog that is read once, however many wait for it.
pub(super) type CatalogCell = Arc<OnceCell<Arc<CatalogSnapshot>>>;

/// Versions of the documents that a view is made of; the state may be absent.
pub(super) type ViewVersions = (Version, Option<Version>);

/// What is kept of one broker.
struct CachedBroker {
    registration: Key,
    view: Option<(ViewVersions, Arc<BrokerView>)>,
    transport: Option<(u64, Arc<dyn BrokerTransport>)>,
    catalog: Option<(u64, CatalogCell)>,
    used: u64,
}

struct CacheTable {
    brokers: BTreeMap<Uuid, CachedBroker>,
    uses: u64,
    brokers_max: usize,
    bytes_max: usize,
}

/// What is kept of all brokers.
pub(super) struct ViewCache(Mutex<CacheTable>);

impl Default for ViewCache {
    fn default() -> Self {
        Self::bounded(BROKERS_MAX, BYTES_MAX)
    }
}

impl ViewCache {
    fn bounded(brokers_max: usize, bytes_max: usize) -> Self {
        Self(Mutex::new(CacheTable {
            brokers: BTreeMap::new(),
            uses: 0,
            brokers_max,
            bytes_max,
        }))
    }

    fn table(&self) -> MutexGuard<'_, CacheTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a registration.
    pub(super) fn registration(&self, broker: Uuid) -> Option<Key> {
        let table = self.table();
        table.brokers.get(&broker).map(|it| it.registration.clone())
    }

    /// Keeps the key of a registration.
    pub(super) fn keep_registration(&self, broker: Uuid, key: &Key) {
        let mut table = self.table();
        table.uses += 1;
        let used = table.uses;
        if let Some(entry) = table.brokers.get_mut(&broker) {
            entry.used = used;
            entry.registration = key.clone();
            return;
        }
        let entry = CachedBroker {
            registration: key.clone(),
            view: None,
            transport: None,
            catalog: None,
            used,
        };
        table.brokers.insert(broker, entry);
        table.shrink(broker);
    }

    /// The view that was made of documents in these versions.
    pub(super) fn view(&self, broker: Uuid, versions: ViewVersions) -> Option<Arc<BrokerView>> {
        let table = self.table();
        let (kept, view) = table.brokers.get(&broker)?.view.as_ref()?;
        (*kept == versions).then(|| view.clone())
    }

    /// Keeps a view.
    pub(super) fn keep_view(&self, broker: Uuid, versions: ViewVersions, view: &Arc<BrokerView>) {
        if let Some(entry) = self.table().brokers.get_mut(&broker) {
            entry.view = Some((versions, view.clone()));
        }
    }

    /// The connection that a revision of a registration describes.
    pub(super) fn transport(
        &self,
        broker: Uuid,
        revision: u64,
    ) -> Option<Arc<dyn BrokerTransport>> {
        let table = self.table();
        let (kept, transport) = table.brokers.get(&broker)?.transport.as_ref()?;
        (*kept == revision).then(|| transport.clone())
    }

    /// Keeps a connection.
    pub(super) fn keep_transport(
        &self,
        broker: Uuid,
        revision: u64,
        transport: &Arc<dyn BrokerTransport>,
    ) {
        if let Some(entry) = self.table().brokers.get_mut(&broker) {
            entry.transport = Some((revision, transport.clone()));
        }
    }

    /// The catalog of a revision: read, or to be read by the first who waits for it.
    pub(super) fn catalog(&self, broker: Uuid, revision: u64) -> CatalogCell {
        let mut table = self.table();
        let Some(entry) = table.brokers.get_mut(&broker) else {
            return CatalogCell::default();
        };
        match &entry.catalog {
            Some((kept, cell)) if *kept == revision => cell.clone(),
            Some(_) | None => {
                let cell = CatalogCell::default();
                entry.catalog = Some((revision, cell.clone()));
                cell
            }
        }
    }

    /// Drops other catalogs if there are too many, after one was read.
    pub(super) fn catalog_was_read(&self, broker: Uuid) {
        self.table().shrink(broker);
    }

    /// Keeps nothing of a broker.
    pub(super) fn forget(&self, broker: Uuid) {
        self.table().brokers.remove(&broker);
    }
}

impl CachedBroker {
    fn catalog_bytes(&self) -> usize {
        let snapshot = self.catalog.as_ref().and_then(|(_, cell)| cell.get());
        snapshot.map_or(0, |it| it.bytes())
    }
}

impl CacheTable {
    /// Drops what was not used for the longest time, until everything but one broker is within the bounds.
    fn shrink(&mut self, kept: Uuid) {
        let catalogs = self.brokers.values().map(CachedBroker::catalog_bytes);
        let mut bytes: usize = catalogs.sum();
        while self.brokers.len() > self.brokers_max || bytes > self.bytes_max {
            let others = self.brokers.iter().filter(|(uid, _)| **uid != kept);
            let Some(oldest) = others.min_by_key(|(_, it)| it.used).map(|(uid, _)| *uid) else {
                return;
            };
            let dropped = self.brokers.remove(&oldest);
            bytes -= dropped.map_or(0, |it| it.catalog_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CatalogSnapshot, ViewCache};
    use crate::records::{PlatformKeys, ResourceName};
    use std::sync::Arc;
    use uuid::Uuid;

    fn use_broker(cache: &ViewCache, number: u128) {
        let name = ResourceName::try_from(format!("b{number}")).expect("a name");
        let key = PlatformKeys::default().broker(None, &name);
        cache.keep_registration(Uuid::from_u128(number), &key);
    }

    /// Reads a catalog of so many bytes.
    fn read_catalog(cache: &ViewCache, number: u128, bytes: usize) {
        let broker = Uuid::from_u128(number);
        let cell = cache.catalog(broker, 1);
        let snapshot = Arc::new(CatalogSnapshot::of_bytes(bytes));
        assert!(cell.set(snapshot).is_ok(), "it is empty");
        cache.catalog_was_read(broker);
    }

    fn kept(cache: &ViewCache) -> Vec<u128> {
        let numbers = 1..10_u128;
        let is_kept = |it: &u128| cache.registration(Uuid::from_u128(*it)).is_some();
        numbers.filter(is_kept).collect()
    }

    #[test]
    fn the_broker_that_was_not_used_for_the_longest_time_is_dropped() {
        let cache = ViewCache::bounded(2, 10);
        use_broker(&cache, 1);
        use_broker(&cache, 2);
        use_broker(&cache, 1);
        use_broker(&cache, 3);
        assert_eq!(kept(&cache), [1, 3]);
    }

    #[test]
    fn large_catalogs_are_dropped_but_not_the_one_that_was_just_read() {
        let cache = ViewCache::bounded(10, 100);
        for (number, bytes, expected) in [
            (1, 60, &[1_u128] as &[_]),
            (2, 40, &[1, 2]),
            (3, 1, &[2, 3]),
            (4, 1_000, &[4]),
            (5, 1, &[5]),
        ] {
            use_broker(&cache, number);
            read_catalog(&cache, number, bytes);
            assert_eq!(kept(&cache), expected);
        }
    }

    #[test]
    fn a_catalog_counts_for_its_revision_only() {
        let cache = ViewCache::default();
        use_broker(&cache, 1);
        read_catalog(&cache, 1, 1);
        let broker = Uuid::from_u128(1);
        assert!(cache.catalog(broker, 1).get().is_some());
        assert!(cache.catalog(broker, 2).get().is_none());
        assert!(cache.catalog(broker, 1).get().is_none(), "it was replaced");
    }
}
