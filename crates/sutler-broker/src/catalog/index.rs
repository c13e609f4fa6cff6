//! Index of a catalog: its offerings, found by the ids of services and plans.
//!
//! Binary search in sorted positions, so that no id is stored twice, which saves memory with ten thousand offerings.
//! One offering: `catalog/offering.rs`.

use super::error::CatalogError;
use super::offering::OfferingEntry;
use std::sync::Arc;
use sutler_osb::{CatalogFault, CatalogFaults};

/// The offerings, in the order of the catalog.
#[derive(Default)]
pub(super) struct CatalogIndex {
    entries: Vec<Arc<OfferingEntry>>,
    /// Position of each offering, sorted by id.
    services: Box<[usize]>,
    /// Position of each plan, sorted by id: the offering, and the plan within it.
    plans: Box<[(usize, usize)]>,
}

impl CatalogIndex {
    /// # Errors
    /// Two offerings share a name, an id or a plan id. Offerings are checked one by one, so only this check finds it.
    pub(super) fn of(entries: Vec<Arc<OfferingEntry>>) -> Result<Self, CatalogError> {
        let all = || entries.iter().enumerate();
        let names = all().map(|(nth, it)| (it.name.as_str(), nth));
        sorted_unique(names).map_err(|name| duplicate("name", name, "B-055"))?;
        let services = all().map(|(nth, it)| (it.service_id.as_str(), nth));
        let services = sorted_unique(services).map_err(|id| duplicate("id", id, "B-056"))?;
        let plans = all().flat_map(|(nth, it)| {
            let each = it.plans.iter().enumerate();
            each.map(move |(nth_plan, plan)| (plan.id.as_str(), (nth, nth_plan)))
        });
        let plans = sorted_unique(plans).map_err(|id| duplicate("plan id", id, "B-068"))?;
        Ok(Self {
            services,
            plans,
            entries,
        })
    }

    /// An offering by its position.
    pub(super) fn get(&self, nth: usize) -> Option<&Arc<OfferingEntry>> {
        self.entries.get(nth)
    }

    /// All offerings.
    pub(super) fn entries(&self) -> &[Arc<OfferingEntry>] {
        &self.entries
    }

    /// All plans.
    pub(super) fn plans(&self) -> &[(usize, usize)] {
        &self.plans
    }

    /// The position of an offering.
    pub(super) fn service(&self, id: &str) -> Option<usize> {
        let id_of = |&nth: &usize| Some(self.entries.get(nth)?.service_id.as_str());
        let found = self.services.binary_search_by_key(&Some(id), id_of);
        self.services.get(found.ok()?).copied()
    }

    /// The position of a plan.
    pub(super) fn plan(&self, id: &str) -> Option<(usize, usize)> {
        let id_of = |&(nth, nth_plan): &(usize, usize)| {
            let plan = self.entries.get(nth)?.plans.get(nth_plan)?;
            Some(plan.id.as_str())
        };
        let found = self.plans.binary_search_by_key(&Some(id), id_of);
        self.plans.get(found.ok()?).copied()
    }
}

/// Positions sorted by key; or the first key that occurs twice.
fn sorted_unique<'a, T>(entries: impl Iterator<Item = (&'a str, T)>) -> Result<Box<[T]>, &'a str> {
    let mut entries: Vec<(&str, T)> = entries.collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    let mut neighbours = entries.iter().zip(entries.iter().skip(1));
    if let Some(((key, _), _)) = neighbours.find(|(one, next)| one.0 == next.0) {
        return Err(key);
    }
    Ok(entries.into_iter().map(|(_, place)| place).collect())
}

fn duplicate(what: &str, value: &str, rule: &'static str) -> CatalogError {
    let fault = CatalogFault {
        path: "services".to_owned(),
        reason: format!("must not have the {what} {value:?} twice"),
        rule,
    };
    CatalogError::Catalog(CatalogFaults {
        faults: vec![fault],
        warnings: Vec::new(),
    })
}
