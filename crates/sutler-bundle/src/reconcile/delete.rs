//! The chore that deletes what is withdrawn, past its grace, and needed by no instance.
//!
//! First it reads what is withdrawn, then it asks who has instances, then it deletes what is still as it was
//! read. A provision expects its spec as it was offered, so one that was accepted is seen here, and one that
//! comes later finds its spec gone.

use super::records::{Records, SPECS, VERSIONS, VersionRecord, id_of, in_generation};
use super::refresh::{Source, tell};
use async_trait::async_trait;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Chore, ChoreCx, Entry, Result, Stamp};
use sutler_registry::{Change, Facts, Rules, SpecName, deletions, in_question};

/// The name of the chore.
pub const DELETIONS: &str = "registry-deletions";

/// Deletes what nobody needs.
pub struct Deletions {
    sources: Arc<[Source]>,
    rules: Rules,
    every: Duration,
}

/// A version, without what it says.
struct Kept {
    digest: String,
    stamp: Stamp,
    spec: SpecName,
    plans: Vec<String>,
}

impl Deletions {
    /// Of these registries.
    #[must_use]
    pub fn new(sources: Arc<[Source]>, rules: Rules, every: Duration) -> Self {
        Self {
            sources,
            rules,
            every,
        }
    }
}

#[async_trait]
impl Chore for Deletions {
    fn name(&self) -> &str {
        DELETIONS
    }

    fn every(&self) -> Duration {
        self.every
    }

    async fn turn(&self, cx: &ChoreCx) -> Result<()> {
        let ledger = cx.ledger();
        let records = Records::read(ledger).await?;
        let mut versions = Vec::new();
        let keep = |it: Entry<VersionRecord>| {
            versions.push(Kept {
                digest: it.id,
                stamp: it.stamp,
                spec: it.value.spec,
                plans: it.value.plans,
            });
        };
        ledger.each(VERSIONS, keep).await?;
        let known = records.known();
        let (nothing, now) = (BTreeMap::new(), Timestamp::now());
        let mut used = BTreeSet::new();
        for name in in_question(&known, &nothing, self.rules, now) {
            // Instances of earlier versions count, too: their plans may have been other ones.
            let own = records.specs.get(&name).into_iter();
            let own = own.flat_map(|it| it.value.plans.iter());
            let earlier = versions.iter().filter(|it| it.spec == name);
            let plans = own.chain(earlier.flat_map(|it| it.plans.iter()));
            let plans: BTreeSet<&str> = plans.map(String::as_str).collect();
            if ledger.has_instance_of(plans).await? {
                used.insert(name);
            }
        }
        let names = self.sources.iter().map(|it| it.registry.name().to_owned());
        let configured: BTreeSet<String> = names.collect();
        let facts = Facts {
            configured: &configured,
            asked: &nothing,
            used: &used,
            rules: self.rules,
            now,
        };
        let mut gone = BTreeSet::new();
        for change in deletions(&known, &facts) {
            if delete(cx, &records, &change).await? {
                gone.extend(change.spec().cloned());
                tell(&change);
            }
        }
        self.delete_versions(cx, &records, &gone, versions).await
    }
}

/// Whether it was still as it was read, and is gone now.
async fn delete(cx: &ChoreCx, records: &Records, change: &Change) -> Result<bool> {
    let batch = match (change, change.spec()) {
        (Change::Delete { .. }, Some(name)) => {
            let Some(was) = records.specs.get(name) else {
                return Ok(false);
            };
            cx.batch().remove(SPECS, &id_of(name), was.stamp)
        }
        (Change::Forget { registry }, _) => {
            let Some(was) = records.registries.get(registry) else {
                return Ok(false);
            };
            cx.batch()
                .remove(super::records::REGISTRIES, registry, was.stamp)
        }
        _ => return Ok(false),
    };
    cx.write(batch).await
}

impl Deletions {
    /// Deletes versions that no spec names and of which there is no instance.
    async fn delete_versions(
        &self,
        cx: &ChoreCx,
        records: &Records,
        gone: &BTreeSet<SpecName>,
        versions: Vec<Kept>,
    ) -> Result<()> {
        // A refresh writes a version before the spec that names it. While one is in the middle, or began
        // since, nobody can tell which versions are needed: the next turn will.
        let generation = records.generation.as_ref().filter(|it| !it.value.dirty);
        let Some(generation) = generation else {
            return Ok(());
        };
        let specs = records
            .specs
            .iter()
            .filter(|(name, _)| !gone.contains(*name));
        let named: BTreeSet<&str> = specs.map(|(_, it)| it.value.version.as_str()).collect();
        for version in versions {
            if named.contains(version.digest.as_str()) {
                continue;
            }
            let plans = version.plans.iter().map(String::as_str);
            if cx.ledger().has_instance_of(plans).await? {
                continue;
            }
            let batch = cx.batch().remove(VERSIONS, &version.digest, version.stamp);
            let batch = in_generation(batch, generation.stamp);
            if cx.write(batch).await? {
                tracing::info!(digest = %version.digest, spec = %version.spec, "a version of a bundle that no instance needs was deleted");
            }
        }
        Ok(())
    }
}
