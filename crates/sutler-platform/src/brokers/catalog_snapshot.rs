//! A broker's catalog at one moment. Its schemas are compiled when they are needed first, and kept in `schema_cache.rs`.

use super::schema_cache::{SchemaCache, SchemaKey};
use crate::catalog::{KnownCatalog, PlanKey};
use crate::context::fresh_uuid;
use crate::platform_records::PlatformRecords;
use crate::records::{CatalogRecord, SERVICE_OFFERING, SERVICE_PLAN};
use crate::spec::Spec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::{List, Version};
use sutler_osb::{PinnedPlan, PlanId, ServiceId};
use sutler_records::RecordError;
use sutler_schema::ParameterSchemas;
use uuid::Uuid;

/// Offerings and plans that are read at once.
const ITEMS_PER_READ: usize = 500;

/// A catalog.
#[derive(Default)]
pub struct CatalogSnapshot {
    known: KnownCatalog,
    plan_versions: BTreeMap<PlanKey, Version>,
    has_newer_items: bool,
    bytes: usize,
    /// Plans with their effective values, as far as they were needed.
    pinned: Mutex<BTreeMap<PlanKey, Arc<PinnedPlan>>>,
    /// What tells its schemas from those of other catalogs.
    id: Uuid,
    schemas: Arc<SchemaCache>,
}

impl CatalogSnapshot {
    /// A catalog that is not stored.
    pub fn new(known: KnownCatalog) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// A catalog whose items were stored in so many bytes.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes: usize) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// Reads the stored items of a broker.
    pub(super) async fn read(
        records: &PlatformRecords,
        broker: Uuid,
        schemas: &Arc<SchemaCache>,
    ) -> Result<Self, RecordError> {
        let (mut services, mut plans) = (Vec::new(), Vec::new());
        let mut snapshot = Self {
            id: fresh_uuid(),
            schemas: schemas.clone(),
            ..Self::default()
        };
        for kind in [SERVICE_OFFERING, SERVICE_PLAN] {
            let list = List::Prefix(records.keys.all_below(kind, &broker.to_string()));
            let mut after = None;
            loop {
                let store = &records.documents.store;
                let page = store.list(&list, after.as_ref(), ITEMS_PER_READ).await?;
                for document in &page.documents {
                    snapshot.bytes += document.body.len();
                    match records.open(document)? {
                        None => snapshot.has_newer_items = true,
                        Some(CatalogRecord::Service(service)) => services.push(service),
                        Some(CatalogRecord::Plan(plan)) => {
                            let versions = &mut snapshot.plan_versions;
                            versions.insert(plan.key(), document.version);
                            plans.push(plan);
                        }
                    }
                }
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        snapshot.known = KnownCatalog::new(services, plans);
        Ok(snapshot)
    }

    /// All items, removed ones included.
    pub fn known(&self) -> &KnownCatalog {
        &self.known
    }

    /// The version of the document of a plan: a commit that relies on the plan expects it unchanged.
    pub fn plan_version(&self, plan: &PlanKey) -> Option<Version> {
        self.plan_versions.get(plan).copied()
    }

    /// Whether a newer version of the platform wrote some of its items.
    pub(super) fn has_newer_items(&self) -> bool {
        self.has_newer_items
    }

    /// Bytes of its items as they are stored. In memory they take a few times as much.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A plan with its effective values, removed or not.
    pub fn plan(&self, service: &ServiceId, plan: &PlanId) -> Option<Arc<PinnedPlan>> {
        let key = plan_key(service, plan);
        let kept = || self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().get(&key) {
            return Some(found.clone());
        }
        let (offering, plan) = self.known.plan(&key)?;
        let pinned = Arc::new(offering.pinned(plan)?);
        kept().insert(key, pinned.clone());
        Some(pinned)
    }

    /// The compiled schemas of a plan. If they are not in the cache, they are compiled here: see
    /// [`CatalogSnapshot::prepare_schemas`].
    pub fn schemas(&self, service: &ServiceId, plan: &PlanId) -> Option<Arc<ParameterSchemas>> {
        let pinned = self.plan(service, plan)?;
        Some(self.schemas.get(&self.schema_key(service, plan), &pinned))
    }

    /// Compiles the schemas of a plan outside of the threads that serve requests.
    pub async fn prepare_schemas(&self, service: &ServiceId, plan: &PlanId) {
        if let Some(pinned) = self.plan(service, plan) {
            let key = self.schema_key(service, plan);
            self.schemas.prepare(key, pinned).await;
        }
    }

    fn schema_key(&self, service: &ServiceId, plan: &PlanId) -> SchemaKey {
        (self.id, plan_key(service, plan))
    }

    /// Whether the whole specification fits the schema of its plan for provisions, which describes all parameters. With
    /// parameters from secrets that is not known before the request is prepared.
    pub fn fits(&self, service: &ServiceId, spec: &Spec) -> bool {
        let schemas = self.schemas(service, &spec.plan);
        let fits = |schemas: Arc<ParameterSchemas>| {
            schemas.check_provision(spec.parameters.as_map()).is_ok()
        };
        !spec.parameter_sources.is_empty() || schemas.is_none_or(fits)
    }
}

fn plan_key(service: &ServiceId, plan: &PlanId) -> PlanKey {
    PlanKey {
        service_id: service.clone(),
        plan_id: plan.clone(),
    }
}
