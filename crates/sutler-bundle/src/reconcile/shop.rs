//! What this process offers: the bundles of folders, and those of registries as they are written down.
//!
//! Every replica follows what is written, whoever wrote it, and replaces its catalog as a whole. Each
//! offering of a registry stands on its spec's record: a provision is accepted only while that is as it was
//! offered. Folders come first; of two that want the same name or id the first is offered, and both are told.
//! What developers push is in `shop/push.rs`.

mod push;

pub use push::Pushes;

use super::bundles::{self, BundlesView};
use super::measure;
use super::records::{
    Records, SPECS, SpecRecord, VERSIONS, VersionRecord, Written, generation, id_of, pushes,
};
use super::refresh::{REFRESH, Refresh, Source};
use super::version;
use super::view::{self, RegistriesView, RegistryView};
use super::withdrawn::Withdrawn;
use crate::catalog::{Collision, side_by_side};
use crate::registry::{Listed, Offers, Snapshot};
use crate::service::{Archive, BundleService};
use crate::shelf::{Bundle, Shelf};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use sutler_broker::{Entry, Footing, Keeper, Ledger, LedgerFault, Running, Stamp, Standing};
use sutler_registry::{Change, SpecName, offered};

/// How often it is looked whether something else is written down.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// What the shop is made of.
pub struct ShopParts {
    /// The registries, in the order of the configuration.
    pub sources: Arc<[Source]>,
    /// How bundles are offered.
    pub offers: Offers,
    /// Where versions are looked for.
    pub shelf: Arc<Shelf>,
    /// Who serves what is offered.
    pub service: Arc<BundleService>,
    /// Who asks registries.
    pub refresh: Arc<Refresh>,
    /// Whether developers may push services.
    pub pushes: Pushes,
}

/// Why nothing else can be offered now. What was offered stays.
#[derive(Debug, thiserror::Error)]
pub enum ShopFault {
    /// The records cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerFault),
    /// The offerings make no catalog.
    #[error("the bundles make no catalog: {0}")]
    Catalog(String),
    /// The broker cannot take the catalog.
    #[error("the catalog cannot be replaced: {0}")]
    Replace(#[from] Box<sutler_broker::BuildError>),
    /// The broker has no records.
    #[error("the broker keeps no records of registries; start it with its chores")]
    NoLedger,
}

/// What this process offers.
pub struct Shop {
    parts: ShopParts,
    running: Running,
    ledger: Ledger,
    window: tokio::sync::Mutex<Window>,
    /// What was last read of plans that are not offered any more.
    withdrawn: RwLock<Withdrawn>,
}

/// What is offered now.
#[derive(Default)]
struct Window {
    folders: Arc<Snapshot>,
    /// The state of all records that is offered.
    generation: Option<Stamp>,
    /// What developers had pushed by then.
    pushes: Option<Stamp>,
    /// What was made of each spec, by the state of its record.
    made: BTreeMap<SpecName, (Stamp, Listed)>,
    /// What is wrong with those of which nothing could be made.
    faults: Vec<String>,
}

impl Shop {
    /// A shop of a running broker, with the bundles of folders. Offers what is known.
    ///
    /// # Errors
    /// See [`ShopFault`].
    pub async fn open(
        parts: ShopParts,
        running: Running,
        folders: Arc<Snapshot>,
    ) -> Result<Arc<Self>, ShopFault> {
        measure::describe();
        let ledger = running.ledger().ok_or(ShopFault::NoLedger)?;
        let shop = Arc::new(Self {
            parts,
            ledger,
            running,
            window: tokio::sync::Mutex::new(Window {
                folders,
                ..Window::default()
            }),
            withdrawn: RwLock::default(),
        });
        let archive: Arc<dyn Archive> = shop.clone();
        shop.parts.service.look_in(Arc::downgrade(&archive));
        shop.fetch_versions().await?;
        let mut window = shop.window.lock().await;
        shop.read_again(&mut window).await?;
        shop.publish(&window).await?;
        drop(window);
        shop.running.keep_catalog(shop.clone());
        Ok(shop)
    }

    /// Offers other bundles of folders from now on.
    ///
    /// # Errors
    /// See [`ShopFault`]; what was offered stays.
    pub async fn offer_folders(&self, folders: Arc<Snapshot>) -> Result<(), ShopFault> {
        let mut window = self.window.lock().await;
        window.folders = folders;
        self.publish(&window).await
    }

    /// Follows what is written down, for as long as it is polled.
    pub async fn follow(&self) {
        loop {
            tokio::time::sleep(FOLLOW_EVERY).await;
            if let Err(error) = self.catch_up_with(Haste::WhenWhole).await {
                tracing::warn!(%error, "what registries have cannot be offered now, what was offered stays");
            }
        }
    }

    /// What operators are shown of all registries. What is shown as served is offered by this process.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn view(&self) -> Result<RegistriesView, LedgerFault> {
        let refresh = self.running.chore_status(REFRESH).await?;
        self.catch_up().await;
        let records = Records::read(&self.ledger).await?;
        Ok(view::all(&records, &self.order(), refresh))
    }

    /// What operators are shown of one registry, if there is one of that name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn view_of(&self, registry: &str) -> Result<Option<RegistryView>, LedgerFault> {
        let records = Records::read(&self.ledger).await?;
        Ok(view::one(&records, &self.order(), registry))
    }

    /// What operators are shown of all bundles, those of folders too.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn bundles(&self) -> Result<BundlesView, LedgerFault> {
        self.catch_up().await;
        let folders = self.window.lock().await.folders.clone();
        let records = Records::read(&self.ledger).await?;
        let published = self.parts.service.snapshot();
        let found = |version: &str| self.parts.shelf.kept(version);
        Ok(bundles::all(&records, &folders, &published, found))
    }

    /// What would change if registries were asked now.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn plan(&self) -> sutler_broker::Result<Vec<Change>> {
        self.parts.refresh.plan(&self.ledger).await
    }

    /// Has registries asked now; says the number to wait for.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn refresh(&self) -> Result<u64, LedgerFault> {
        self.running.ask_for(REFRESH).await
    }

    fn order(&self) -> Vec<String> {
        let sources = self.parts.sources.iter();
        let names = sources.map(|it| it.registry.name().to_owned());
        names.chain(self.parts.pushes.registry()).collect()
    }

    /// Whether there is any registry that could be asked.
    pub(super) fn has_registry(&self) -> bool {
        !self.parts.sources.is_empty()
    }

    /// Takes in every version, those that only instances still need, too.
    async fn fetch_versions(&self) -> Result<(), ShopFault> {
        let shelf = &self.parts.shelf;
        let mut faults = Vec::new();
        let keep = |it: Entry<VersionRecord>| match version::bundle(&it.id, &it.value) {
            Ok(bundle) => {
                shelf.keep(bundle);
            }
            Err(why) => faults.push(format!("{}: {why}", it.value.spec)),
        };
        self.ledger.each(VERSIONS, keep).await?;
        for fault in faults {
            tracing::error!("a version of a bundle cannot be read: {fault}");
        }
        Ok(())
    }

    async fn catch_up_with(&self, haste: Haste) -> Result<(), ShopFault> {
        let mut window = self.window.lock().await;
        let now = generation(&self.ledger).await?;
        let pushed = pushes(&self.ledger).await?.map(|it| it.stamp);
        let same = now.as_ref().map(|it| it.stamp) == window.generation && pushed == window.pushes;
        let whole = now.as_ref().is_none_or(|it| !it.value.dirty);
        let reads = match haste {
            Haste::WhenWhole => !same && whole,
            Haste::AtOnce => !same || !whole,
        };
        if reads && self.read_again(&mut window).await? {
            self.publish(&window).await?;
        }
        Ok(())
    }

    /// Reads all records, and makes something of those that changed. Whether there is anything else to offer.
    async fn read_again(&self, window: &mut Window) -> Result<bool, ShopFault> {
        let records = Records::read(&self.ledger).await?;
        let known = records.known();
        for (registry, its) in &known.0 {
            measure::standing(registry, its);
        }
        let order = self.order();
        let mut made = BTreeMap::new();
        let mut faults = Vec::new();
        let mut changed = false;
        let offered = offered(&known, &order);
        for (name, _) in &offered.specs {
            let Some(written) = records.specs.get(name) else {
                continue;
            };
            let kept = window.made.remove(name);
            match kept.filter(|(stamp, _)| *stamp == written.stamp) {
                Some(kept) => {
                    made.insert(name.clone(), kept);
                }
                None => {
                    changed = true;
                    match self.made_of(written).await? {
                        Ok(listed) => {
                            made.insert(name.clone(), (written.stamp, listed));
                        }
                        Err(why) => faults.push(format!("{name}: {why}")),
                    }
                }
            }
        }
        changed |= !window.made.is_empty();
        faults.extend(offered.conflicts.iter().map(ToString::to_string));
        window.made = made;
        window.generation = records.generation.as_ref().map(|it| it.stamp);
        window.pushes = records.pushes;
        changed |= window.faults != faults;
        window.faults = faults;
        let withdrawn = Withdrawn::of(records.specs.values().map(|it| &it.value));
        *self
            .withdrawn
            .write()
            .unwrap_or_else(PoisonError::into_inner) = withdrawn;
        Ok(changed)
    }

    async fn made_of(
        &self,
        written: &Written<SpecRecord>,
    ) -> Result<Result<Listed, String>, ShopFault> {
        let record = &written.value;
        let bundle = match self.version(&record.version).await? {
            Ok(bundle) => bundle,
            Err(why) => return Ok(Err(why)),
        };
        let offer = self.parts.offers.of(&bundle.manifest.name);
        let offer = version::offer_of(&record.name.registry, offer);
        let mut sources = self.parts.sources.iter();
        let source = sources.find(|it| it.registry.name() == record.name.registry);
        let tag = source.and_then(|it| it.tag_of(&record.name.item));
        Ok(Ok(Listed {
            folder: PathBuf::from(record.name.to_string()),
            spec: version::offered(&bundle, &offer, tag),
            bundle,
        }))
    }

    /// A version, from this host or from the records.
    async fn version(&self, digest: &str) -> Result<Result<Arc<Bundle>, String>, ShopFault> {
        if let Some(bundle) = self.parts.shelf.kept(digest) {
            return Ok(Ok(bundle));
        }
        let found = self.ledger.get::<VersionRecord>(VERSIONS, digest).await?;
        let Some(found) = found else {
            return Ok(Err(format!(
                "its version {digest} is not written down; refresh registries"
            )));
        };
        let bundle = version::bundle(digest, &found.value);
        Ok(bundle.map(|bundle| self.parts.shelf.keep(bundle)))
    }

    /// Offers all of it, as a whole.
    async fn publish(&self, window: &Window) -> Result<(), ShopFault> {
        let made = window.made.values().map(|(_, listed)| listed);
        let all: Vec<&Listed> = window.folders.listed.iter().chain(made).collect();
        let named = |it: &&Listed| (it.folder.display().to_string(), it.spec.clone());
        let (kept, collisions) = side_by_side(all.iter().map(named));
        let kept: BTreeSet<String> = kept.into_iter().map(|(name, _)| name).collect();
        let is_kept = |it: &&Listed| kept.contains(&it.folder.display().to_string());
        let mut snapshot = window.folders.as_ref().clone();
        snapshot.listed = all.into_iter().filter(is_kept).cloned().collect();
        let told = window.faults.iter().cloned();
        for fault in told.chain(collisions.iter().map(Collision::to_string)) {
            tracing::error!("bundle: {fault}");
            snapshot.faults.push(fault);
        }
        let catalog = snapshot.catalog();
        let catalog = catalog.map_err(|faults| ShopFault::Catalog(faults.to_string()))?;
        let footings = window.made.iter().map(|(name, (stamp, listed))| {
            let footing = Footing {
                collection: SPECS,
                id: id_of(name),
                stamp: *stamp,
            };
            (listed.spec.id.clone().unwrap_or_default(), footing)
        });
        let folders = window.folders.listed.iter();
        let own: BTreeSet<&str> = folders.filter_map(|it| it.spec.id.as_deref()).collect();
        let footings: Vec<(String, Footing)> = footings
            .filter(|(service, _)| !own.contains(service.as_str()))
            .collect();
        let replaced = self.running.replace_catalog_on(catalog, footings).await;
        replaced.map_err(Box::new)?;
        self.parts.service.offer(Arc::new(snapshot));
        Ok(())
    }
}

/// When records are read that somebody is in the middle of writing.
#[derive(Clone, Copy)]
enum Haste {
    /// When they are whole.
    WhenWhole,
    /// Now: each of them is right by itself.
    AtOnce,
}

#[async_trait]
impl Archive for Shop {
    async fn find(&self, digest: &str) -> Result<Option<Arc<Bundle>>, String> {
        match self.version(digest).await {
            Ok(found) => Ok(found.ok()),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

#[async_trait]
impl Keeper for Shop {
    async fn catch_up(&self) {
        if let Err(error) = self.catch_up_with(Haste::AtOnce).await {
            tracing::warn!(%error, "what registries have cannot be offered now, what was offered stays");
        }
    }

    async fn standing(&self, service_id: &str, plan_id: &str) -> Standing {
        let refreshing = match self.running.chore_status(REFRESH).await {
            // Before the first is over, nobody knows what there is.
            Ok(status) => {
                let waits = status.asked > status.served;
                status.running_since.is_some() || status.ended.is_none() || waits
            }
            Err(_) => false,
        };
        let withdrawn = self
            .withdrawn
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let sentence = withdrawn.sentence(service_id, plan_id);
        Standing {
            withdrawn: sentence.map(str::to_owned),
            refreshing,
        }
    }
}
