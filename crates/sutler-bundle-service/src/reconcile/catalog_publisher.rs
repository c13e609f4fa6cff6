//! Publishes this process's catalog: the bundles of folders, and those of registries as they are stored.
//!
//! Every replica follows the stored records and replaces its catalog as a whole. The precondition of each offering
//! from a registry is its spec's record: a provision is accepted only while that record is unchanged. Folders come
//! first; of two offerings with the same name or id the first is published, and the collision is reported.
//! Differences are computed in `catalog_publisher/diff.rs`, pushes of developers in `catalog_publisher/push.rs`.

mod diff;
mod push;

pub use push::Pushes;

use super::bundles::{self, BundlesView};
use super::metrics;
use super::published_catalog::{PublishedCatalog, make};
use super::records::{RegistryRecords, VERSIONS, VersionRecord, generation, pushes, registries};
use super::refresh::{REFRESH, Refresh, Source};
use super::version;
use super::view::{self, RegistriesView, RegistryView};
use crate::bundle_folders::{OfferSettings, OfferedImage, Snapshot};
use crate::service::{BundleService, VersionLookup};
use crate::version_store::{Bundle, VersionStore};
use async_trait::async_trait;
use diff::{CatalogDiff, RegistrySnapshot, WantedVersion, diff, keep_unchanged};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use sutler_broker::{
    BrokerHandle, CatalogSource, CollectionItem, Collections, CollectionsError, Offering,
    PlanAvailability, Revision, run_blocking, run_in_background,
};
use sutler_registry::{RegistryChange, SpecName};

/// Interval at which the records are checked for changes.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// From this number of versions on, all are read at once instead of one by one.
const READ_ALL_FROM: usize = 50;
/// Offerings built per slice while no request waits for them.
const MADE_AT_ONCE: usize = 50;

/// Configuration of the publisher.
pub struct PublisherConfig {
    /// The registries, in the order of the configuration.
    pub sources: Arc<[Source]>,
    /// How bundles are offered.
    pub offers: OfferSettings,
    /// Store of versions.
    pub version_store: Arc<VersionStore>,
    /// The service behind the published offerings.
    pub service: Arc<BundleService>,
    /// The refresh task.
    pub refresh: Arc<Refresh>,
    /// Whether developers may push services.
    pub pushes: Pushes,
}

/// Why the catalog cannot be replaced now. The published catalog stays.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The records cannot be read.
    #[error(transparent)]
    Collections(#[from] CollectionsError),
    /// The process is shutting down.
    #[error("the process stops: {0}")]
    Stopping(#[from] tokio::task::JoinError),
    /// The broker rejects the catalog.
    #[error("the catalog cannot be replaced: {0}")]
    Replace(Box<sutler_broker::BuildError>),
    /// The broker has no collections.
    #[error("the broker keeps no records of registries; start it with its periodic tasks")]
    NoCollections,
}

/// Publishes the catalog of this process.
pub struct CatalogPublisher {
    parts: Arc<PublisherConfig>,
    running: BrokerHandle,
    collections: Collections,
    published: tokio::sync::Mutex<PublishedCatalog>,
    /// Snapshot of the last read, for views.
    read: RwLock<RegistrySnapshot>,
}

impl CatalogPublisher {
    /// Creates the publisher of a running broker, with the bundles of folders, and publishes the stored records.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub async fn open(
        parts: PublisherConfig,
        running: BrokerHandle,
        folders: Arc<Snapshot>,
    ) -> Result<Arc<Self>, PublishError> {
        metrics::describe();
        let collections = running.collections().ok_or(PublishError::NoCollections)?;
        let publisher = Arc::new(Self {
            parts: Arc::new(parts),
            collections,
            running,
            published: tokio::sync::Mutex::new(PublishedCatalog::of(folders)),
            read: RwLock::default(),
        });
        let archive: Arc<dyn VersionLookup> = publisher.clone();
        publisher.parts.service.look_in(Arc::downgrade(&archive));
        publisher.fetch_versions().await?;
        let mut published = publisher.published.lock().await;
        publisher.read_again(&mut published).await?;
        publisher.publish(&mut published).await?;
        drop(published);
        publisher.running.set_catalog_source(publisher.clone());
        Ok(publisher)
    }

    /// Replaces the published bundles of folders.
    ///
    /// # Errors
    /// See [`PublishError`]; the published catalog stays.
    pub async fn offer_folders(&self, folders: Arc<Snapshot>) -> Result<(), PublishError> {
        let mut published = self.published.lock().await;
        published.replace_folders(folders);
        if published.generation.is_none() {
            self.read_again(&mut published).await?;
        }
        self.publish(&mut published).await
    }

    /// Follows the stored records for as long as it is polled.
    pub async fn follow(&self) {
        loop {
            tokio::time::sleep(FOLLOW_EVERY).await;
            self.catch_up_or_log(Freshness::Complete).await;
        }
    }

    /// View of all registries. Specs shown as served are published by this process.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn view(&self) -> Result<RegistriesView, CollectionsError> {
        let refresh = self.running.task_status(REFRESH).await?;
        self.catch_up_or_log(Freshness::AtLeastServed).await;
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let order = self.names_in_config_order();
        Ok(view::all(&read.registries, &read.counts, &order, refresh))
    }

    /// View of one registry; `None` if there is none of that name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn view_of(&self, registry: &str) -> Result<Option<RegistryView>, CollectionsError> {
        let records = RegistryRecords::read(&self.collections).await?;
        Ok(view::one(&records, &self.names_in_config_order(), registry))
    }

    /// View of all bundles, including those of folders.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn bundles(&self) -> Result<BundlesView, CollectionsError> {
        self.catch_up().await;
        let folders = self.published.lock().await.folders.clone();
        let records = RegistryRecords::read(&self.collections).await?;
        let published = self.parts.service.snapshot();
        let found = |version: &str| self.parts.version_store.kept(version);
        Ok(bundles::all(&records, &folders, &published, found))
    }

    /// Changes that a refresh would make now.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn plan(&self) -> sutler_broker::Result<Vec<RegistryChange>> {
        let (refresh, collections) = (self.parts.refresh.clone(), self.collections.clone());
        let plan = run_in_background(async move { refresh.plan(&collections).await }).await?;
        plan.map_err(sutler_broker::Error::from_task)
    }

    /// Requests a refresh; returns the number to wait for.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn refresh(&self) -> Result<u64, CollectionsError> {
        self.running.request_run(REFRESH).await
    }

    fn names_in_config_order(&self) -> Vec<String> {
        let sources = self.parts.sources.iter();
        let names = sources.map(|it| it.registry.name().to_owned());
        names.chain(self.parts.pushes.registry()).collect()
    }

    /// Whether any registry is configured that can be listed.
    pub(super) fn has_registry(&self) -> bool {
        !self.parts.sources.is_empty()
    }

    /// Loads every version, including those that only instances need. None is parsed yet.
    async fn fetch_versions(&self) -> Result<(), PublishError> {
        let keep = |version_store: &mut Arc<VersionStore>, it: CollectionItem<VersionRecord>| {
            version_store.keep(&it.id, &version::written(it.value));
        };
        let version_store = self.parts.version_store.clone();
        self.collections.fold(VERSIONS, version_store, keep).await?;
        Ok(())
    }

    async fn catch_up_or_log(&self, freshness: Freshness) {
        if let Err(error) = self.catch_up_with(freshness).await {
            tracing::warn!(%error, "what registries have cannot be offered now, what was offered stays");
        }
    }

    async fn catch_up_with(&self, freshness: Freshness) -> Result<(), PublishError> {
        let mut published = self.published.lock().await;
        let now = generation(&self.collections).await?;
        let pushed = pushes(&self.collections).await?.map(|it| it.revision);
        let same = now.as_ref().map(|it| it.revision) == published.generation
            && pushed == published.pushes;
        let whole = now.as_ref().is_none_or(|it| !it.value.dirty);
        let reads = match freshness {
            Freshness::Complete => !same && whole,
            Freshness::AtLeastServed => {
                let served = now.as_ref().map(|it| it.value.number) == published.number;
                !same && (whole || !served || pushed != published.pushes)
            }
            Freshness::Immediate => !same || !whole,
        };
        if reads && self.read_again(&mut published).await? {
            self.publish(&mut published).await?;
        }
        Ok(())
    }

    /// Reads changed records and builds their offerings. Returns whether there is anything to publish.
    async fn read_again(&self, published: &mut PublishedCatalog) -> Result<bool, PublishError> {
        let now = generation(&self.collections).await?;
        let specs = now.as_ref().and_then(|it| it.value.whole());
        let pushed = pushes(&self.collections).await?.map(|it| it.revision);
        if specs.is_some() && specs == published.specs && pushed == published.pushes {
            // Most refreshes change nothing, and there may be thousands of specs.
            let registries = registries(&self.collections).await?;
            self.write_read().read_again(registries);
            self.measure();
            published.number = now.as_ref().map(|it| it.value.number);
            published.generation = now.map(|it| it.revision);
            return Ok(false);
        }
        let records = RegistryRecords::read(&self.collections).await?;
        let (now, pushed) = (records.generation.clone(), records.pushes);
        let order = self.names_in_config_order();
        let mut made = std::mem::take(&mut published.made);
        let sorted = run_blocking(move || {
            let mut sorted = diff(records, &order);
            let gone = keep_unchanged(&mut made, &mut sorted.offered);
            (sorted, made, gone)
        });
        let (sorted, made, gone) = match sorted.await {
            Ok(sorted) => sorted,
            Err(error) => {
                published.forget();
                return Err(error.into());
            }
        };
        published.made = made;
        let CatalogDiff {
            offered: changed,
            mut faults,
            read,
        } = sorted;
        *self.write_read() = read;
        self.measure();
        let mut differs = !changed.is_empty() || gone;
        if let Err(fault) = self.make_all(published, changed, &mut faults).await {
            published.forget();
            return Err(fault);
        }
        differs |= published.faults != faults;
        published.faults = faults;
        published.generation = now.as_ref().map(|it| it.revision);
        published.number = now.as_ref().map(|it| it.value.number);
        published.specs = now.and_then(|it| it.value.whole());
        published.pushes = pushed;
        Ok(differs)
    }

    fn write_read(&self) -> std::sync::RwLockWriteGuard<'_, RegistrySnapshot> {
        self.read.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn measure(&self) {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        for (registry, its) in &read.registries.0 {
            let counts = read.counts.get(registry).copied().unwrap_or_default();
            metrics::standing(registry, its, counts);
        }
    }

    /// Builds the offerings of changed specs in slices, so that requests are not delayed.
    async fn make_all(
        &self,
        published: &mut PublishedCatalog,
        changed: BTreeMap<Arc<SpecName>, WantedVersion>,
        faults: &mut Vec<String>,
    ) -> Result<(), PublishError> {
        self.fetch(changed.values().map(|it| it.version.as_str()))
            .await?;
        let many = changed.len() >= READ_ALL_FROM;
        let mut changed = changed.into_iter().peekable();
        while changed.peek().is_some() {
            let some: Vec<(Arc<SpecName>, WantedVersion)> =
                changed.by_ref().take(MADE_AT_ONCE).collect();
            let (parts, running) = (self.parts.clone(), self.running.clone());
            let made = run_blocking(move || {
                let some = some.into_iter();
                let make = |(name, it): (Arc<SpecName>, WantedVersion)| {
                    let made = make(&parts, &running, &name, &it.version);
                    (made, name, it.revision)
                };
                some.map(make)
                    .collect::<Vec<(MadeOffering, Arc<SpecName>, Revision)>>()
            });
            for (outcome, name, revision) in made.await? {
                match outcome {
                    Ok((image, offering)) => {
                        published
                            .made
                            .insert(name.clone(), (revision, Arc::new(image)));
                        published.fresh.insert(name, offering);
                    }
                    Err(why) => faults.push(format!("{name}: {why}")),
                }
            }
        }
        if many {
            // A map that is collected at once takes half the memory of one that grew.
            published.made = std::mem::take(&mut published.made).into_iter().collect();
        }
        Ok(())
    }

    /// Loads these versions into the version store, as far as they are stored.
    async fn fetch(&self, versions: impl Iterator<Item = &str>) -> Result<(), PublishError> {
        let version_store = &self.parts.version_store;
        let missing: Vec<&str> = versions.filter(|it| !version_store.keeps(it)).collect();
        if missing.len() >= READ_ALL_FROM {
            return self.fetch_versions().await;
        }
        for digest in missing {
            let found = self
                .collections
                .get::<VersionRecord>(VERSIONS, digest)
                .await?;
            if let Some(found) = found {
                version_store.keep(digest, &version::written(found.value));
            }
        }
        Ok(())
    }

    /// Publishes the whole catalog.
    async fn publish(&self, published: &mut PublishedCatalog) -> Result<(), PublishError> {
        match published.publish(&self.running).await {
            Ok(snapshot) => {
                self.parts.service.offer(Arc::new(snapshot));
                Ok(())
            }
            Err(error) => {
                // The published catalog stays, and everything is rebuilt the next time.
                published.forget();
                Err(PublishError::Replace(Box::new(error)))
            }
        }
    }
}

/// The offering that was built, or why not.
type MadeOffering = Result<(OfferedImage, Offering), String>;

/// When records are read while a refresh is writing them.
#[derive(Clone, Copy)]
enum Freshness {
    /// When the refresh is complete.
    Complete,
    /// When they contain the result of a complete refresh. While one is still writing, its partial result is not
    /// read again and again.
    AtLeastServed,
    /// Now: each record is valid by itself.
    Immediate,
}

#[async_trait]
impl VersionLookup for CatalogPublisher {
    async fn find(&self, digest: &str) -> Result<Option<Arc<Bundle>>, String> {
        let fetched = self.fetch([digest].into_iter()).await;
        fetched.map_err(|fault| fault.to_string())?;
        Ok(self.parts.version_store.kept(digest))
    }
}

#[async_trait]
impl CatalogSource for CatalogPublisher {
    async fn catch_up(&self) {
        self.catch_up_or_log(Freshness::Immediate).await;
    }

    async fn plan_availability(&self, service_id: &str, plan_id: &str) -> PlanAvailability {
        let refreshing = match self.running.task_status(REFRESH).await {
            // Before the first refresh is complete, the offerings are unknown.
            Ok(status) => {
                let waits = status.requested > status.served;
                status.running_since.is_some() || status.ended.is_none() || waits
            }
            Err(_) => false,
        };
        // A withdrawal by the last refresh may not have been read here yet.
        if !refreshing {
            self.catch_up().await;
        }
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let sentence = read.withdrawn.sentence(service_id, plan_id);
        PlanAvailability {
            withdrawn: sentence.map(str::to_owned),
            refreshing,
        }
    }
}
