//! Stored records of registries: one per registry, one per spec, one per version.
//!
//! Instances are bound to versions: a version stays while a spec names it or an instance was made of it. The
//! precondition of a provision is its spec's record (`catalog_publisher.rs`), whose revision changes with every
//! write.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_broker::{CollectionItem, Collections, CollectionsError, Revision, run_blocking};
use sutler_registry::{KnownRegistries, KnownRegistry, KnownSpec, SpecName};

/// Collections.
pub(super) const REGISTRIES: &str = "registry";
pub(super) const SPECS: &str = "spec";
pub(super) const VERSIONS: &str = "version";
/// The collections of what is known of registries: while one of them has a record, somebody must look after it.
pub const REGISTRY_RECORDS: [&str; 3] = [REGISTRIES, SPECS, VERSIONS];
const STATE: &str = "registries";
/// The records of the collection above.
const GENERATION: &str = "generation";
const PUSHES: &str = "pushes";

/// A spec as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SpecRecord {
    pub name: Arc<SpecName>,
    pub held: Arc<KnownSpec>,
    /// Names the version that is offered.
    pub version: String,
    pub service_id: String,
    pub service_name: String,
    /// The ids of its plans, of the version that is offered.
    pub plans: Vec<String>,
    /// Inputs of its names and ids; they are rebuilt if these change.
    #[serde(default)]
    pub offered_by: String,
}

impl SpecRecord {
    /// Whether its names and ids were made by this; by whom those of old were, nobody knows.
    pub(super) fn is_offered_by(&self, offered_by: &str) -> bool {
        self.offered_by.is_empty() || self.offered_by == offered_by
    }
}

/// A version as it is written down. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct VersionRecord {
    /// The spec it was read for.
    pub spec: SpecName,
    /// The manifest, and the name of the file it was.
    pub manifest: String,
    pub file: String,
    #[serde(default)]
    pub image: Option<String>,
    #[serde(default)]
    pub runtime: Option<String>,
    /// The ids of its plans.
    pub plans: Vec<String>,
}

/// Which state all records are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Generation {
    pub number: u64,
    /// Somebody is in the middle of writing the specs of the next one.
    pub dirty: bool,
    /// Somebody writes versions that no spec names yet.
    #[serde(default)]
    pub filling: bool,
    /// The last one whose specs were other than those before: who has read it need not read specs again.
    #[serde(default)]
    pub specs: Option<u64>,
}

impl Generation {
    /// The state of the specs, where it is whole.
    pub(super) fn whole(self) -> Option<u64> {
        self.specs.filter(|_| !self.dirty)
    }

    /// The state after this one, whole.
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

/// How often developers pushed or deleted. Refreshes take long and write in the end, so what developers do
/// meanwhile is counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PushCount {
    pub number: u64,
}

/// A record and the state it was in.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord<T> {
    pub value: T,
    pub revision: Revision,
}

/// All records but the versions.
#[derive(Debug, Default)]
pub(super) struct RegistryRecords {
    pub registries: BTreeMap<String, StoredRecord<KnownRegistry>>,
    pub specs: BTreeMap<Arc<SpecName>, StoredRecord<SpecRecord>>,
    pub generation: Option<StoredRecord<Generation>>,
    pub pushes: Option<Revision>,
}

impl RegistryRecords {
    pub(super) async fn read(ledger: &Collections) -> Result<Self, CollectionsError> {
        let generation = generation(ledger).await?;
        let pushes = pushes(ledger).await?;
        let registries = registries(ledger).await?;
        let keep = |specs: &mut Vec<_>, it: CollectionItem<SpecRecord>| {
            let (value, revision) = (it.value, it.revision);
            specs.push((value.name.clone(), StoredRecord { value, revision }));
        };
        let specs = ledger.fold(SPECS, Vec::new(), keep).await?;
        // A map that is made in one go takes half of what one takes that grows.
        let specs = run_blocking(|| specs.into_iter().collect()).await?;
        Ok(Self {
            registries,
            specs,
            generation,
            pushes: pushes.map(|it| it.revision),
        })
    }

    /// As the rules see it.
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
    pub(super) async fn are_current(&self, ledger: &Collections) -> Result<bool, CollectionsError> {
        let generation = generation(ledger).await?.map(|it| it.revision);
        let pushes = pushes(ledger).await?.map(|it| it.revision);
        Ok(generation == self.generation.as_ref().map(|it| it.revision) && pushes == self.pushes)
    }

    /// Lets a batch commit only if no other generation was begun and nothing was pushed since these records were read.
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
    ledger: &Collections,
) -> Result<BTreeMap<String, StoredRecord<KnownRegistry>>, CollectionsError> {
    let keep = |registries: &mut BTreeMap<_, _>, it: CollectionItem<KnownRegistry>| {
        let (value, revision) = (it.value, it.revision);
        registries.insert(it.id, StoredRecord { value, revision });
    };
    ledger.fold(REGISTRIES, BTreeMap::new(), keep).await
}

/// Which state all records are in.
pub(super) async fn generation(
    ledger: &Collections,
) -> Result<Option<StoredRecord<Generation>>, CollectionsError> {
    let found = ledger.get::<Generation>(STATE, GENERATION).await?;
    Ok(found.map(|it| StoredRecord {
        value: it.value,
        revision: it.revision,
    }))
}

/// How often developers pushed or deleted.
pub(super) async fn pushes(
    ledger: &Collections,
) -> Result<Option<StoredRecord<PushCount>>, CollectionsError> {
    let found = ledger.get::<PushCount>(STATE, PUSHES).await?;
    Ok(found.map(|it| StoredRecord {
        value: it.value,
        revision: it.revision,
    }))
}

/// Counts one more.
pub(super) fn put_pushes(
    batch: sutler_broker::Batch<'_>,
    was: Option<StoredRecord<PushCount>>,
) -> sutler_broker::Batch<'_> {
    let number = was.as_ref().map_or(0, |it| it.value.number) + 1;
    let next = PushCount { number };
    batch.put(STATE, PUSHES, was.map(|it| it.revision), &next)
}

/// Adds the next state of all records to a batch.
pub(super) fn put_generation<'a>(
    batch: sutler_broker::Batch<'a>,
    was: Option<Revision>,
    next: Generation,
) -> sutler_broker::Batch<'a> {
    batch.put(STATE, GENERATION, was, &next)
}

/// The name of a spec's record. Registries have no slash in their names.
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
