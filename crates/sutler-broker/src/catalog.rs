//! The current catalog, and the plan copies that instances were created with.
//!
//! The catalog can be replaced at run time. An instance keeps the copy of its plan that it was created with, by
//! the copy's digest, so a plan that disappears is *withdrawn* and its instances stay manageable. One offering:
//! `catalog/offering.rs`; lookup by id: `catalog/index.rs`; bytes of the response: `catalog/body_chunks.rs`;
//! building the next catalog: `catalog/replace.rs`. Rules of a catalog: `sutler-osb`. Its file: `catalog_file.rs`.

mod body_chunks;
mod error;
mod index;
mod offering;
mod replace;
#[cfg(test)]
mod tests;

pub use offering::Offering;
pub use replace::OfferingUpdate;

use crate::catalog_source::{CatalogSourceSlot, PlanAvailability};
use crate::plan_schemas::compile_schemas;
use crate::resources::PLAN;
use crate::service::UntypedService;
use body_chunks::{BodyChunks, ChunkBuffer};
pub(crate) use error::CatalogError;
use index::CatalogIndex;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use sutler_journal::{Key, SealContext, Version};
use sutler_osb::{Catalog, PinnedPlan, PlanId, ServiceId, ServiceSpec};
use sutler_records::{Documents, RecordError};
use sutler_schema::ParameterSchemas;
use sutler_server::ChunkedBody;

/// Maximum plans cached in memory, each with its compiled schemas; a full cache is emptied.
const CACHED_MAX: usize = 1_000;

/// A plan with its digest and its compiled schemas.
#[derive(Debug)]
pub(crate) struct OfferedPlan {
    pub pinned: Arc<PinnedPlan>,
    /// Digest of this copy.
    pub digest: String,
    pub schemas: ParameterSchemas,
}

/// Records that offerings depend on, by service id: a provision expects them unchanged.
pub(crate) type CatalogPreconditions = Vec<(String, (Key, Version))>;

/// One catalog and its response body, immutable.
#[derive(Default)]
pub(crate) struct CatalogSnapshot {
    index: CatalogIndex,
    chunks: BodyChunks,
    pub content: ChunkedBody,
    pub etag: String,
    /// Precondition of each offering; empty if no offering has one.
    preconditions: Box<[Option<(Key, Version)>]>,
    cache: Arc<PlanCache>,
}

impl CatalogSnapshot {
    /// A plan *of that service* (B-120).
    pub(crate) fn plan(&self, service: &ServiceId, plan: &PlanId) -> Option<Arc<OfferedPlan>> {
        let (nth, nth_plan) = self.index.plan(plan.as_str())?;
        let entry = self.index.get(nth)?;
        let of_service = Some(entry).filter(|entry| entry.service_id == *service);
        let digest = hex(&of_service?.plans.get(nth_plan)?.digest);
        if let Some(found) = self.cache.get(&digest) {
            return Some(found);
        }
        let pinned = self.pinned(nth, nth_plan)?;
        Some(self.cache.keep(pinned, &digest))
    }

    /// Precondition of an offering, if it has one.
    pub(crate) fn precondition(&self, service: &ServiceId) -> Option<(Key, Version)> {
        let nth = self.index.service(service.as_str())?;
        self.preconditions.get(nth)?.clone()
    }

    /// Whether the offering is in the catalog.
    pub(crate) fn has_service(&self, service: &ServiceId) -> bool {
        self.index.service(service.as_str()).is_some()
    }

    /// Sets the precondition record of each offering.
    fn set_preconditions(&mut self, preconditions: CatalogPreconditions) {
        let mut by_offering = match preconditions.is_empty() {
            true => Vec::new(),
            false => vec![None; self.index.entries().len()],
        };
        for (service, precondition) in preconditions {
            let nth = self.index.service(&service);
            if let Some(place) = nth.and_then(|nth| by_offering.get_mut(nth)) {
                *place = Some(precondition);
            }
        }
        self.preconditions = by_offering.into();
    }

    /// The copy of a plan, parsed from the response body.
    fn pinned(&self, nth: usize, nth_plan: usize) -> Option<PinnedPlan> {
        let entry = self.index.get(nth)?;
        entry.pinned(self.chunks.get(nth)?, nth_plan)
    }
}

/// Recently used plans, by digest.
#[derive(Default)]
struct PlanCache(Mutex<HashMap<String, Arc<OfferedPlan>>>);

impl PlanCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<OfferedPlan>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, digest: &str) -> Option<Arc<OfferedPlan>> {
        self.lock().get(digest).cloned()
    }

    fn keep(&self, pinned: PinnedPlan, digest: &str) -> Arc<OfferedPlan> {
        // Schemas were compiled when the plan was offered; if they no longer compile, the copy is used without them.
        let schemas = compile_schemas(&pinned).unwrap_or_default();
        let plan = Arc::new(OfferedPlan {
            pinned: Arc::new(pinned),
            digest: digest.to_owned(),
            schemas,
        });
        let mut cached = self.lock();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(digest.to_owned(), plan.clone());
        plan
    }
}

/// Key of the service for offerings without their own; no offering has an empty name.
pub(crate) const OTHERS: &str = "";

/// All services by offering name or id.
pub(crate) type Services = HashMap<String, Arc<dyn UntypedService>>;

/// The current catalog, its services, and cached plans.
pub(crate) struct LiveCatalog {
    services: Services,
    buffer: ChunkBuffer,
    snapshot: RwLock<Arc<CatalogSnapshot>>,
    cache: Arc<PlanCache>,
    /// Source of the catalog, if there is one.
    pub source: CatalogSourceSlot,
}

impl LiveCatalog {
    /// `with_catalog_source`: a source of the catalog will be set.
    pub(crate) fn new(
        catalog: Catalog,
        services: Services,
        with_catalog_source: bool,
    ) -> Result<Self, CatalogError> {
        let buffer = ChunkBuffer::default();
        let updates = replace::updates_of(&catalog, &services, &buffer)?;
        let cache = Arc::default();
        let snapshot =
            replace::assemble(&CatalogSnapshot::default(), updates, Arc::clone(&cache))?.snapshot;
        let plans = Self {
            services,
            buffer,
            snapshot: RwLock::new(Arc::new(snapshot)),
            cache,
            source: CatalogSourceSlot::new(with_catalog_source),
        };
        Ok(plans)
    }

    /// The current catalog.
    pub(crate) fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.snapshot
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The service behind a plan, by its offering's id or name.
    pub(crate) fn service(&self, plan: &PinnedPlan) -> Option<&Arc<dyn UntypedService>> {
        service_of(&self.services, plan)
    }

    /// The service of a plan by ids, without reading the copy of the plan.
    pub(crate) fn service_named(
        &self,
        service: &ServiceId,
        plan: &PlanId,
    ) -> Option<&Arc<dyn UntypedService>> {
        match self.snapshot().plan(service, plan) {
            Some(offered) => self.service(&offered.pinned),
            None => {
                let own = self.services.get(service.as_str());
                own.or_else(|| self.services.get(OTHERS))
            }
        }
    }

    /// Loads the stored catalog into this process, if there is a catalog source.
    pub(crate) async fn catch_up(&self) {
        if let Some(source) = self.source.get() {
            source.catch_up().await;
        }
    }

    /// Availability of a plan that is not in the current catalog.
    pub(crate) async fn availability(
        &self,
        service: &ServiceId,
        plan: &PlanId,
    ) -> PlanAvailability {
        self.source
            .plan_availability(service.as_str(), plan.as_str())
            .await
    }

    /// Checks one offering for use in a catalog.
    pub(crate) fn check(&self, spec: ServiceSpec) -> Result<Offering, CatalogError> {
        offering::check(spec, &self.services, &self.buffer)
    }

    /// Checks all offerings of a catalog.
    pub(crate) fn updates_of(
        &self,
        catalog: &Catalog,
    ) -> Result<Vec<OfferingUpdate>, CatalogError> {
        replace::updates_of(catalog, &self.services, &self.buffer)
    }

    /// The copy of a plan that an instance was created with, from the cache or the store.
    pub(crate) async fn pinned(
        &self,
        records: &Documents,
        digest: &str,
    ) -> Result<Arc<OfferedPlan>, RecordError> {
        if let Some(found) = self.cache.get(digest) {
            return Ok(found);
        }
        let key = records.key(PLAN, digest);
        let document = records.store.get(&key).await?.ok_or_else(|| {
            sutler_journal::StoreError::new(
                "the copy of an instance's plan is missing in the store",
            )
        })?;
        let (pinned, _) =
            records.open::<PinnedPlan>(SealContext::Document(&key), &document.body)?;
        Ok(self.cache.keep(pinned, digest))
    }
}

fn service_of<'a>(
    services: &'a Services,
    plan: &PinnedPlan,
) -> Option<&'a Arc<dyn UntypedService>> {
    services
        .get(plan.service_id.as_str())
        .or_else(|| services.get(plan.service_name.as_str()))
        .or_else(|| services.get(OTHERS))
}

/// Placeholder for a plan that is not offered yet.
pub(crate) fn plan_to_come() -> Arc<OfferedPlan> {
    let word = || "to-come".to_owned();
    let text = || sutler_osb::NonEmptyText::try_from(word()).expect("it is not empty");
    let pinned = PinnedPlan {
        service_id: ServiceId::try_from(word()).expect("an id"),
        service_name: text(),
        plan_id: PlanId::try_from(word()).expect("an id"),
        plan_name: text(),
        bindable: false,
        plan_updateable: false,
        binding_rotatable: false,
        instances_retrievable: false,
        bindings_retrievable: false,
        allow_context_updates: false,
        requires: Vec::new(),
        maintenance_info: None,
        schemas: None,
        maximum_polling_duration: None,
        origin: None,
    };
    Arc::new(OfferedPlan {
        pinned: Arc::new(pinned),
        digest: String::new(),
        schemas: ParameterSchemas::default(),
    })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.iter().flat_map(digits).collect()
}
