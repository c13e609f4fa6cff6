//! The chore that asks registries what they have, and writes down what changed.
//!
//! It is done by one replica at a time. What it finds out is decided by `sutler_registry::refresh`; it
//! writes in batches, and everything that is written is right by itself, so that a crash in the middle
//! leaves nothing to repair: the next turn goes on. What is offered follows what is written (`shop.rs`).

use super::measure;
use super::records::{
    Generation, REGISTRIES, Records, SPECS, SpecRecord, VERSIONS, VersionRecord, Written, id_of,
    put_generation, without_specs,
};
use super::shop::Pushes;
use super::used::Uses;
use super::version::{self, Fresh};
use crate::registry::Offers;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_broker::{Batch, Chore, ChoreCx, Error, Ledger, Result, Stamp};
use sutler_registry::{
    Asked, Change, Digest, Facts, Gathered, Item, ItemFault, PUSHED, Registries, Registry, Rules,
    Seen, SpecName, State, gather, in_question, refresh,
};

/// The name of the chore.
pub const REFRESH: &str = "registries";
/// Registries that are asked together.
const REGISTRIES_AT_ONCE: usize = 4;
/// Longest sentence that is kept of what is wrong with an item, in characters.
const SENTENCE_CHARS_MAX: usize = 600;
/// How often what registries said is looked at anew because somebody else wrote meanwhile.
const TRIES: u32 = 4;
/// Most verdicts on items that need not be read again; beyond that they are read again.
const VERDICTS_MAX: usize = 100_000;

/// A registry as it is configured.
#[derive(Clone)]
pub struct Source {
    /// Where bundles are found.
    pub registry: Arc<dyn Registry>,
    /// The tag under which a bundle has its own name; under every other it is an offering of its own.
    pub default_tag: String,
    /// How many items are looked at together.
    pub at_once: usize,
}

impl Source {
    /// The tag that an item's name needs.
    pub(super) fn tag_of<'a>(&self, item: &'a str) -> Option<&'a str> {
        let (_, tag) = item.rsplit_once(':')?;
        (tag != self.default_tag).then_some(tag)
    }
}

/// What is known for ever of one version of an item.
#[derive(Clone, Debug)]
enum Verdict {
    NotABundle(String),
    Faulty(String),
}

impl Verdict {
    fn seen(self) -> Seen {
        match self {
            Self::NotABundle(why) => Seen::NotABundle(why),
            Self::Faulty(why) => Seen::Faulty(why),
        }
    }
}

/// Asks registries what they have.
pub struct Refresh {
    sources: Arc<[Source]>,
    offers: Offers,
    rules: Rules,
    every: Duration,
    pushes: Pushes,
    verdicts: Mutex<HashMap<SpecName, (Digest, Verdict)>>,
}

/// What a look at one registry came to.
struct Looked {
    asked: Asked,
    fresh: BTreeMap<SpecName, Fresh>,
}

impl Refresh {
    /// Of these registries, in the order of the configuration.
    #[must_use]
    pub fn new(sources: Arc<[Source]>, offers: Offers, rules: Rules, every: Duration) -> Self {
        Self {
            sources,
            offers,
            rules,
            every,
            pushes: Pushes::default(),
            verdicts: Mutex::default(),
        }
    }

    /// Whether developers may push; if not, what they pushed is withdrawn.
    #[must_use]
    pub fn pushes(mut self, pushes: Pushes) -> Self {
        self.pushes = pushes;
        self
    }

    pub(super) fn rules(&self) -> Rules {
        self.rules
    }

    /// What would change if registries were asked now. Nothing is written.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn plan(&self, ledger: &Ledger) -> Result<Vec<Change>> {
        let records = Records::read(ledger).await?;
        let known = records.known();
        let (asked, _) = self.ask_all(&known).await;
        let now = Timestamp::now();
        let used = self.used(ledger, &records, &known, &asked, now).await?;
        let configured = self.configured();
        let facts = Facts {
            configured: &configured,
            asked: &asked,
            used: &used,
            rules: self.rules,
            now,
        };
        Ok(sutler_registry::plan(&known, &facts))
    }

    fn configured(&self) -> BTreeSet<String> {
        let names = self.sources.iter().map(|it| it.registry.name().to_owned());
        names.chain(self.pushes.registry()).collect()
    }

    /// The specs that instances were made of, as far as it matters.
    async fn used(
        &self,
        ledger: &Ledger,
        records: &Records,
        known: &Registries,
        asked: &BTreeMap<String, Asked>,
        now: Timestamp,
    ) -> Result<BTreeSet<SpecName>> {
        let names = in_question(known, asked, self.rules, now);
        if names.is_empty() {
            return Ok(names);
        }
        let uses = Uses::read(ledger, records).await?;
        Ok(uses.among(ledger, names).await?)
    }

    async fn ask_all(
        &self,
        known: &Registries,
    ) -> (BTreeMap<String, Asked>, BTreeMap<SpecName, Fresh>) {
        let mut looks: Vec<BoxFuture<'_, (String, Looked)>> = Vec::new();
        for source in self.sources.iter() {
            looks.push(Box::pin(self.look(source, known)));
        }
        let mut looks = stream::iter(looks).buffer_unordered(REGISTRIES_AT_ONCE);
        let (mut asked, mut fresh) = (BTreeMap::new(), BTreeMap::new());
        while let Some((name, looked)) = looks.next().await {
            asked.insert(name, looked.asked);
            fresh.extend(looked.fresh);
        }
        (asked, fresh)
    }

    async fn look(&self, source: &Source, known: &Registries) -> (String, Looked) {
        let registry = source.registry.name();
        let known_as = |item: &Item| {
            let digest = item.digest.clone()?;
            let name = SpecName::new(registry, &item.to_string());
            let held = known.spec(&name).map(|held| held.digest.as_str());
            let is_known = held == Some(digest.as_str()) || self.verdict(&name, &digest).is_some();
            is_known.then_some(digest)
        };
        let looked = match gather(source.registry.as_ref(), &known_as, source.at_once).await {
            Ok(gathered) => self.made_of(source, gathered),
            Err(fault) => Looked {
                asked: Asked::Failed(sentence(&fault.to_string())),
                fresh: BTreeMap::new(),
            },
        };
        (registry.to_owned(), looked)
    }

    fn made_of(&self, source: &Source, gathered: Gathered) -> Looked {
        let registry = source.registry.name();
        let (mut items, mut fresh) = (BTreeMap::new(), BTreeMap::new());
        for found in gathered.found {
            let item = found.item.to_string();
            let name = SpecName::new(registry, &item);
            let seen = match found.state {
                State::Known(digest) => match self.verdict(&name, &digest) {
                    None => Some(Seen::Same),
                    Some(verdict) => Some(verdict.seen()),
                },
                State::Read(spec) => match self.read(source, &name, &spec) {
                    Ok(read) => {
                        let digest = spec.digest.to_string();
                        let wants = read.wants.clone();
                        fresh.insert(name, read);
                        Some(Seen::Good { digest, wants })
                    }
                    Err(why) => {
                        self.judge(&name, &spec.digest, Verdict::Faulty(why.clone()));
                        Some(Seen::Faulty(why))
                    }
                },
                State::Failed(fault) => self.failed(&name, &fault),
            };
            items.extend(seen.map(|seen| (item, seen)));
        }
        Looked {
            asked: Asked::Complete(items),
            fresh,
        }
    }

    /// `None`: it counts as not listed.
    fn failed(&self, name: &SpecName, fault: &ItemFault) -> Option<Seen> {
        let why = sentence(&fault.to_string());
        let verdict = match fault {
            ItemFault::Gone(_) => return None,
            ItemFault::NotABundle { .. } => Verdict::NotABundle(why),
            ItemFault::Malformed { .. } | ItemFault::Denied(_) | ItemFault::Transient(_) => {
                Verdict::Faulty(why)
            }
        };
        if let Some(digest) = fault.verdict_on() {
            self.judge(name, digest, verdict.clone());
        }
        Some(verdict.seen())
    }

    fn read(
        &self,
        source: &Source,
        name: &SpecName,
        spec: &sutler_registry::Spec,
    ) -> std::result::Result<Fresh, String> {
        let offer = version::offer_of(&name.registry, self.offers.all.clone());
        let read = version::read(name, spec, &offer, source.tag_of(&name.item));
        read.map_err(|why| sentence(&why))
    }

    fn verdict(&self, name: &SpecName, digest: &Digest) -> Option<Verdict> {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, verdict) = verdicts.get(name)?;
        (of == digest).then(|| verdict.clone())
    }

    fn judge(&self, name: &SpecName, digest: &Digest, verdict: Verdict) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if verdicts.len() >= VERDICTS_MAX {
            verdicts.clear();
        }
        verdicts.insert(name.clone(), (digest.clone(), verdict));
    }
}

#[async_trait]
impl Chore for Refresh {
    fn name(&self) -> &str {
        REFRESH
    }

    fn every(&self) -> Duration {
        self.every
    }

    async fn turn(&self, cx: &ChoreCx) -> Result<()> {
        for _ in 0..TRIES {
            if self.turned(cx).await? {
                return Ok(());
            }
        }
        Err(Error::failed(
            "others keep writing what is known of registries; the next turn reads it again",
        ))
    }
}

impl Refresh {
    /// `false`: somebody else wrote meanwhile. What was written is right, and the rest is to be found out anew.
    async fn turned(&self, cx: &ChoreCx) -> Result<bool> {
        let ledger = cx.ledger();
        let records = Records::read(ledger).await?;
        let known = records.known();
        let count = self.sources.len();
        cx.progress(&format!("asking {count} registries")).await?;
        let (asked, fresh) = self.ask_all(&known).await;
        let now = Timestamp::now();
        let used = self.used(ledger, &records, &known, &asked, now).await?;
        let configured = self.configured();
        let facts = Facts {
            configured: &configured,
            asked: &asked,
            used: &used,
            rules: self.rules,
            now,
        };
        let changes = refresh(&known, &facts);
        cx.progress(&format!("writing {} changes", changes.len()))
            .await?;
        let mut after = known.clone();
        changes.iter().for_each(|change| after.apply(change));
        let next = Next {
            before: &known,
            after: &after,
            fresh: &fresh,
        };
        let written = write(cx, &records, &next).await;
        if !written.inspect_err(|_| measure::unwritten())? {
            return Ok(false);
        }
        changes.iter().for_each(tell);
        Ok(true)
    }
}

/// What is to be written.
struct Next<'a> {
    before: &'a Registries,
    after: &'a Registries,
    fresh: &'a BTreeMap<SpecName, Fresh>,
}

/// Writes what is other than before, in batches, between two states of the generation. `false`: somebody else
/// wrote meanwhile.
async fn write(cx: &ChoreCx, records: &Records, next: &Next<'_>) -> Result<bool> {
    let mut writer = Writer::begin(cx, records).await?;
    for (registry, its) in &next.after.0 {
        let was = records.registries.get(registry);
        let its = without_specs(its);
        // What was pushed is of no registry that is asked.
        if registry != PUSHED && was.is_none_or(|was| was.value != its) {
            let stamp = was.map(|it| it.stamp);
            writer
                .put(|batch| batch.put(REGISTRIES, registry, stamp, &its))
                .await?;
        }
    }
    for (name, held) in next.after.specs() {
        if next.before.spec(&name) == Some(held) {
            continue;
        }
        let was = records.specs.get(&name);
        let fresh = next.fresh.get(&name);
        let record = match (fresh, was) {
            (Some(fresh), _) => fresh.named(&name, held),
            (None, Some(was)) => SpecRecord {
                held: held.clone(),
                ..was.value.clone()
            },
            (None, None) => continue,
        };
        if let Some(fresh) = fresh {
            writer.put_version(cx.ledger(), fresh).await?;
        }
        let stamp = was.map(|it| it.stamp);
        writer
            .put(|batch| batch.put(SPECS, &id_of(&name), stamp, &record))
            .await?;
    }
    writer.end().await
}

/// A sentence as it is kept and told: what others wrote must fit into a record, and onto a line.
fn sentence(said: &str) -> String {
    let plain = |letter: char| match letter.is_control() {
        true => ' ',
        false => letter,
    };
    let mut kept: String = said.chars().take(SENTENCE_CHARS_MAX).map(plain).collect();
    if said.chars().nth(SENTENCE_CHARS_MAX).is_some() {
        kept.push('…');
    }
    kept
}

/// Tells a change, once it is written down.
pub(super) fn tell(change: &Change) {
    measure::changed(change);
    let registry = change.registry();
    let word = change.word();
    match (change.is_trouble(), change) {
        (true, _) => tracing::warn!(registry, change = word, "{change}"),
        (false, Change::Listed { .. }) => tracing::debug!(registry, change = word, "{change}"),
        (false, _) => tracing::info!(registry, change = word, "{change}"),
    }
}

/// Writes records in batches, each of them whole.
pub(super) struct Writer<'a> {
    cx: &'a ChoreCx,
    batch: Option<Batch<'a>>,
    number: u64,
    generation: Option<Stamp>,
    begun: bool,
    /// Somebody else wrote: nothing more is written.
    stale: bool,
    versions: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    pub(super) async fn begin(cx: &'a ChoreCx, records: &Records) -> Result<Self> {
        let generation = records.generation.as_ref();
        Ok(Self {
            cx,
            batch: None,
            number: records.number(),
            generation: generation.map(|it| it.stamp),
            // Somebody died in the middle: it is ended now, whatever there is to write.
            begun: generation.is_some_and(|it| it.value.dirty),
            stale: false,
            versions: BTreeSet::new(),
        })
    }

    pub(super) async fn put(
        &mut self,
        add: impl FnOnce(Batch<'a>) -> Batch<'a> + Send,
    ) -> Result<()> {
        if self.stale {
            return Ok(());
        }
        if !self.begun {
            self.flip(true).await?;
            self.begun = true;
        }
        let batch = self.batch.take().unwrap_or_else(|| self.cx.batch());
        let batch = add(batch);
        match batch.is_full() {
            true => self.commit(batch).await,
            false => {
                self.batch = Some(batch);
                Ok(())
            }
        }
    }

    /// Writes a version that a spec is about to name. One that is there is written again: whoever is about
    /// to delete it must notice.
    async fn put_version(&mut self, ledger: &Ledger, fresh: &Fresh) -> Result<()> {
        if !self.versions.insert(fresh.digest.clone()) {
            return Ok(());
        }
        let was = ledger.get::<VersionRecord>(VERSIONS, &fresh.digest).await?;
        let stamp = was.map(|it| it.stamp);
        self.put(|batch| batch.put(VERSIONS, &fresh.digest, stamp, &fresh.record))
            .await
    }

    async fn commit(&mut self, batch: Batch<'a>) -> Result<()> {
        self.stale |= !self.cx.write(batch).await?;
        Ok(())
    }

    /// Begins or ends a generation.
    async fn flip(&mut self, dirty: bool) -> Result<()> {
        let number = self.number + u64::from(!dirty);
        let next = Generation { number, dirty };
        let batch = put_generation(self.cx.batch(), self.generation, next);
        self.commit(batch).await?;
        let written: Option<Written<Generation>> =
            super::records::generation(self.cx.ledger()).await?;
        self.generation = written.map(|it| it.stamp);
        self.number = number;
        Ok(())
    }

    /// Whether all of it was written.
    pub(super) async fn end(mut self) -> Result<bool> {
        if let Some(batch) = self.batch.take().filter(|_| !self.stale) {
            self.commit(batch).await?;
        }
        if self.begun && !self.stale {
            self.flip(false).await?;
        }
        Ok(!self.stale)
    }
}
