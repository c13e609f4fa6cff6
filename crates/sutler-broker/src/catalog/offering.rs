//! One checked offering in a compact form: ten thousand of them fit into memory.
//!
//! It is stored as its part of the catalog's body; everything but ids is parsed from there
//! (`OfferingEntry::pinned`). Position of that part: `catalog/body_chunks.rs`.

use super::body_chunks::ChunkBuffer;
use super::error::CatalogError;
use super::{OTHERS, Services, service_of};
use crate::lifecycle::{Asynchrony, Verb};
use crate::plan_schemas::compile_schemas;
use crate::service::DerivedSchemas;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use sutler_osb::{Catalog, PinnedPlan, PlanId, ServiceId, ServiceOffering, ServiceSpec};

/// A checked offering. It may hold the secret of a dashboard, so `Debug` prints its id only.
#[derive(Clone)]
pub struct Offering {
    pub(super) entry: Arc<OfferingEntry>,
    /// Its part of the catalog's body.
    pub(super) json: Bytes,
}

impl Offering {
    /// Its id.
    #[must_use]
    pub fn service_id(&self) -> &str {
        self.entry.service_id.as_str()
    }
}

impl fmt::Debug for Offering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offering({} …)", self.service_id())
    }
}

/// Data of an offering that is available without parsing it.
#[derive(Debug)]
pub(super) struct OfferingEntry {
    pub service_id: ServiceId,
    pub name: String,
    /// Digest of its part of the catalog's body.
    pub digest: [u8; 32],
    pub plans: Box<[PlanCopy]>,
}

/// A plan, and the digest of the copy that instances keep.
#[derive(Debug)]
pub(super) struct PlanCopy {
    pub id: PlanId,
    /// Digest of this copy; names are its hex form.
    pub digest: [u8; 16],
    /// Origin of the plan; not part of the JSON, so platforms never see it.
    pub origin: Option<String>,
}

impl OfferingEntry {
    /// The copy of one of its plans. `json`: its part of the catalog's body.
    pub(super) fn pinned(&self, json: &[u8], nth: usize) -> Option<PinnedPlan> {
        let mut service: ServiceOffering = serde_json::from_slice(json).ok()?;
        let plan = service.plans.get_mut(nth)?;
        plan.origin.clone_from(&self.plans.get(nth)?.origin);
        service.offered_plans().nth(nth).map(|it| it.pin())
    }
}

/// Checks a raw offering.
pub(super) fn check(
    spec: ServiceSpec,
    services: &Services,
    buffer: &ChunkBuffer,
) -> Result<Offering, CatalogError> {
    let catalog = Catalog::load(vec![spec]).map_err(CatalogError::Catalog)?;
    let mut offerings = offerings(&catalog, services, buffer)?;
    offerings
        .pop()
        .ok_or_else(|| CatalogError::NotOffered(String::new()))
}

/// All offerings of a catalog.
pub(super) fn offerings(
    catalog: &Catalog,
    services: &Services,
    buffer: &ChunkBuffer,
) -> Result<Vec<Offering>, CatalogError> {
    let all = catalog.services().iter();
    all.map(|service| prepare(service, services, buffer))
        .collect()
}

/// Checks an offering against its service, and adds derived schemas.
fn prepare(
    service: &ServiceOffering,
    services: &Services,
    buffer: &ChunkBuffer,
) -> Result<Offering, CatalogError> {
    let named = [service.id.as_str(), service.name.as_str(), OTHERS];
    let by = named.iter().find_map(|name| services.get(*name));
    let by = by.ok_or_else(|| CatalogError::NoService(service.name.as_str().to_owned()))?;
    match by.schemas() {
        derived if derived == DerivedSchemas::default() => prepared(service, services, buffer),
        derived => prepared(&with_derived_schemas(service, &derived)?, services, buffer),
    }
}

fn prepared(
    service: &ServiceOffering,
    services: &Services,
    buffer: &ChunkBuffer,
) -> Result<Offering, CatalogError> {
    let mut plans = Vec::with_capacity(service.plans.len());
    for plan in service.offered_plans() {
        let pinned = plan.pin();
        let name = pinned.service_name.as_str();
        let by = service_of(services, &pinned);
        let by = by.ok_or_else(|| CatalogError::NoService(name.to_owned()))?;
        let bind = by.policy(Verb::Bind, &pinned).asynchrony;
        // B-113: a platform that polls an asynchronous binding must be able to fetch it.
        if pinned.bindable && bind == Asynchrony::Required && !pinned.bindings_retrievable {
            return Err(CatalogError::AsyncBindNotRetrievable(name.to_owned()));
        }
        compile_schemas(&pinned)?;
        plans.push(PlanCopy {
            digest: digest_of(&pinned),
            id: pinned.plan_id,
            origin: pinned.origin,
        });
    }
    let json = serde_json::to_vec(service).map_err(CatalogError::Form)?;
    // It is parsed again when it is used: JSON that cannot be parsed, e.g. nested too deeply, is not offered.
    serde_json::from_slice::<ServiceOffering>(&json).map_err(CatalogError::Form)?;
    let entry = OfferingEntry {
        service_id: service.id.clone(),
        name: service.name.as_str().to_owned(),
        digest: Sha256::digest(&json).into(),
        plans: plans.into(),
    };
    Ok(Offering {
        entry: Arc::new(entry),
        json: buffer.write(&json),
    })
}

/// Adds the schemas of a typed service where the catalog has none.
fn with_derived_schemas(
    service: &ServiceOffering,
    derived: &DerivedSchemas,
) -> Result<ServiceOffering, CatalogError> {
    let mut json = serde_json::to_value(service).map_err(CatalogError::Form)?;
    let plans = json.get_mut("plans").and_then(Value::as_array_mut);
    for plan in plans.into_iter().flatten() {
        let provision = derived.provision.as_ref();
        add_schema(plan, ["service_instance", "create"], provision);
        let update = derived.update.as_ref();
        add_schema(plan, ["service_instance", "update"], update);
        add_schema(plan, ["service_binding", "create"], derived.bind.as_ref());
    }
    let mut spec: ServiceSpec = serde_json::from_value(json).map_err(CatalogError::Form)?;
    let plans = spec.plans.iter_mut().flatten();
    for (plan, was) in plans.zip(&service.plans) {
        plan.origin.clone_from(&was.origin);
    }
    let catalog = Catalog::load(vec![spec]).map_err(CatalogError::Catalog)?;
    let checked = catalog.services().first().cloned();
    checked.ok_or_else(|| CatalogError::NotOffered(service.name.as_str().to_owned()))
}

fn add_schema(plan: &mut Value, path: [&str; 2], schema: Option<&Value>) {
    let Some(schema) = schema else { return };
    let mut at = plan;
    for step in ["schemas", path[0], path[1]] {
        let Some(object) = at.as_object_mut() else {
            return;
        };
        at = object.entry(step).or_insert_with(|| json!({}));
    }
    if let Some(object) = at.as_object_mut() {
        object.entry("parameters").or_insert_with(|| schema.clone());
    }
}

fn digest_of(plan: &PinnedPlan) -> [u8; 16] {
    let bytes = serde_json::to_vec(plan).expect("a pinned plan serialises");
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(bytes)[..16]);
    digest
}
