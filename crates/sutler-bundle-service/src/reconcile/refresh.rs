//! Periodic task that lists registries and stores what changed.
//!
//! It runs on one replica at a time. `sutler_registry::refresh` decides the changes. Writes are batches, each
//! consistent by itself, so a crash in the middle leaves nothing to repair: the next run continues. The catalog
//! follows the records (`catalog_publisher.rs`); results are written by `refresh_result.rs`.

use super::catalog_publisher::Pushes;
use super::change_log::log_change;
use super::item_verdict_cache::{ItemVerdict, ItemVerdictCache};
use super::metrics;
use super::records::RegistryRecords;
use super::refresh_result::RefreshResult;
use super::spec_usage::SpecUsage;
use super::version::{self, NewVersion, OfferTerms};
use super::writer::Writer;
use crate::bundle_folders::OfferSettings;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_broker::{Collections, PeriodicTask, TaskContext, TaskError, TaskResult, run_blocking};
use sutler_registry::{
    Item, ItemError, ItemOutcome, ItemState, KnownRegistries, ListOutcome, RefreshFacts, Registry,
    RegistryChange, ScannedItem, SpecName, WithdrawalRules, scan_items, usage_candidates,
};

/// Name of the task.
pub const REFRESH: &str = "registries";
/// Registries listed concurrently.
const REGISTRIES_AT_ONCE: usize = 4;
/// Longest stored fault of an item, in characters.
const SENTENCE_CHARS_MAX: usize = 600;
/// Attempts to apply the scan if other writers change the records meanwhile.
const TRIES: u32 = 4;
/// Interval at which the progress of a run is stored.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// A configured registry.
#[derive(Clone)]
pub struct Source {
    /// The registry.
    pub registry: Arc<dyn Registry>,
    /// Tag under which a bundle has its own name; under every other tag it is an offering of its own.
    pub default_tag: String,
    /// Items read concurrently.
    pub at_once: usize,
}

impl Source {
    /// Tag to add to the name of an item's offering.
    pub(super) fn tag_of<'a>(&self, item: &'a str) -> Option<&'a str> {
        let (_, tag) = item.rsplit_once(':')?;
        (tag != self.default_tag).then_some(tag)
    }
}

/// Periodic task that lists registries.
pub struct Refresh {
    sources: Arc<[Source]>,
    offers: OfferSettings,
    rules: WithdrawalRules,
    every: Duration,
    pushes: Pushes,
    verdicts: ItemVerdictCache,
}

/// Findings of a refresh.
struct RefreshFindings {
    outcomes: BTreeMap<String, ListOutcome>,
    /// Terms of the versions that were read.
    fresh: BTreeMap<SpecName, OfferTerms>,
    used: BTreeSet<SpecName>,
    configured: BTreeSet<String>,
    rules: WithdrawalRules,
    now: Timestamp,
}

impl RefreshFindings {
    fn facts(&self) -> RefreshFacts<'_> {
        RefreshFacts {
            configured: &self.configured,
            outcomes: &self.outcomes,
            used: &self.used,
            rules: self.rules,
            now: self.now,
        }
    }
}

/// A run that writes.
struct RefreshRun<'a> {
    /// Writes versions as they are read.
    writer: tokio::sync::Mutex<Writer<'a>>,
    /// Number of items read.
    items_read: AtomicUsize,
}

/// `None` if the run only computes what would change.
type WritingRun<'a, 'b> = Option<&'a RefreshRun<'b>>;

/// Scan of one registry.
struct RegistryScan {
    registry: String,
    outcome: ListOutcome,
    fresh: BTreeMap<SpecName, OfferTerms>,
}

impl Refresh {
    /// Refreshes these registries, in the order of the configuration.
    #[must_use]
    pub fn new(
        sources: Arc<[Source]>,
        offers: OfferSettings,
        rules: WithdrawalRules,
        every: Duration,
    ) -> Self {
        Self {
            sources,
            offers,
            rules,
            every,
            pushes: Pushes::default(),
            verdicts: ItemVerdictCache::default(),
        }
    }

    /// Whether developers may push; if not, pushed services are withdrawn.
    #[must_use]
    pub fn pushes(mut self, pushes: Pushes) -> Self {
        self.pushes = pushes;
        self
    }

    pub(super) fn rules(&self) -> WithdrawalRules {
        self.rules
    }

    /// Changes that a refresh would make now. Writes nothing.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn plan(&self, collections: &Collections) -> TaskResult<Vec<RegistryChange>> {
        let (records, known) = Self::known(collections).await?;
        let findings = self.find(collections, &records, &known, None).await?;
        let plan = move || sutler_registry::reconcile(&known, &findings.facts());
        Ok(run_blocking(plan).await?)
    }

    /// Reads all records, and converts them for `sutler_registry`.
    async fn known(collections: &Collections) -> TaskResult<(RegistryRecords, KnownRegistries)> {
        let records = RegistryRecords::read(collections).await?;
        let known = move || {
            let known = records.known();
            (records, known)
        };
        Ok(run_blocking(known).await?)
    }

    /// Lists registries, and reads the usage of specs that may be withdrawn.
    async fn find(
        &self,
        collections: &Collections,
        records: &RegistryRecords,
        known: &KnownRegistries,
        writes: WritingRun<'_, '_>,
    ) -> TaskResult<RefreshFindings> {
        let (outcomes, fresh) = self.list_all(records, known, writes).await?;
        let now = Timestamp::now();
        Ok(RefreshFindings {
            used: self
                .used(collections, records, known, &outcomes, now)
                .await?,
            outcomes,
            fresh,
            configured: self.configured(),
            rules: self.rules,
            now,
        })
    }

    fn configured(&self) -> BTreeSet<String> {
        let names = self.sources.iter().map(|it| it.registry.name().to_owned());
        names.chain(self.pushes.registry()).collect()
    }

    /// Specs with instances, among those for which it matters.
    async fn used(
        &self,
        collections: &Collections,
        records: &RegistryRecords,
        known: &KnownRegistries,
        outcomes: &BTreeMap<String, ListOutcome>,
        now: Timestamp,
    ) -> TaskResult<BTreeSet<SpecName>> {
        let names = usage_candidates(known, outcomes, self.rules, now);
        if names.is_empty() {
            return Ok(names);
        }
        let uses = SpecUsage::read(collections, records).await?;
        Ok(uses.among(collections, names).await?)
    }

    async fn list_all(
        &self,
        records: &RegistryRecords,
        known: &KnownRegistries,
        writes: WritingRun<'_, '_>,
    ) -> TaskResult<(
        BTreeMap<String, ListOutcome>,
        BTreeMap<SpecName, OfferTerms>,
    )> {
        let mut scans: Vec<BoxFuture<'_, TaskResult<RegistryScan>>> = Vec::new();
        for source in self.sources.iter() {
            scans.push(Box::pin(self.scan_registry(source, records, known, writes)));
        }
        let mut scans = stream::iter(scans).buffer_unordered(REGISTRIES_AT_ONCE);
        let (mut outcomes, mut fresh) = (BTreeMap::new(), BTreeMap::new());
        while let Some(scanned) = scans.next().await {
            let scanned = scanned?;
            outcomes.insert(scanned.registry, scanned.outcome);
            fresh.extend(scanned.fresh);
        }
        Ok((outcomes, fresh))
    }

    async fn scan_registry(
        &self,
        source: &Source,
        records: &RegistryRecords,
        known: &KnownRegistries,
        writes: WritingRun<'_, '_>,
    ) -> TaskResult<RegistryScan> {
        let registry = source.registry.name();
        let offer = version::offer_of(registry, self.offers.all.clone());
        let known_as = |item: &Item| {
            let digest = item.digest.clone()?;
            let name = SpecName::new(registry, &item.to_string());
            let held = known.spec(&name);
            // Another configuration gives it other names and ids.
            let written = records.specs.get(&name);
            let offered_by = version::offered_by(&offer, source.tag_of(&name.item));
            let as_before = written.is_some_and(|it| it.value.is_offered_by(&offered_by));
            let is_held = as_before && held.is_some_and(|it| digest.is(&it.digest));
            let is_known = is_held || self.verdicts.of(&name, &digest).is_some();
            is_known.then_some(digest)
        };
        let (mut items, mut fresh) = (BTreeMap::new(), BTreeMap::new());
        let all = match scan_items(source.registry.as_ref(), &known_as, source.at_once).await {
            Ok(all) => all,
            Err(fault) => {
                return Ok(RegistryScan {
                    registry: registry.to_owned(),
                    outcome: ListOutcome::Failed(sentence(&fault.to_string())),
                    fresh,
                });
            }
        };
        let mut all = std::pin::pin!(all);
        while let Some(found) = all.next().await {
            // Yields if no item needs a request, because nothing else would.
            tokio::task::coop::consume_budget().await;
            if let Some(run) = writes {
                run.items_read.fetch_add(1, Ordering::Relaxed);
            }
            let item = found.item.to_string();
            let (outcome, read) = self.read_item(source, &item, found);
            if let Some(read) = read {
                if let Some(run) = writes {
                    let mut writer = run.writer.lock().await;
                    let put = writer.put_version(&read.terms.version, &read.record);
                    put.await.inspect_err(|_| metrics::unwritten())?;
                }
                fresh.insert(SpecName::new(registry, &item), read.terms);
            }
            items.extend(outcome.map(|outcome| (item, outcome)));
        }
        Ok(RegistryScan {
            registry: registry.to_owned(),
            outcome: ListOutcome::Complete(items),
            fresh,
        })
    }

    /// Outcome of one item, and its version if it was read.
    fn read_item(
        &self,
        source: &Source,
        item: &str,
        found: ScannedItem,
    ) -> (Option<ItemOutcome>, Option<NewVersion>) {
        let name = SpecName::new(source.registry.name(), item);
        let outcome = match found.state {
            ItemState::Known(digest) => match self.verdicts.of(&name, &digest) {
                None => Some(ItemOutcome::Same),
                Some(verdict) => Some(verdict.outcome()),
            },
            ItemState::Read(spec) => match self.read(source, &name, &spec) {
                Ok(read) => {
                    let digest = spec.digest.to_string();
                    let wants = read.wants.clone();
                    return (Some(ItemOutcome::Good { digest, wants }), Some(read));
                }
                Err(why) => {
                    let verdict = ItemVerdict::Faulty(why.clone());
                    self.verdicts.add(&name, &spec.digest, verdict);
                    Some(ItemOutcome::Faulty(why))
                }
            },
            ItemState::Failed(fault) => self.failed(&name, &fault),
        };
        (outcome, None)
    }

    /// `None`: the item counts as not listed.
    fn failed(&self, name: &SpecName, fault: &ItemError) -> Option<ItemOutcome> {
        let why = sentence(&fault.to_string());
        let verdict = match fault {
            ItemError::Gone(_) => return None,
            ItemError::NotABundle { .. } => ItemVerdict::NotABundle(why),
            ItemError::Malformed { .. } | ItemError::Denied(_) | ItemError::Transient(_) => {
                ItemVerdict::Faulty(why)
            }
        };
        if let Some(digest) = fault.verdict_on() {
            self.verdicts.add(name, digest, verdict.clone());
        }
        Some(verdict.outcome())
    }

    fn read(
        &self,
        source: &Source,
        name: &SpecName,
        spec: &sutler_registry::Spec,
    ) -> std::result::Result<NewVersion, String> {
        let offer = version::offer_of(&name.registry, self.offers.all.clone());
        let read = version::listed(name, spec, &offer, source.tag_of(&name.item));
        read.map_err(|why| sentence(&why))
    }
}

#[async_trait]
impl PeriodicTask for Refresh {
    fn name(&self) -> &str {
        REFRESH
    }

    fn every(&self) -> Duration {
        self.every
    }

    async fn run_once(&self, task: &TaskContext) -> TaskResult<()> {
        for _ in 0..TRIES {
            if self.try_once(task).await? {
                return Ok(());
            }
        }
        Err(TaskError::failed(
            "others keep writing what is known of registries; the next turn reads it again",
        ))
    }
}

impl Refresh {
    /// Returns `false` if another process wrote meanwhile. The part that was written is valid; the rest is computed
    /// again.
    async fn try_once(&self, task: &TaskContext) -> TaskResult<bool> {
        let collections = task.collections();
        let (records, known) = Self::known(collections).await?;
        let run = RefreshRun {
            writer: tokio::sync::Mutex::new(Writer::new(task, &records)),
            items_read: AtomicUsize::default(),
        };
        let finds = self.find(collections, &records, &known, Some(&run));
        let mut findings = self.with_progress(task, &run.items_read, finds).await?;
        let next = run_blocking(move || {
            let fresh = std::mem::take(&mut findings.fresh);
            RefreshResult::of(known, &findings.facts(), fresh)
        })
        .await?;
        task.progress(&format!("writing {} changes", next.changes.len()))
            .await?;
        let written = next.write(run.writer.into_inner(), &records).await;
        let written = written.inspect_err(|_| metrics::unwritten())?;
        if written {
            next.changes.iter().for_each(log_change);
        }
        run_blocking(move || drop((records, next))).await?;
        Ok(written)
    }

    /// Stores the progress from time to time.
    async fn with_progress<T>(
        &self,
        task: &TaskContext,
        items_read: &AtomicUsize,
        finds: impl Future<Output = TaskResult<T>> + Send,
    ) -> TaskResult<T> {
        let mut finds = std::pin::pin!(finds);
        let names: Vec<&str> = self.sources.iter().map(|it| it.registry.name()).collect();
        if names.is_empty() {
            return finds.await;
        }
        let names = names.join(", ");
        loop {
            let items_read = items_read.load(Ordering::Relaxed);
            task.progress(&format!("asking {names}; items looked at: {items_read}"))
                .await?;
            if let Ok(found) = tokio::time::timeout(PROGRESS_INTERVAL, &mut finds).await {
                return found;
            }
        }
    }
}

/// Shortens a text of a registry to one line that fits into a record.
fn sentence(text: &str) -> String {
    let plain = |letter: char| match letter.is_control() {
        true => ' ',
        false => letter,
    };
    let mut kept: String = text.chars().take(SENTENCE_CHARS_MAX).map(plain).collect();
    if text.chars().nth(SENTENCE_CHARS_MAX).is_some() {
        kept.push('…');
    }
    kept
}
