//! Which specs have instances, by the plans of all their versions, current and former.
//!
//! Used before anything is withdrawn or deleted (`refresh.rs`, `deletions.rs`).

use super::records::{RegistryRecords, VERSIONS, VersionRecord};
use std::collections::{BTreeMap, BTreeSet};
use sutler_broker::{CollectionItem, Collections, CollectionsError, InstanceCounts, Revision};
use sutler_registry::SpecName;

/// A version without its manifest.
pub(super) struct VersionOfSpec {
    pub digest: String,
    pub revision: Revision,
    pub spec: SpecName,
}

/// Plans and versions of each spec, to find its instances.
pub(super) struct SpecUsage {
    pub versions: Vec<VersionOfSpec>,
    plans: BTreeMap<SpecName, BTreeSet<String>>,
}

impl SpecUsage {
    /// Reads all versions.
    pub(super) async fn read(
        collections: &Collections,
        records: &RegistryRecords,
    ) -> Result<Self, CollectionsError> {
        let specs = records.specs.iter();
        let of_specs = specs.map(|(name, it)| {
            let plans = it.value.plans.iter().cloned();
            (SpecName::clone(name), plans.collect())
        });
        let of_specs = Self {
            versions: Vec::new(),
            plans: of_specs.collect(),
        };
        let keep = |uses: &mut Self, it: CollectionItem<VersionRecord>| {
            let of_spec = uses.plans.entry(it.value.spec.clone()).or_default();
            of_spec.extend(it.value.plans);
            uses.versions.push(VersionOfSpec {
                digest: it.id,
                revision: it.revision,
                spec: it.value.spec,
            });
        };
        collections.fold(VERSIONS, of_specs, keep).await
    }

    /// Returns those of the specs that have instances.
    pub(super) async fn among(
        &self,
        collections: &Collections,
        names: BTreeSet<SpecName>,
    ) -> Result<BTreeSet<SpecName>, CollectionsError> {
        let mut used = BTreeSet::new();
        let tenants = InstanceCounts::read(collections).await?;
        for name in names {
            let plans = self.plans.get(&name).into_iter().flatten();
            let mut plans: Vec<&str> = plans.map(String::as_str).collect();
            // Plans are queried one after the other. The second pass finds an instance that has moved meanwhile to a
            // plan that was queried before.
            plans.extend_from_within(..plans.len().saturating_sub(1));
            if tenants.have_instance_of(plans).await? {
                used.insert(name);
            }
        }
        Ok(used)
    }
}
