//! Names of the offering and the plans of an instance, as far as the catalog has them; otherwise their ids.

use crate::catalog::{KnownCatalog, PlanKey};
use sutler_osb::{PlanId, ServiceId};

/// The names of one offering.
#[derive(Clone, Copy)]
pub(crate) struct CatalogNames<'a> {
    catalog: Option<&'a KnownCatalog>,
    service: &'a ServiceId,
}

impl<'a> CatalogNames<'a> {
    /// Names of an offering in this catalog; `None`: the broker is not registered any more.
    pub(crate) fn of(catalog: Option<&'a KnownCatalog>, service: &'a ServiceId) -> Self {
        Self { catalog, service }
    }

    /// The name of the offering, if the catalog has it.
    pub(super) fn known_class(&self) -> Option<&'a str> {
        let known = self.catalog?.services().get(self.service)?;
        Some(known.name())
    }

    /// The name of the offering, or its id.
    pub(super) fn class(&self) -> String {
        self.known_class()
            .unwrap_or(self.service.as_str())
            .to_owned()
    }

    /// The name of a plan, or its id.
    pub(super) fn plan(&self, plan: &PlanId) -> String {
        let key = PlanKey {
            service_id: self.service.clone(),
            plan_id: plan.clone(),
        };
        let known = self.catalog.and_then(|it| it.plans().get(&key));
        known.map_or(plan.as_str(), |it| it.name()).to_owned()
    }
}
