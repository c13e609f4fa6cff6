//! The catalog as it is offered now, and the plans as they were when instances were made.
//!
//! The catalog can be replaced at run time; an instance keeps the copy of its plan that it was made
//! with, under the copy's digest, so a plan that vanishes is *withdrawn* and never makes an instance
//! unmanageable. Rules of a catalog: `sutler-osb`. Its file: `catalog_file.rs`.

use crate::broker::BuildError;
use crate::keeper::{Kept as Keeping, Standing};
use crate::lifecycle::{Asynchrony, Verb};
use crate::records::{PLAN, RecordError, Records};
use crate::schema::ParameterSchemas;
use crate::service::UntypedService;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use sutler_journal::{Commit, CommitError, Key, Place, Version};
use sutler_osb::{Catalog, CatalogSpec, PinnedPlan, PlanId, ServiceId};

/// Plans kept in memory; beyond that the cache starts anew.
const CACHED_MAX: usize = 10_000;

/// A plan with everything needed to serve it.
#[derive(Debug)]
pub(crate) struct OfferedPlan {
    pub pinned: Arc<PinnedPlan>,
    /// Names this very copy.
    pub digest: String,
    pub schemas: ParameterSchemas,
}

/// What offerings stand on, by the service's id: a provision expects it unchanged.
pub(crate) type Footings = HashMap<String, (Key, Version)>;

/// The catalog and its answer, made once.
pub(crate) struct Offer {
    plans: HashMap<PlanId, Arc<OfferedPlan>>,
    pub body: Bytes,
    pub etag: String,
    footings: Footings,
}

impl Offer {
    /// A plan *of that service* (B-120).
    pub(crate) fn plan(&self, service: &ServiceId, plan: &PlanId) -> Option<&Arc<OfferedPlan>> {
        self.plans
            .get(plan)
            .filter(|offered| offered.pinned.service_id == *service)
    }

    /// What the offering stands on, if on anything.
    pub(crate) fn footing(&self, service: &ServiceId) -> Option<(Key, Version)> {
        self.footings.get(service.as_str()).cloned()
    }

    /// Whether the offering is there; only asked when something else is amiss.
    pub(crate) fn has_service(&self, service: &ServiceId) -> bool {
        let mut plans = self.plans.values();
        plans.any(|offered| offered.pinned.service_id == *service)
    }
}

/// The name of the service of every offering that has none of its own; no offering's name is empty.
pub(crate) const OTHERS: &str = "";

/// All services by offering name or id.
pub(crate) type Services = HashMap<String, Arc<dyn UntypedService>>;

/// The plans, offered and pinned.
pub(crate) struct Plans {
    services: Services,
    offer: RwLock<Arc<Offer>>,
    pinned: Mutex<HashMap<String, Arc<OfferedPlan>>>,
    /// Who keeps the catalog, where somebody does.
    pub keeper: Keeping,
}

impl Plans {
    /// `awaits_keeper`: somebody will keep the catalog.
    pub(crate) fn new(
        catalog: Catalog,
        services: Services,
        awaits_keeper: bool,
    ) -> Result<Self, BuildError> {
        let offer = prepare(catalog, &services)?;
        let plans = Self {
            services,
            offer: RwLock::new(Arc::new(offer)),
            pinned: Mutex::default(),
            keeper: Keeping::new(awaits_keeper),
        };
        Ok(plans)
    }

    /// The present offer.
    pub(crate) fn offer(&self) -> Arc<Offer> {
        self.offer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The service behind a plan, by its offering's id or name.
    pub(crate) fn service(&self, plan: &PinnedPlan) -> Option<&Arc<dyn UntypedService>> {
        service_of(&self.services, plan)
    }

    /// The service of a plan by ids, as far as it can be told without the copy of it.
    pub(crate) fn service_named(
        &self,
        service: &ServiceId,
        plan: &PlanId,
    ) -> Option<&Arc<dyn UntypedService>> {
        match self.offer().plan(service, plan) {
            Some(offered) => self.service(&offered.pinned),
            None => {
                let own = self.services.get(service.as_str());
                own.or_else(|| self.services.get(OTHERS))
            }
        }
    }

    /// Has this process offer what is written down now, where somebody keeps the catalog.
    pub(crate) async fn catch_up(&self) {
        if let Some(keeper) = self.keeper.get() {
            keeper.catch_up().await;
        }
    }

    /// What is known of a plan that is not offered here.
    pub(crate) async fn standing(&self, service: &ServiceId, plan: &PlanId) -> Standing {
        self.keeper.standing(service.as_str(), plan.as_str()).await
    }

    /// Replaces the whole catalog; copies of its plans are written before it is shown.
    pub(crate) async fn replace<'a>(
        &self,
        shelves: impl Iterator<Item = &'a Records>,
        catalog: Catalog,
        footings: Footings,
    ) -> Result<(), BuildError> {
        let mut offer = Arc::new(prepare(catalog, &self.services)?);
        if let Some(offer) = Arc::get_mut(&mut offer) {
            offer.footings = footings;
        }
        for records in shelves {
            self.keep_copies(records, &offer).await?;
        }
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = offer;
        Ok(())
    }

    /// Writes the copies of all plans now offered.
    pub(crate) async fn keep_copies(
        &self,
        records: &Records,
        offer: &Offer,
    ) -> Result<(), BuildError> {
        for plan in offer.plans.values() {
            let key = records.key(PLAN, &plan.digest);
            let known = records
                .store
                .get(&key)
                .await
                .map_err(|e| BuildError::Store(e.into()))?;
            if known.is_none() {
                let body = records.seal(Place::Document(&key), plan.pinned.as_ref());
                let commit = Commit::new().insert(key, Vec::new(), body);
                match records.store.commit(&commit).await {
                    // Another replica was first with the very same copy.
                    Ok(()) | Err(CommitError::Stale(_)) => {}
                    Err(error) => return Err(BuildError::Store(error.into())),
                }
            }
            self.cache(plan.clone());
        }
        Ok(())
    }

    /// The copy of a plan that an instance was made with.
    pub(crate) async fn pinned(
        &self,
        records: &Records,
        digest: &str,
    ) -> Result<Arc<OfferedPlan>, RecordError> {
        if let Some(found) = self.cached().get(digest) {
            return Ok(found.clone());
        }
        let key = records.key(PLAN, digest);
        let document = records.store.get(&key).await?.ok_or_else(|| {
            sutler_journal::StoreError::new(
                "the copy of an instance's plan is missing in the store",
            )
        })?;
        let (pinned, _) = records.open::<PinnedPlan>(Place::Document(&key), &document.body)?;
        let schemas = ParameterSchemas::compile(&pinned).unwrap_or_default();
        let plan = Arc::new(OfferedPlan {
            pinned: Arc::new(pinned),
            digest: digest.to_owned(),
            schemas,
        });
        self.cache(plan.clone());
        Ok(plan)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<OfferedPlan>>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self, plan: Arc<OfferedPlan>) {
        let mut cached = self.cached();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(plan.digest.clone(), plan);
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

/// Stands in for a plan that is not known yet.
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

/// Checks the catalog against the services, adds derived schemas, and makes its answer.
fn prepare(catalog: Catalog, services: &Services) -> Result<Offer, BuildError> {
    let catalog = with_derived_schemas(&catalog, services)?;
    let mut plans = HashMap::new();
    for plan in catalog.plans() {
        let pinned = plan.pin();
        let name = pinned.service_name.as_str().to_owned();
        let service = service_of(services, &pinned).ok_or(BuildError::NoService(name))?;
        let bind = service.policy(Verb::Bind, &pinned).asynchrony;
        if pinned.bindable && bind != Asynchrony::Never && !pinned.bindings_retrievable {
            // B-113: whoever learns of an asynchronous binding by polling must be able to fetch it.
            if bind == Asynchrony::Required {
                return Err(BuildError::AsyncBindNotRetrievable(
                    pinned.service_name.as_str().to_owned(),
                ));
            }
        }
        let schemas = ParameterSchemas::compile(&pinned)?;
        let digest = digest_of(&pinned);
        let offered = OfferedPlan {
            pinned: Arc::new(pinned),
            digest,
            schemas,
        };
        plans.insert(offered.pinned.plan_id.clone(), Arc::new(offered));
    }
    let body = serde_json::to_vec(&catalog).map_err(BuildError::Form)?;
    let etag = format!("\"{}\"", hex(&Sha256::digest(&body)[..16]));
    Ok(Offer {
        plans,
        body: body.into(),
        etag,
        footings: Footings::new(),
    })
}

/// Publishes the schemas of typed services where the catalog says nothing of its own.
fn with_derived_schemas(catalog: &Catalog, services: &Services) -> Result<Catalog, BuildError> {
    let mut json = serde_json::to_value(catalog).map_err(BuildError::Form)?;
    let offerings = json.get_mut("services").and_then(Value::as_array_mut);
    for offering in offerings.into_iter().flatten() {
        let named = |field: &str| offering.get(field).and_then(Value::as_str);
        let found = [named("id"), named("name"), Some(OTHERS)]
            .into_iter()
            .flatten()
            .find_map(|n| services.get(n));
        let Some(derived) = found.map(|service| service.schemas()) else {
            continue;
        };
        for plan in offering
            .get_mut("plans")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            add_schema(
                plan,
                ["service_instance", "create"],
                derived.provision.as_ref(),
            );
            add_schema(
                plan,
                ["service_instance", "update"],
                derived.update.as_ref(),
            );
            add_schema(plan, ["service_binding", "create"], derived.bind.as_ref());
        }
    }
    let mut spec: CatalogSpec = serde_json::from_value(json).map_err(BuildError::Form)?;
    keep_origins(&mut spec, catalog);
    Catalog::try_from(spec).map_err(BuildError::Catalog)
}

/// Where plans come from is no part of the catalog's JSON, so that no platform is shown it.
fn keep_origins(spec: &mut CatalogSpec, catalog: &Catalog) {
    let origins: HashMap<&str, &String> = catalog
        .plans()
        .filter_map(|it| {
            it.plan()
                .origin
                .as_ref()
                .map(|o| (it.plan().id.as_str(), o))
        })
        .collect();
    let services = spec.services.iter_mut().flatten();
    for plan in services.flat_map(|it| it.plans.iter_mut().flatten()) {
        let id = plan.id.as_deref().unwrap_or_default();
        plan.origin = origins.get(id).map(|&origin| origin.clone());
    }
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

fn digest_of(plan: &PinnedPlan) -> String {
    let bytes = serde_json::to_vec(plan).expect("a pinned plan serialises");
    hex(&Sha256::digest(bytes)[..16])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
