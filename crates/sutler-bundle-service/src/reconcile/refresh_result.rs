//! Result of a refresh: the changes it decided, and which records they write.
//!
//! The decision itself is `sutler_registry::refresh`; batches and generations are `writer.rs`.

use super::records::{RegistryRecords, SpecRecord, without_specs};
use super::version::OfferTerms;
use super::writer::Writer;
use std::collections::BTreeMap;
use std::sync::Arc;
use sutler_broker::TaskResult;
use sutler_registry::{
    KnownRegistries, KnownSpec, PUSHED_REGISTRY, RefreshFacts, RegistryChange, SpecName, refresh,
};

/// Records to write after a refresh.
pub(super) struct RefreshResult {
    pub(super) changes: Vec<RegistryChange>,
    /// Each changed spec as it was before.
    before: BTreeMap<SpecName, Option<Arc<KnownSpec>>>,
    after: KnownRegistries,
    fresh: BTreeMap<SpecName, OfferTerms>,
}

impl RefreshResult {
    /// Applies the changes of a refresh to the known registries.
    pub(super) fn of(
        mut known: KnownRegistries,
        facts: &RefreshFacts<'_>,
        fresh: BTreeMap<SpecName, OfferTerms>,
    ) -> Self {
        let changes = refresh(&known, facts);
        let mut before = BTreeMap::new();
        for name in changes.iter().filter_map(RegistryChange::spec) {
            let was = || known.held(name).cloned();
            before.entry(name.clone()).or_insert_with(was);
        }
        changes.iter().for_each(|change| known.apply(change));
        Self {
            changes,
            before,
            after: known,
            fresh,
        }
    }

    /// Writes the records that changed. Returns `false` if another process wrote meanwhile.
    pub(super) async fn write(
        &self,
        mut writer: Writer<'_>,
        records: &RegistryRecords,
    ) -> TaskResult<bool> {
        for (name, was) in &self.before {
            let held = self.after.held(name).filter(|it| Some(*it) != was.as_ref());
            let record = held.and_then(|held| record_of(name, held, records, &self.fresh));
            if let Some(record) = record {
                let was = records.specs.get(name).map(|it| it.revision);
                writer.put_spec(name, was, &record).await?;
            }
        }
        for (registry, its) in &self.after.0 {
            let was = records.registries.get(registry);
            let its = without_specs(its);
            // Pushed services belong to no registry that is listed.
            if registry != PUSHED_REGISTRY && was.is_none_or(|was| was.value != its) {
                writer.put_registry(registry, was.map(|it| it.revision), its);
            }
        }
        writer.end().await
    }
}

/// Record of a spec; `None` if the spec was neither read now nor written before.
fn record_of(
    name: &SpecName,
    held: &Arc<KnownSpec>,
    records: &RegistryRecords,
    fresh: &BTreeMap<SpecName, OfferTerms>,
) -> Option<SpecRecord> {
    match (fresh.get(name), records.specs.get(name)) {
        (Some(fresh), _) => Some(fresh.named(name, held)),
        (None, Some(was)) => Some(SpecRecord {
            held: held.clone(),
            ..was.value.clone()
        }),
        (None, None) => None,
    }
}
