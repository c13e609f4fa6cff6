//! Which offerings and plans of a broker a namespace sees, and which of them it may provision.
//!
//! Three things decide: the scope of the broker, its restrictions (`restrictions.rs`) and its access rules
//! (`access_rules.rs`). A plan that a namespace may not see is answered as one that does not exist. Permissions of
//! persons are not decided here.

use super::access_rules::AccessRules;
use super::offered_item::{KnownCatalog, OfferedPlan, OfferedService, PlanKey};
use super::restrictions::CatalogRestrictions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Namespaces that a broker serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BrokerScope {
    /// All of them.
    AllNamespaces,
    /// The one in which it is registered.
    Namespace(String),
}

/// The catalog of a broker, and who may see what of it.
#[derive(Clone, Copy, Debug)]
pub struct CatalogView<'a> {
    /// Namespaces that the broker serves.
    pub scope: &'a BrokerScope,
    /// What of it is offered at all.
    pub restrictions: &'a CatalogRestrictions,
    /// Who sees which plan.
    pub access: &'a AccessRules,
    /// Its catalog.
    pub catalog: &'a KnownCatalog,
}

/// A namespace that looks at a catalog.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// What a namespace finds under the ids of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlanLookup<'a> {
    /// Nothing: there is no such plan, or the namespace may not see it.
    NotFound,
    /// A plan that the broker does not offer any more. Nothing new can be made of it; its instances go on.
    Removed {
        /// The offering.
        service: &'a OfferedService,
        /// The plan.
        plan: &'a OfferedPlan,
        /// Since when.
        since: Timestamp,
    },
    /// A plan that can be provisioned.
    Offered {
        /// The offering.
        service: &'a OfferedService,
        /// The plan.
        plan: &'a OfferedPlan,
    },
}

impl<'a> CatalogView<'a> {
    /// Finds a plan for a namespace that names it.
    pub fn find(&self, namespace: NamespaceFacts<'_>, key: &PlanKey) -> PlanLookup<'a> {
        match self.catalog.plan(key) {
            Some((service, plan)) if self.admits(namespace, service, plan) => {
                match service.removed_since().or(plan.removed_since()) {
                    Some(since) => PlanLookup::Removed {
                        service,
                        plan,
                        since,
                    },
                    None => PlanLookup::Offered { service, plan },
                }
            }
            Some(_) | None => PlanLookup::NotFound,
        }
    }

    /// The plans that a namespace may provision, with their offerings, in the order of their ids.
    pub fn offered_plans<'v>(
        &'v self,
        namespace: NamespaceFacts<'v>,
    ) -> impl Iterator<Item = (&'a OfferedService, &'a OfferedPlan)> + use<'a, 'v> {
        self.items().filter(move |(service, plan)| {
            !service.is_removed() && !plan.is_removed() && self.admits(namespace, service, plan)
        })
    }

    /// The plans that are shown to a namespace: those that it may provision, and those that its instances use, even if
    /// they were removed or hidden since.
    pub fn shown_plans<'v>(
        &'v self,
        namespace: NamespaceFacts<'v>,
        uses: &'v dyn Fn(&PlanKey) -> bool,
    ) -> impl Iterator<Item = (&'a OfferedService, &'a OfferedPlan)> + use<'a, 'v> {
        self.items().filter(move |(service, plan)| {
            let is_removed = service.is_removed() || plan.is_removed();
            !is_removed && self.admits(namespace, service, plan) || uses(&plan.key())
        })
    }

    /// All plans with their offerings.
    fn items(&self) -> impl Iterator<Item = (&'a OfferedService, &'a OfferedPlan)> + use<'a> {
        let catalog = self.catalog;
        let plans = catalog.plans().iter();
        plans.filter_map(|(key, plan)| Some((catalog.services().get(&key.service_id)?, plan)))
    }

    /// Whether a namespace may see a plan, removed or not.
    fn admits(
        &self,
        namespace: NamespaceFacts<'_>,
        service: &OfferedService,
        plan: &OfferedPlan,
    ) -> bool {
        let serves = match self.scope {
            BrokerScope::AllNamespaces => true,
            BrokerScope::Namespace(name) => name == namespace.name,
        };
        let audience = self.access.audience(&plan.key());
        serves
            && self.restrictions.admit_service(service)
            && self.restrictions.admit_plan(plan)
            && audience.includes(namespace.name, namespace.labels)
    }
}
