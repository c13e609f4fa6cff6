//! A broker's catalog at one moment, with compiled schemas. Schemas are compiled when they are needed first.

use crate::catalog::{KnownCatalog, PlanKey};
use crate::platform_records::PlatformRecords;
use crate::preflight::compile_schemas;
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

/// A plan with its effective values and its schemas.
#[derive(Clone)]
struct CompiledPlan {
    plan: Arc<PinnedPlan>,
    schemas: Arc<ParameterSchemas>,
}

/// A catalog.
#[derive(Default)]
pub struct CatalogSnapshot {
    known: KnownCatalog,
    plan_versions: BTreeMap<PlanKey, Version>,
    has_newer_items: bool,
    bytes: usize,
    compiled: Mutex<BTreeMap<PlanKey, CompiledPlan>>,
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
    pub(super) async fn read(records: &PlatformRecords, broker: Uuid) -> Result<Self, RecordError> {
        let (mut services, mut plans) = (Vec::new(), Vec::new());
        let mut snapshot = Self::default();
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
        self.compiled(service, plan).map(|it| it.plan)
    }

    /// The compiled schemas of a plan.
    pub fn schemas(&self, service: &ServiceId, plan: &PlanId) -> Option<Arc<ParameterSchemas>> {
        self.compiled(service, plan).map(|it| it.schemas)
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

    fn compiled(&self, service: &ServiceId, plan: &PlanId) -> Option<CompiledPlan> {
        let key = PlanKey {
            service_id: service.clone(),
            plan_id: plan.clone(),
        };
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = compiled.get(&key) {
            return Some(found.clone());
        }
        let (offering, plan) = self.known.plan(&key)?;
        let pinned = offering.pinned(plan)?;
        let (schemas, _) = compile_schemas(&pinned);
        let found = CompiledPlan {
            plan: Arc::new(pinned),
            schemas: Arc::new(schemas),
        };
        compiled.insert(key, found.clone());
        Some(found)
    }
}
