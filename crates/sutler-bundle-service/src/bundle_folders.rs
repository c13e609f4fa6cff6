//! Watched folders of bundles: which bundles they offer, and the faults of the others.
//!
//! A bundle counts as removed only if two listings of its folder lack it and a grace period has passed: an editor or
//! a checkout may restore it at once. A bundle that cannot be read keeps its last good version; one that changes is
//! read once it has stopped changing (`bundle_folders/folder_state.rs`). Each folder is a registry
//! (`bundle_folders/folder_registry.rs`) of this host only and is not stored. Copies are kept by `version_store.rs`;
//! a [`Snapshot`] becomes a catalog elsewhere.

mod fingerprint;
mod folder_registry;
mod folder_state;

pub use folder_registry::FolderRegistry;

use crate::service::runnable;
use crate::version_store::{Bundle, VersionStore};
use folder_state::{FolderState, catch_panic};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_bundle::{Action, Collision, Offer, offering, resolve_collisions};
use sutler_osb::{Catalog, CatalogFaults, ServiceSpec};

/// Maximum bundles of all folders together.
pub const BUNDLES_MAX: usize = 1_000;

/// How bundles are offered: common settings, and settings per bundle.
#[derive(Clone, Debug, Default)]
pub struct OfferSettings {
    /// Settings of all bundles.
    pub all: Offer,
    /// Parameters that the operator answers, by bundle.
    pub answered: BTreeMap<String, BTreeSet<String>>,
}

impl OfferSettings {
    pub(crate) fn of(&self, bundle: &str) -> Offer {
        let mut offer = self.all.clone();
        offer.answered = self.answered.get(bundle).cloned().unwrap_or_default();
        offer
    }
}

/// An offered bundle.
#[derive(Clone, Debug)]
pub struct FoundBundle {
    /// Its folder.
    pub folder: PathBuf,
    /// The offered version.
    pub bundle: Arc<Bundle>,
    /// Its catalog entry.
    pub spec: ServiceSpec,
}

/// Bundles that are offered at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Offered bundles, in the order of folders and names.
    pub listed: Vec<FoundBundle>,
    /// Faults of the other bundles; each names a folder and says what to do.
    pub faults: Vec<String>,
    /// Digests of all versions that a later scan may offer without reading them again.
    pub held: BTreeSet<String>,
    /// Offered images, by service id.
    pub(crate) images: Arc<HashMap<String, Arc<OfferedImage>>>,
}

/// An offered image: the part of it that is held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedImage {
    /// Digest of the offered version.
    pub version: String,
    pub service_id: String,
    pub service_name: String,
    /// Name and version in the manifest.
    pub bundle: String,
    pub bundle_version: Option<String>,
    /// Ids and names of the plans.
    pub plans: Box<[(String, String)]>,
}

impl Snapshot {
    /// Catalog of this snapshot.
    ///
    /// # Errors
    /// The offerings conflict with each other; each by itself was checked when it was read.
    pub fn catalog(&self) -> Result<Catalog, CatalogFaults> {
        Catalog::load(self.listed.iter().map(|it| it.spec.clone()).collect())
    }

    /// Digests of the offered versions.
    #[must_use]
    pub fn digests(&self) -> Vec<&str> {
        let listed = self.listed.iter();
        listed.map(|it| it.bundle.digest.as_str()).collect()
    }

    /// Whether two snapshots offer and hold the same versions and have the same faults.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.digests() == other.digests() && self.faults == other.faults && self.held == other.held
    }
}

/// Folders of bundles.
pub struct BundleFolders {
    roots: Vec<FolderRegistry>,
    offers: OfferSettings,
    grace: Duration,
    known: BTreeMap<PathBuf, FolderState>,
    /// Last listing of each root.
    listings: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// The last snapshot.
    last: Snapshot,
}

impl BundleFolders {
    /// Watches these folders: each is a bundle, or has bundles as its sub-folders.
    #[must_use]
    pub fn new(
        roots: Vec<PathBuf>,
        version_store: Arc<VersionStore>,
        offers: OfferSettings,
    ) -> Self {
        let root = |root: PathBuf| FolderRegistry::new(root, version_store.clone());
        Self {
            roots: roots.into_iter().map(root).collect(),
            offers,
            grace: Duration::ZERO,
            known: BTreeMap::new(),
            listings: BTreeMap::new(),
            last: Snapshot::default(),
        }
    }

    /// Sets how long a bundle must be missing, in more than one scan, before it is withdrawn.
    #[must_use]
    pub fn withdrawn_after(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Scans all folders. Blocks, and never panics. A changed bundle is read when it did not change between the last
    /// two scans; in the first scan, at once.
    pub fn look(&mut self) -> Snapshot {
        let now = Instant::now();
        match catch_panic(|| self.look_at(now)) {
            Ok(snapshot) => self.last = snapshot,
            Err(sentence) => {
                let sentence = format!("bundles cannot be looked at: {sentence}");
                if !self.last.faults.contains(&sentence) {
                    self.last.faults.push(sentence);
                }
            }
        }
        self.last.clone()
    }

    fn look_at(&mut self, now: Instant) -> Snapshot {
        let mut faults = Vec::new();
        let mut folders: Vec<(PathBuf, FolderRegistry)> = Vec::new();
        for root in self.roots.clone() {
            match root.folders() {
                Ok(found) => {
                    let there = self.with_missing(root.root(), found, now);
                    self.listings.insert(root.root().to_owned(), there);
                }
                // The previous listing stays valid.
                Err(fault) => faults.push(fault.to_string()),
            }
            let listed = self.listings.get(root.root()).into_iter().flatten();
            folders.extend(listed.map(|it| (it.clone(), root.clone())));
        }
        if folders.len() > BUNDLES_MAX {
            let count = folders.len();
            let sentence = format!(
                "there are {count} bundles, and only the first {BUNDLES_MAX} are offered: use fewer"
            );
            faults.push(sentence);
            folders.truncate(BUNDLES_MAX);
        }
        let is_there = |folder: &PathBuf| folders.iter().any(|(it, _)| it == folder);
        self.known.retain(|folder, _| is_there(folder));
        for (folder, root) in &folders {
            let known = self.known.entry(folder.clone()).or_default();
            known.examine(folder, now, &|folder| root.take_in(folder));
            faults.extend(known.fault(folder));
        }
        let folders: Vec<PathBuf> = folders.into_iter().map(|(it, _)| it).collect();
        self.offered(&folders, faults)
    }

    /// Bundles of a root, including missing ones that are not yet gone.
    fn with_missing(&mut self, root: &Path, mut found: Vec<PathBuf>, now: Instant) -> Vec<PathBuf> {
        let before = self.listings.get(root).into_iter().flatten();
        let missing: Vec<PathBuf> = before.filter(|it| !found.contains(it)).cloned().collect();
        for folder in &found {
            if let Some(known) = self.known.get_mut(folder) {
                known.is_there();
            }
        }
        for folder in missing {
            let known = self.known.get_mut(&folder);
            if known.is_some_and(|it| it.is_missing(now, self.grace)) {
                found.push(folder);
            }
        }
        found.sort_unstable();
        found
    }

    /// Offers all readable bundles, without those that collide.
    fn offered(&self, folders: &[PathBuf], mut faults: Vec<String>) -> Snapshot {
        let all = folders
            .iter()
            .filter_map(|folder| Some((folder, self.known.get(folder)?)));
        let (missing, there): (Vec<_>, Vec<_>) = all.partition(|(_, known)| known.was_missing());
        // A moved bundle is found twice until it is gone from its old folder.
        let moved = |bundle: &Bundle| {
            let mut there = there.iter().filter_map(|(_, known)| known.good.as_ref());
            there.any(|it| it.manifest.name == bundle.manifest.name)
        };
        let mut good: Vec<(&PathBuf, &Arc<Bundle>)> = there
            .iter()
            .chain(&missing)
            .filter_map(|(folder, known)| Some((*folder, known.good.as_ref()?)))
            .collect();
        good.retain(|(folder, bundle)| {
            let is_missing = missing.iter().any(|it| it.0 == *folder);
            !(is_missing && moved(bundle))
        });
        good.sort_by_key(|(folder, _)| folders.iter().position(|it| it == *folder));
        let specs = good.iter().map(|(folder, bundle)| {
            let offer = self.offers.of(&bundle.manifest.name);
            let spec = with_origin(offering(&bundle.manifest, &offer), bundle);
            (folder.display().to_string(), spec)
        });
        let (kept, collisions) = resolve_collisions(specs);
        faults.extend(collisions.iter().map(Collision::to_string));
        let by_name: BTreeMap<String, &Arc<Bundle>> = good
            .iter()
            .map(|(folder, bundle)| (folder.display().to_string(), *bundle))
            .collect();
        let listed = kept.into_iter().filter_map(|(name, spec)| {
            let bundle = (*by_name.get(&name)?).clone();
            let folder = PathBuf::from(name);
            Some(FoundBundle {
                folder,
                bundle,
                spec,
            })
        });
        let held = self.known.values().filter_map(|it| it.good.as_ref());
        Snapshot {
            listed: listed.collect(),
            faults,
            held: held.map(|it| it.digest.clone()).collect(),
            images: Arc::default(),
        }
    }
}

/// Adds the version of the bundle to every plan. A bundle that cannot run an update is not offered as an upgrade.
pub(crate) fn with_origin(mut spec: ServiceSpec, bundle: &Bundle) -> ServiceSpec {
    let updates = runnable(bundle, Action::Update).is_some();
    for plan in spec.plans.iter_mut().flatten() {
        plan.origin = Some(bundle.digest.clone());
        plan.maintenance_info = plan.maintenance_info.take().filter(|_| updates);
    }
    spec
}

#[cfg(test)]
mod tests;
