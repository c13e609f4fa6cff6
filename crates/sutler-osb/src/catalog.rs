//! The catalog: services and plans of a broker, checked once and then only looked up.
//!
//! [`CatalogSpec`] is the raw form, in which everything may be missing; [`Catalog::load`] turns it
//! into a [`Catalog`] or reports every fault at once. Reading YAML, icon files and compiling the schemas
//! is done in `sutler-broker`. Read `catalog/load.rs` for the rules, `catalog/plan.rs` for defaults.

mod faults;
mod load;
mod offering;
mod plan;
mod schema;
mod spec;

pub use faults::{CatalogFault, CatalogFaults};
pub use offering::{DashboardClient, Requires, ServiceOffering};
pub use plan::{PinnedPlan, Plan, PlanRef};
pub use schema::{BindingSchemas, InstanceSchemas, OperationSchema, SCHEMA_BYTES_MAX, Schemas};
pub use spec::{CatalogSpec, DashboardClientSpec, PlanSpec, ServiceSpec};

use crate::ids::{PlanId, ServiceId};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashMap;

/// Service offerings and plans that obey every rule of the specification.
///
/// Serialises to the body of `GET /v2/catalog` (B-050).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "CatalogSpec")]
pub struct Catalog {
    services: Vec<ServiceOffering>,
    warnings: Vec<CatalogFault>,
    service_at: HashMap<ServiceId, usize>,
    plan_at: HashMap<PlanId, (usize, usize)>,
}

impl Catalog {
    /// Checks B-050 to B-079.
    ///
    /// # Errors
    /// All faults, each with its path. Recommendations that are not followed do not prevent loading; see
    /// [`Catalog::warnings`].
    pub fn load(services: Vec<ServiceSpec>) -> Result<Self, CatalogFaults> {
        let (services, warnings) = load::check(services)?;
        let mut service_at = HashMap::new();
        let mut plan_at = HashMap::new();
        for (nth_service, service) in services.iter().enumerate() {
            service_at.insert(service.id.clone(), nth_service);
            for (nth_plan, plan) in service.plans.iter().enumerate() {
                plan_at.insert(plan.id.clone(), (nth_service, nth_plan));
            }
        }
        Ok(Self {
            services,
            warnings,
            service_at,
            plan_at,
        })
    }

    /// The offerings, in their original order.
    pub fn services(&self) -> &[ServiceOffering] {
        &self.services
    }

    /// Recommendations of the specification that this catalog does not follow.
    pub fn warnings(&self) -> &[CatalogFault] {
        &self.warnings
    }

    /// The offering with this id.
    pub fn service(&self, id: &ServiceId) -> Option<&ServiceOffering> {
        self.service_at.get(id).map(|&nth| &self.services[nth])
    }

    /// The plan with this id, if it belongs to that offering.
    pub fn plan(&self, service_id: &ServiceId, plan_id: &PlanId) -> Option<PlanRef<'_>> {
        self.plan_by_id(plan_id)
            .filter(|plan| plan.service().id == *service_id)
    }

    /// The plan with this id, of any offering; plan ids are unique in the catalog.
    pub fn plan_by_id(&self, id: &PlanId) -> Option<PlanRef<'_>> {
        let &(nth_service, nth_plan) = self.plan_at.get(id)?;
        let service = &self.services[nth_service];
        Some(PlanRef::new(service, &service.plans[nth_plan]))
    }

    /// Every plan with its offering, in their original order.
    pub fn plans(&self) -> impl Iterator<Item = PlanRef<'_>> {
        self.services
            .iter()
            .flat_map(ServiceOffering::offered_plans)
    }
}

impl PartialEq for Catalog {
    fn eq(&self, other: &Self) -> bool {
        self.services == other.services
    }
}

impl Serialize for Catalog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut catalog = serializer.serialize_struct("Catalog", 1)?;
        catalog.serialize_field("services", &self.services)?;
        catalog.end()
    }
}

impl TryFrom<CatalogSpec> for Catalog {
    type Error = CatalogFaults;
    fn try_from(spec: CatalogSpec) -> Result<Self, CatalogFaults> {
        match spec.services {
            Some(services) => Self::load(services),
            None => Err(CatalogFaults::no_services()),
        }
    }
}
