//! View of registries for operators. No decisions, no secrets.
//!
//! Bundles are `bundles.rs`.

use super::records::RegistryRecords;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use sutler_broker::TaskStatus;
use sutler_registry::{
    KnownRegistries, KnownRegistry, OfferedSpecs, PUSHED_REGISTRY, SpecName, WithdrawalMark,
    offered_specs,
};

/// All registries, without their specs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistriesView {
    /// State of the refresh task.
    pub refresh: TaskStatus,
    /// Registries in the order of the configuration, then those that are not configured any more.
    pub registries: Vec<RegistryView>,
}

/// One registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryView {
    /// Its name.
    pub name: String,
    /// Whether it is in the configuration.
    pub configured: bool,
    /// When it was last listed completely.
    pub listed: Option<Timestamp>,
    /// Refreshes that failed since.
    pub failures: u32,
    /// Why the last one failed.
    pub fault: Option<String>,
    /// Items of the last complete listing.
    pub items: usize,
    /// Number of offered specs.
    pub offered: usize,
    /// Number of withdrawn specs.
    pub withdrawn: usize,
    /// Number of items that cannot be read.
    pub faulty: usize,
    /// Its specs, if only one registry is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub specs: Vec<SpecView>,
    /// Items that cannot be read and have no good version, if only one registry is shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<String, String>,
}

/// One spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecView {
    /// The item.
    pub item: String,
    /// Name of its service.
    pub service: String,
    /// Id of its service.
    pub service_id: String,
    /// Digest of its content in the registry.
    pub digest: String,
    /// Digest of the version that runs.
    pub version: String,
    /// Whether it is offered.
    pub offered: bool,
    /// Why it is withdrawn, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<WithdrawalMark>,
    /// Why an earlier version is offered than the current one, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Numbers of specs of a registry, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub specs: usize,
    pub offered: usize,
    pub withdrawn: usize,
    pub faulty: usize,
}

/// Counts the specs of all registries, by registry.
pub(super) fn counts(
    known: &KnownRegistries,
    offered: &OfferedSpecs<'_>,
) -> BTreeMap<String, Counts> {
    let mut all: BTreeMap<String, Counts> = BTreeMap::new();
    for (registry, its) in &known.0 {
        let specs = || its.specs.values();
        let counts = Counts {
            specs: its.specs.len(),
            offered: 0,
            withdrawn: specs().filter(|it| it.mark.is_some()).count(),
            faulty: specs().filter(|it| it.fault.is_some()).count(),
        };
        all.insert(registry.clone(), counts);
    }
    for (name, _) in &offered.specs {
        if let Some(counts) = all.get_mut(&name.registry) {
            counts.offered += 1;
        }
    }
    all
}

/// All registries. `known` need not contain their specs, which are counted already.
pub(super) fn all(
    known: &KnownRegistries,
    counts: &BTreeMap<String, Counts>,
    order: &[String],
    refresh: TaskStatus,
) -> RegistriesView {
    let configured: BTreeSet<&String> = order.iter().collect();
    let others = known.0.keys().filter(|name| !configured.contains(name));
    let names = order.iter().chain(others);
    let registries = names.map(|name| registry(known, counts, order, name));
    RegistriesView {
        refresh,
        registries: registries.collect(),
    }
}

pub(super) fn one(records: &RegistryRecords, order: &[String], name: &str) -> Option<RegistryView> {
    let known = records.known();
    let name = name.to_owned();
    if !order.contains(&name) && !known.0.contains_key(&name) {
        return None;
    }
    let offered = offered_specs(&known, order);
    let counts = counts(&known, &offered);
    let mut shown = registry(&known, &counts, order, &name);
    let is_offered: BTreeSet<&SpecName> = offered.specs.iter().map(|(it, _)| it).collect();
    let conflicts = offered.conflicts.iter();
    let conflicts: BTreeMap<&SpecName, String> =
        conflicts.map(|it| (&it.left_out, it.to_string())).collect();
    let specs = records.specs.values().map(|it| &it.value);
    let specs = specs.filter(|it| it.name.registry == name);
    shown.specs = specs
        .map(|it| SpecView {
            item: it.name.item.clone(),
            service: it.service_name.clone(),
            service_id: it.service_id.clone(),
            digest: it.held.digest.clone(),
            version: it.version.clone(),
            offered: is_offered.contains(it.name.as_ref()),
            mark: it.held.mark.clone(),
            fault: it
                .held
                .fault
                .clone()
                .or_else(|| conflicts.get(it.name.as_ref()).cloned()),
        })
        .collect();
    shown.unread = known
        .0
        .get(&name)
        .map(|it| it.unread.clone())
        .unwrap_or_default();
    Some(shown)
}

fn registry(
    known: &KnownRegistries,
    counts: &BTreeMap<String, Counts>,
    order: &[String],
    name: &String,
) -> RegistryView {
    let nothing = KnownRegistry::default();
    let its = known.0.get(name).unwrap_or(&nothing);
    let counts = counts.get(name).copied().unwrap_or_default();
    RegistryView {
        name: name.clone(),
        configured: order.contains(name),
        listed: its.listed,
        failures: its.failures,
        fault: its.fault.clone(),
        items: match name.as_str() {
            PUSHED_REGISTRY => counts.specs,
            _ => its.items,
        },
        offered: counts.offered,
        withdrawn: counts.withdrawn,
        faulty: counts.faulty + its.unread.len(),
        specs: Vec::new(),
        unread: BTreeMap::new(),
    }
}
