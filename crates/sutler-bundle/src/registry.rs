//! Folders of bundles, looked at again and again: what is offered now, and what is wrong with the rest.
//!
//! A bundle is gone only if its folder was listed and it was not there. One that cannot be read keeps its
//! last good version. One that changes is taken in once it has stopped changing. Nothing here serves
//! anything: a [`Snapshot`] becomes a catalog, and the shelf keeps the copies (`shelf.rs`).

mod look;

use crate::catalog::{Collision, Offer, offering, side_by_side};
use crate::shelf::{Bundle, Shelf};
use look::{Fingerprint, Listing};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sutler_osb::{Catalog, CatalogFaults, ServiceSpec};

/// Most bundles of all folders together.
pub const BUNDLES_MAX: usize = 1_000;

/// How bundles are offered, for all of them and for each.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// For all of them.
    pub all: Offer,
    /// Parameters that the operator answers, by bundle.
    pub answered: BTreeMap<String, BTreeSet<String>>,
}

impl Offers {
    fn of(&self, bundle: &str) -> Offer {
        let mut offer = self.all.clone();
        offer.answered = self.answered.get(bundle).cloned().unwrap_or_default();
        offer
    }
}

/// A bundle that is offered.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its folder.
    pub folder: PathBuf,
    /// What is offered of it.
    pub bundle: Arc<Bundle>,
    /// As a platform sees it.
    pub spec: ServiceSpec,
}

/// What there is at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// What is offered, in the order of folders and names.
    pub listed: Vec<Listed>,
    /// What is wrong with the rest; each sentence names a folder and says what to do.
    pub faults: Vec<String>,
}

impl Snapshot {
    /// The catalog of it.
    ///
    /// # Errors
    /// The offerings do not go together; each by itself was checked when it was read.
    pub fn catalog(&self) -> Result<Catalog, CatalogFaults> {
        Catalog::load(self.listed.iter().map(|it| it.spec.clone()).collect())
    }

    /// The digests of what is offered.
    #[must_use]
    pub fn digests(&self) -> Vec<&str> {
        let listed = self.listed.iter();
        listed.map(|it| it.bundle.digest.as_str()).collect()
    }

    /// Whether two snapshots offer and complain about the same.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.digests() == other.digests() && self.faults == other.faults
    }
}

/// What is known of one bundle's folder.
#[derive(Default)]
struct Known {
    /// As it was when it was last taken in, or refused.
    taken: Option<Fingerprint>,
    /// As it was at the last look.
    seen: Option<Fingerprint>,
    good: Option<Arc<Bundle>>,
    fault: Option<String>,
}

/// Folders of bundles.
pub struct Folders {
    roots: Vec<PathBuf>,
    shelf: Arc<Shelf>,
    offers: Offers,
    known: BTreeMap<PathBuf, Known>,
    /// What each root listed last.
    listings: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl Folders {
    /// Folders that are bundles, or that have bundles as their sub-folders.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>, shelf: Arc<Shelf>, offers: Offers) -> Self {
        Self {
            roots,
            shelf,
            offers,
            known: BTreeMap::new(),
            listings: BTreeMap::new(),
        }
    }

    /// Looks at everything. Blocks. What changed since the last look is taken in when it did not change
    /// between the last two; at the very first look, at once.
    pub fn look(&mut self) -> Snapshot {
        let mut faults = Vec::new();
        let mut folders: Vec<PathBuf> = Vec::new();
        for root in &self.roots {
            match look::listing(root) {
                Listing::Complete(found) => {
                    self.listings.insert(root.clone(), found);
                }
                // What was there before stays: nobody knows better.
                Listing::Failed(sentence) => faults.push(sentence),
            }
            folders.extend(self.listings.get(root).into_iter().flatten().cloned());
        }
        if folders.len() > BUNDLES_MAX {
            let count = folders.len();
            let sentence = format!(
                "there are {count} bundles, and only the first {BUNDLES_MAX} are offered: use fewer"
            );
            faults.push(sentence);
            folders.truncate(BUNDLES_MAX);
        }
        self.known.retain(|folder, _| folders.contains(folder));
        for folder in &folders {
            let known = self.known.entry(folder.clone()).or_default();
            examine(known, folder, &self.shelf);
            faults.extend(known.fault.clone());
        }
        self.offered(&folders, faults)
    }

    /// Everything good, side by side.
    fn offered(&self, folders: &[PathBuf], mut faults: Vec<String>) -> Snapshot {
        let good: Vec<(&PathBuf, &Arc<Bundle>)> = folders
            .iter()
            .filter_map(|folder| Some((folder, self.known.get(folder)?.good.as_ref()?)))
            .collect();
        let specs = good.iter().map(|(folder, bundle)| {
            let offer = self.offers.of(&bundle.manifest.name);
            let spec = with_origin(offering(&bundle.manifest, &offer), &bundle.digest);
            (folder.display().to_string(), spec)
        });
        let (kept, collisions) = side_by_side(specs);
        faults.extend(collisions.iter().map(Collision::to_string));
        let by_name: BTreeMap<String, &Arc<Bundle>> = good
            .iter()
            .map(|(folder, bundle)| (folder.display().to_string(), *bundle))
            .collect();
        let listed = kept.into_iter().filter_map(|(name, spec)| {
            let bundle = (*by_name.get(&name)?).clone();
            let folder = PathBuf::from(name);
            Some(Listed {
                folder,
                bundle,
                spec,
            })
        });
        Snapshot {
            listed: listed.collect(),
            faults,
        }
    }
}

/// Looks at one bundle, and takes it in if it changed and has come to rest.
fn examine(known: &mut Known, folder: &Path, shelf: &Shelf) {
    let now = match look::fingerprint(folder) {
        Ok(now) => now,
        Err(sentence) => {
            known.fault = Some(keeping(known.good.is_some(), &sentence));
            return;
        }
    };
    if known.taken == Some(now) {
        known.seen = Some(now);
        return;
    }
    let first = known.taken.is_none() && known.seen.is_none();
    let at_rest = first || known.seen == Some(now);
    known.seen = Some(now);
    if !at_rest {
        return;
    }
    known.taken = Some(now);
    match shelf.take_in(folder) {
        Ok(bundle) => {
            known.good = Some(bundle);
            known.fault = None;
        }
        Err(fault) => {
            let sentence = format!("{}: {fault}", folder.display());
            known.fault = Some(keeping(known.good.is_some(), &sentence));
        }
    }
}

fn keeping(has_good: bool, sentence: &str) -> String {
    let what = match has_good {
        true => "its last good version is offered",
        false => "it is not offered",
    };
    format!("{sentence} ({what})")
}

/// Every plan says which version of the bundle it comes from.
fn with_origin(mut spec: ServiceSpec, digest: &str) -> ServiceSpec {
    for plan in spec.plans.iter_mut().flatten() {
        plan.origin = Some(digest.to_owned());
    }
    spec
}

#[cfg(test)]
mod tests;
