//! Difference between stored records and the published catalog: versions to build, to keep, and faults. Pure.
//!
//! Takes CPU time if there are many records, so `catalog_publisher.rs` runs it in the background.

use super::super::records::{RegistryRecords, StoredRecord};
use super::super::view::{self, Counts};
use super::super::withdrawn_plans::WithdrawnPlans;
use crate::bundle_folders::OfferedImage;
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_broker::Revision;
use sutler_registry::{KnownRegistries, KnownRegistry, PUSHED_REGISTRY, SpecName, offered_specs};

/// Records, grouped by the action they need.
pub(super) struct CatalogDiff {
    /// Versions to publish.
    pub(super) offered: BTreeMap<Arc<SpecName>, WantedVersion>,
    /// Faults of specs that are not published.
    pub(super) faults: Vec<String>,
    pub(super) read: RegistrySnapshot,
}

/// Computes the difference. Takes CPU time if there are many records. Records that are not needed are dropped one by
/// one.
pub(super) fn diff(records: RegistryRecords, order: &[String]) -> CatalogDiff {
    let registries = records.registries.into_iter();
    let mut known = KnownRegistries(registries.map(|(name, it)| (name, it.value)).collect());
    let mut all = BTreeMap::new();
    let mut withdrawn = WithdrawnPlans::default();
    for (name, StoredRecord { value, revision }) in records.specs {
        withdrawn.add(&value);
        let its = known.0.entry(name.registry.clone()).or_default();
        its.specs.insert(name.item.clone(), value.held);
        let version = value.version;
        all.insert(name, WantedVersion { revision, version });
    }
    let offered = offered_specs(&known, order);
    let counts = view::counts(&known, &offered);
    let named = offered.specs.iter();
    let wanted = named
        .filter_map(|(name, _)| all.remove_entry(name))
        .collect();
    let faults = offered.conflicts.iter().map(ToString::to_string).collect();
    for its in known.0.values_mut() {
        its.specs.clear();
    }
    CatalogDiff {
        offered: wanted,
        faults,
        read: RegistrySnapshot {
            registries: known,
            counts,
            withdrawn,
        },
    }
}

/// A spec whose offering must be built.
pub(super) struct WantedVersion {
    pub(super) revision: Revision,
    pub(super) version: String,
}

/// Keeps unchanged offerings and removes them from the versions to build. Returns whether any offering is gone.
pub(super) fn keep_unchanged(
    made: &mut BTreeMap<Arc<SpecName>, (Revision, Arc<OfferedImage>)>,
    offered: &mut BTreeMap<Arc<SpecName>, WantedVersion>,
) -> bool {
    let before = made.len();
    made.retain(|name, (revision, _)| {
        let stays = offered.get(name).is_some_and(|it| it.revision == *revision);
        if stays {
            offered.remove(name);
        }
        stays
    });
    made.len() < before
}

/// Records as last read, without the specs that are simply offered.
#[derive(Default)]
pub(super) struct RegistrySnapshot {
    /// Without specs.
    pub(super) registries: KnownRegistries,
    pub(super) counts: BTreeMap<String, Counts>,
    pub(super) withdrawn: WithdrawnPlans,
}

impl RegistrySnapshot {
    /// Replaces the registries and keeps their specs. The registry of pushed services is not stored, so it is kept
    /// too.
    pub(super) fn read_again(&mut self, registries: BTreeMap<String, StoredRecord<KnownRegistry>>) {
        let known = registries.into_iter().map(|(name, it)| (name, it.value));
        let mut known = KnownRegistries(known.collect());
        if let Some(pushed) = self.registries.0.remove(PUSHED_REGISTRY) {
            known.0.insert(PUSHED_REGISTRY.to_owned(), pushed);
        }
        self.registries = known;
    }
}
