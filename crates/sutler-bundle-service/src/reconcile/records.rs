//! Stored records of registries: one per registry, one per spec, one per version.
//!
//! Instances are bound to versions: a version stays while a spec names it or an instance was made from it. The
//! precondition of a provision is its spec's record (`catalog_publisher.rs`), whose revision changes with every
//! write.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_broker::{CollectionItem, Collections, CollectionsError, Revision, run_blocking};
use sutler_registry::{KnownRegistries, KnownRegistry, KnownSpec, SpecName};

/// Names of the collections.
pub(super) const REGISTRIES: &str = "registry";
pub(super) const SPECS: &str = "spec";
pub(super) const VERSIONS: &str = "version";
/// All collections of registries. While one of them has a record, its periodic tasks must run.
pub const REGISTRY_RECORDS: [&str; 3] = [REGISTRIES, SPECS, VERSIONS];
const STATE: &str = "registries";
/// Ids of the records in the collection `STATE`.
const GENERATION: &str = "generation";
const PUSHES: &str = "pushes";

/// Stored spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SpecRecord {
    pub name: Arc<SpecName>,
    pub held: Arc<KnownSpec>,
    /// Digest of the offered version.
    pub version: String,
    pub service_id: String,
    pub service_name: String,
    /// Plan ids of the offered version.
    pub plans: Vec<String>,
    /// Inputs of its names and ids; they are rebuilt if these change.
    #[serde(default)]
    pub offered_by: String,
}

impl SpecRecord {
    /// Whether its names and ids were derived from these inputs; for older records the inputs are unknown.
    pub(super) fn is_offered_by(&self, offered_by: &str) -> bool {
        self.offered_by.is_empty() || self.offered_by == offered_by
    }
}

/// Stored version. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct VersionRecord {
    /// The spec it was read for.
    pub spec: SpecName,
    /// The manifest, and its file name.
    pub manifest: String,
    pub file: String,
    #[serde(default)]
    pub image: Option<String>,
    #[serde(default)]
    pub runtime: Option<String>,
    /// The ids of its plans.
    pub plans: Vec<String>,
}

/// Generation of all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Generation {
    pub number: u64,
    /// A refresh is writing the specs of the next generation.
    pub dirty: bool,
    /// A refresh is writing versions that no spec names yet.
    #[serde(default)]
    pub filling: bool,
    /// Last generation that changed specs: a reader that has it need not read specs again.
    #[serde(default)]
    pub specs: Option<u64>,
}

impl Generation {
    /// Generation of the specs, if it is complete.
    pub(super) fn whole(self) -> Option<u64> {
        self.specs.filter(|_| !self.dirty)
    }

    /// The next generation, complete.
    pub(super) fn next(self, specs_changed: bool) -> Self {
        let number = self.number + 1;
        let same = self.specs.filter(|_| !specs_changed);
        Self {
            number,
            dirty: false,
            filling: false,
            specs: Some(same.unwrap_or(number)),
        }
    }
}

/// Number of pushes and deletions by developers. A refresh takes long and writes at its end, so changes by
/// developers meanwhile are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PushCount {
    pub number: u64,
}

/// A record and its revision.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord<T> {
    pub value: T,
    pub revision: Revision,
}

/// All records except versions.
#[derive(Debug, Default)]
pub(super) struct RegistryRecords {
    pub registries: BTreeMap<String, StoredRecord<KnownRegistry>>,
    pub specs: BTreeMap<Arc<SpecName>, StoredRecord<SpecRecord>>,
    pub generation: Option<StoredRecord<Generation>>,
    pub pushes: Option<Revision>,
}

impl RegistryRecords {
    pub(super) async fn read(collections: &Collections) -> Result<Self, CollectionsError> {
        let generation = generation(collections).await?;
        let pushes = pushes(collections).await?;
        let registries = registries(collections).await?;
        let keep = |specs: &mut Vec<_>, it: CollectionItem<SpecRecord>| {
            let (value, revision) = (it.value, it.revision);
            specs.push((value.name.clone(), StoredRecord { value, revision }));
        };
        let specs = collections.fold(SPECS, Vec::new(), keep).await?;
        // A map that is collected at once takes half the memory of one that grew.
        let specs = run_blocking(|| specs.into_iter().collect()).await?;
        Ok(Self {
            registries,
            specs,
            generation,
            pushes: pushes.map(|it| it.revision),
        })
    }

    /// The records as input of `sutler_registry`.
    pub(super) fn known(&self) -> KnownRegistries {
        let mut known = KnownRegistries::default();
        for (name, written) in &self.registries {
            known.0.insert(name.clone(), written.value.clone());
        }
        for (name, written) in &self.specs {
            let its = known.0.entry(name.registry.clone()).or_default();
            let held = written.value.held.clone();
            its.specs.insert(name.item.clone(), held);
        }
        known
    }

    /// Whether no other generation was begun and nothing was pushed since these records were read.
    pub(super) async fn are_current(
        &self,
        collections: &Collections,
    ) -> Result<bool, CollectionsError> {
        let generation = generation(collections).await?.map(|it| it.revision);
        let pushes = pushes(collections).await?.map(|it| it.revision);
        Ok(generation == self.generation.as_ref().map(|it| it.revision) && pushes == self.pushes)
    }

    /// Lets a batch commit only if no other generation was begun and nothing was pushed since these records were
    /// read.
    pub(super) fn undisturbed<'a>(
        &self,
        batch: sutler_broker::Batch<'a>,
    ) -> sutler_broker::Batch<'a> {
        let generation = self.generation.as_ref().map(|it| it.revision);
        let states = [(GENERATION, generation), (PUSHES, self.pushes)];
        states
            .into_iter()
            .fold(batch, |batch, (id, revision)| match revision {
                Some(revision) => batch.unchanged(STATE, id, revision),
                None => batch.absent(STATE, id),
            })
    }
}

/// The registries, without their specs.
pub(super) async fn registries(
    collections: &Collections,
) -> Result<BTreeMap<String, StoredRecord<KnownRegistry>>, CollectionsError> {
    let keep = |registries: &mut BTreeMap<_, _>, it: CollectionItem<KnownRegistry>| {
        let (value, revision) = (it.value, it.revision);
        registries.insert(it.id, StoredRecord { value, revision });
    };
    collections.fold(REGISTRIES, BTreeMap::new(), keep).await
}

/// Reads the generation.
pub(super) async fn generation(
    collections: &Collections,
) -> Result<Option<StoredRecord<Generation>>, CollectionsError> {
    let found = collections.get::<Generation>(STATE, GENERATION).await?;
    Ok(found.map(|it| StoredRecord {
        value: it.value,
        revision: it.revision,
    }))
}

/// Reads the number of pushes and deletions.
pub(super) async fn pushes(
    collections: &Collections,
) -> Result<Option<StoredRecord<PushCount>>, CollectionsError> {
    let found = collections.get::<PushCount>(STATE, PUSHES).await?;
    Ok(found.map(|it| StoredRecord {
        value: it.value,
        revision: it.revision,
    }))
}

/// Increments the push count.
pub(super) fn put_pushes(
    batch: sutler_broker::Batch<'_>,
    was: Option<StoredRecord<PushCount>>,
) -> sutler_broker::Batch<'_> {
    let number = was.as_ref().map_or(0, |it| it.value.number) + 1;
    let next = PushCount { number };
    batch.put(STATE, PUSHES, was.map(|it| it.revision), &next)
}

/// Adds the next generation to a batch.
pub(super) fn put_generation<'a>(
    batch: sutler_broker::Batch<'a>,
    was: Option<Revision>,
    next: Generation,
) -> sutler_broker::Batch<'a> {
    batch.put(STATE, GENERATION, was, &next)
}

/// Record id of a spec. Names of registries contain no slash.
pub(super) fn id_of(spec: &SpecName) -> String {
    spec.to_string()
}

/// Record of a registry without its specs, which have records of their own.
pub(super) fn without_specs(known: &KnownRegistry) -> KnownRegistry {
    KnownRegistry {
        failures: known.failures,
        listed: known.listed,
        fault: known.fault.clone(),
        items: known.items,
        unread: known.unread.clone(),
        specs: BTreeMap::new(),
    }
}
