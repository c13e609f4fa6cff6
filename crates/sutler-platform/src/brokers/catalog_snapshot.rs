//! A broker's catalog at one moment, with compiled schemas. Schemas are compiled when they are needed first.

use crate::catalog::{KnownCatalog, PlanKey};
use crate::preflight::compile_schemas;
use crate::spec::Spec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use sutler_osb::{PinnedPlan, PlanId, ServiceId};
use sutler_schema::ParameterSchemas;

/// A plan with its effective values and its schemas.
#[derive(Clone)]
struct CompiledPlan {
    plan: Arc<PinnedPlan>,
    schemas: Arc<ParameterSchemas>,
}

/// A catalog.
pub struct CatalogSnapshot {
    known: KnownCatalog,
    compiled: Mutex<BTreeMap<PlanKey, CompiledPlan>>,
}

impl CatalogSnapshot {
    /// A catalog as it was read.
    pub fn new(known: KnownCatalog) -> Self {
        Self {
            known,
            compiled: Mutex::default(),
        }
    }

    /// All items, removed ones included.
    pub fn known(&self) -> &KnownCatalog {
        &self.known
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
