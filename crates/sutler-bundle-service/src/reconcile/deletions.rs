//! Periodic task that deletes withdrawn specs and versions after their grace, if no instance needs them.
//!
//! It reads the withdrawn specs, then which specs have instances (`spec_usage.rs`), then deletes records that are
//! still unchanged. A provision expects its spec unchanged: an accepted one is seen here, and a later one finds its
//! spec gone.

use super::catalog_publisher::Pushes;
use super::change_log::log_change;
use super::records::{RegistryRecords, SPECS, VERSIONS, generation, id_of, put_generation};
use super::refresh::Source;
use super::spec_usage::{SpecUsage, VersionOfSpec};
use async_trait::async_trait;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{PeriodicTask, TaskContext, TaskResult};
use sutler_registry::{
    RefreshFacts, RegistryChange, SpecName, WithdrawalRules, deletions, usage_candidates,
};

/// Name of the task.
pub const DELETIONS: &str = "registry-deletions";

/// Deletes specs and versions that no instance needs.
pub struct Deletions {
    sources: Arc<[Source]>,
    rules: WithdrawalRules,
    every: Duration,
    pushes: Pushes,
}

impl Deletions {
    /// Deletes from these registries.
    #[must_use]
    pub fn new(sources: Arc<[Source]>, rules: WithdrawalRules, every: Duration) -> Self {
        Self {
            sources,
            rules,
            every,
            pushes: Pushes::default(),
        }
    }

    /// Whether developers may push; if so, the registry of pushed services counts as configured.
    #[must_use]
    pub fn pushes(mut self, pushes: Pushes) -> Self {
        self.pushes = pushes;
        self
    }
}

#[async_trait]
impl PeriodicTask for Deletions {
    fn name(&self) -> &str {
        DELETIONS
    }

    fn every(&self) -> Duration {
        self.every
    }

    async fn run_once(&self, task: &TaskContext) -> TaskResult<()> {
        let collections = task.collections();
        let records = RegistryRecords::read(collections).await?;
        let uses = SpecUsage::read(collections, &records).await?;
        let known = records.known();
        let (nothing, now) = (BTreeMap::new(), Timestamp::now());
        let names = usage_candidates(&known, &nothing, self.rules, now);
        let used = uses.among(collections, names).await?;
        let names = self.sources.iter().map(|it| it.registry.name().to_owned());
        let configured: BTreeSet<String> = names.chain(self.pushes.registry()).collect();
        let facts = RefreshFacts {
            configured: &configured,
            outcomes: &nothing,
            used: &used,
            rules: self.rules,
            now,
        };
        let (mut gone, mut forgotten) = (BTreeSet::new(), false);
        for change in deletions(&known, &facts) {
            if delete(task, &records, &change).await? {
                gone.extend(change.spec().cloned());
                forgotten |= change.spec().is_none();
                log_change(&change);
            }
        }
        delete_versions(task, &records, &gone, uses).await?;
        match (gone.is_empty(), forgotten) {
            (true, false) => Ok(()),
            (no_spec, _) => bump_generation(task, !no_spec).await,
        }
    }
}

/// Bumps the generation so that every replica reads again, including specs if one is gone. A running refresh does so
/// itself.
async fn bump_generation(task: &TaskContext, specs: bool) -> TaskResult<()> {
    if let Some(now) = generation(task.collections()).await?
        && !now.value.dirty
        && !now.value.filling
    {
        let next = now.value.next(specs);
        let batch = put_generation(task.batch(), Some(now.revision), next);
        task.write(batch).await?;
    }
    Ok(())
}

/// Deletes a record. Returns `false` if it has changed since it was read.
async fn delete(
    task: &TaskContext,
    records: &RegistryRecords,
    change: &RegistryChange,
) -> TaskResult<bool> {
    let batch = match (change, change.spec()) {
        (RegistryChange::Delete { .. }, Some(name)) => {
            let Some(was) = records.specs.get(name) else {
                return Ok(false);
            };
            task.batch().remove(SPECS, &id_of(name), was.revision)
        }
        (RegistryChange::Forget { registry }, _) => {
            let Some(was) = records.registries.get(registry) else {
                return Ok(false);
            };
            task.batch()
                .remove(super::records::REGISTRIES, registry, was.revision)
        }
        _ => return Ok(false),
    };
    task.write(batch).await
}

/// Deletes versions that no spec names and whose spec has no instance of any version: an instance that was moved to
/// a plan of another version is still run by the version that made it.
async fn delete_versions(
    task: &TaskContext,
    records: &RegistryRecords,
    gone: &BTreeSet<SpecName>,
    uses: SpecUsage,
) -> TaskResult<()> {
    // A refresh writes a version before the spec that names it. If a refresh is running, or one began or a push
    // happened since the records were read, the needed versions are unknown: the next run decides.
    let generation = records.generation.as_ref();
    if generation.is_some_and(|it| it.value.dirty || it.value.filling) {
        return Ok(());
    }
    let specs = records.specs.iter();
    let specs = specs.filter(|(name, _)| !gone.contains(*name));
    let named: BTreeSet<&str> = specs.map(|(_, it)| it.value.version.as_str()).collect();
    let unnamed = |it: &&VersionOfSpec| !named.contains(it.digest.as_str());
    let unnamed: Vec<&VersionOfSpec> = uses.versions.iter().filter(unnamed).collect();
    // A refresh that began after the records were read has written versions that they do not name.
    if unnamed.is_empty() || !records.are_current(task.collections()).await? {
        return Ok(());
    }
    let of_specs = unnamed.iter().map(|it| it.spec.clone()).collect();
    let used = uses.among(task.collections(), of_specs).await?;
    for version in unnamed.iter().filter(|it| !used.contains(&it.spec)) {
        let batch = task
            .batch()
            .remove(VERSIONS, &version.digest, version.revision);
        let batch = records.undisturbed(batch);
        if task.write(batch).await? {
            tracing::info!(digest = %version.digest, spec = %version.spec, "a version of a bundle that no instance needs was deleted");
        } else if !records.are_current(task.collections()).await? {
            return Ok(());
        }
    }
    Ok(())
}
