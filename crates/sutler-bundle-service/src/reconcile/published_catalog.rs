//! The published catalog: unchanged offerings, new offerings, and the precondition of each.
//!
//! There may be thousands of offerings and few change, so unchanged ones are passed by id. Folders come first; an
//! image with the same name or id is left out and reported. Reading records is `catalog_publisher.rs`.

use super::records::{SPECS, id_of};
use super::version;
use crate::bundle_folders::{FoundBundle, OfferedImage, Snapshot};
use crate::reconcile::PublisherConfig;
use crate::version_store::Bundle;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use sutler_broker::{
    BrokerHandle, BuildError, CatalogPrecondition, Offering, OfferingUpdate, Revision,
};
use sutler_bundle::{Collision, claimed_names};
use sutler_osb::ServiceSpec;
use sutler_registry::SpecName;

/// Offerings processed before the task yields.
const SLICE: usize = 256;

/// The published catalog and its inputs.
#[derive(Default)]
pub(super) struct PublishedCatalog {
    pub folders: Arc<Snapshot>,
    /// Revision of the generation record that is published.
    pub generation: Option<Revision>,
    /// Number of the last complete generation in it.
    pub number: Option<u64>,
    /// Revision of the push counter that is published.
    pub pushes: Option<Revision>,
    /// Generation of the specs that is published, if it was complete.
    pub specs: Option<u64>,
    /// The offering built from each spec, with the revision of its record.
    pub made: BTreeMap<Arc<SpecName>, (Revision, Arc<OfferedImage>)>,
    /// Offerings in `made` that were not published yet.
    pub fresh: BTreeMap<Arc<SpecName>, Offering>,
    /// Faults of specs from which no offering could be built.
    pub faults: Vec<String>,
    /// Published versions of folders, by service id.
    shown: HashMap<String, String>,
    /// Whether an offering of a registry was left out because of a folder.
    left_out: bool,
}

/// A whole catalog, in the form the broker accepts.
struct NextCatalog {
    slots: Vec<OfferingUpdate>,
    preconditions: Vec<(String, CatalogPrecondition)>,
    snapshot: Snapshot,
    shown: HashMap<String, String>,
}

impl PublishedCatalog {
    /// A catalog of these folders; nothing is published yet.
    pub(super) fn of(folders: Arc<Snapshot>) -> Self {
        Self {
            folders,
            ..Self::default()
        }
    }

    /// Rebuilds everything the next time.
    pub(super) fn forget(&mut self) {
        *self = Self::of(self.folders.clone());
    }

    /// Replaces the folders.
    pub(super) fn replace_folders(&mut self, folders: Arc<Snapshot>) {
        self.folders = folders;
        if self.left_out {
            // Offerings that were left out may be possible now.
            (self.generation, self.specs) = (None, None);
        }
    }

    /// Builds the whole catalog. Afterwards no offering counts as new.
    async fn next_catalog(&mut self, running: &BrokerHandle) -> Result<NextCatalog, BuildError> {
        let collisions = self.drop_collisions();
        let (mut slots, shown) = self.folder_slots(running)?;
        let mut preconditions = Vec::with_capacity(self.made.len());
        let mut images = HashMap::with_capacity(self.made.len());
        for (nth, (name, (revision, image))) in self.made.iter().enumerate() {
            if nth % SLICE == 0 {
                tokio::task::yield_now().await;
            }
            let service_id = &image.service_id;
            let new = self.fresh.remove(name).map(OfferingUpdate::New);
            slots.push(new.unwrap_or_else(|| OfferingUpdate::Same(service_id.clone())));
            let precondition = CatalogPrecondition {
                collection: SPECS,
                id: id_of(name),
                revision: *revision,
            };
            preconditions.push((service_id.clone(), precondition));
            images.insert(service_id.clone(), image.clone());
        }
        self.fresh.clear();
        let mut snapshot = self.folders.as_ref().clone();
        snapshot.images = Arc::new(images);
        let faults = self.faults.iter().cloned();
        for fault in faults.chain(collisions.iter().map(Collision::to_string)) {
            tracing::error!("bundle: {fault}");
            snapshot.faults.push(fault);
        }
        Ok(NextCatalog {
            slots,
            preconditions,
            snapshot,
            shown,
        })
    }

    /// Leaves out offerings that collide with a folder.
    fn drop_collisions(&mut self) -> Vec<Collision> {
        let mut taken: HashMap<String, String> = HashMap::new();
        for listed in &self.folders.listed {
            let folder = listed.folder.display().to_string();
            let wants = claimed_names(&listed.spec).into_iter();
            taken.extend(wants.map(|what| (what, folder.clone())));
        }
        let mut collisions = Vec::new();
        if !taken.is_empty() {
            self.made.retain(|name, (_, image)| {
                let same = wants(image).find_map(|it| taken.get_key_value(&it));
                let Some((what, first)) = same else {
                    return true;
                };
                collisions.push(Collision {
                    what: what.clone(),
                    first: first.clone(),
                    second: name.to_string(),
                });
                false
            });
        }
        self.left_out = !collisions.is_empty();
        collisions
    }

    fn folder_slots(
        &self,
        running: &BrokerHandle,
    ) -> Result<(Vec<OfferingUpdate>, HashMap<String, String>), BuildError> {
        let mut slots = Vec::new();
        let mut shown = HashMap::new();
        for FoundBundle { bundle, spec, .. } in &self.folders.listed {
            let id = spec.id.clone().unwrap_or_default();
            slots.push(match self.shown.get(&id) == Some(&bundle.digest) {
                true => OfferingUpdate::Same(id.clone()),
                false => OfferingUpdate::New(running.check_offering(spec.clone())?),
            });
            shown.insert(id, bundle.digest.clone());
        }
        Ok((slots, shown))
    }

    /// Publishes the whole catalog.
    pub(super) async fn publish(&mut self, running: &BrokerHandle) -> Result<Snapshot, BuildError> {
        let NextCatalog {
            slots,
            preconditions,
            snapshot,
            shown,
        } = self.next_catalog(running).await?;
        running.replace_offerings(slots, preconditions).await?;
        self.shown = shown;
        Ok(snapshot)
    }
}

/// Names and ids that no two offerings may share, as in [`claimed_names`].
fn wants(image: &OfferedImage) -> impl Iterator<Item = String> {
    let (name, id) = (&image.service_name, &image.service_id);
    let own = [
        format!("the service name {name}"),
        format!("the service id {id}"),
    ];
    let plans = image.plans.iter();
    own.into_iter()
        .chain(plans.map(|(id, _)| format!("the plan id {id}")))
}

/// Builds the offering of a stored version. Takes CPU time.
pub(super) fn make(
    parts: &PublisherConfig,
    running: &BrokerHandle,
    name: &SpecName,
    version: &str,
) -> Result<(OfferedImage, Offering), String> {
    let missing = || format!("its version {version} is not written down; refresh registries");
    let bundle = parts.version_store.image(version).ok_or_else(missing)??;
    let offer = parts.offers.of(&bundle.manifest.name);
    let offer = version::offer_of(&name.registry, offer);
    let mut sources = parts.sources.iter();
    let source = sources.find(|it| it.registry.name() == name.registry);
    let tag = source.and_then(|it| it.tag_of(&name.item));
    let spec = version::offered(&bundle, &offer, tag);
    let image = image_of(&spec, &bundle);
    let offering = running.check_offering(spec);
    Ok((image, offering.map_err(|error| error.to_string())?))
}

fn image_of(spec: &ServiceSpec, bundle: &Bundle) -> OfferedImage {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let plans = spec.plans.iter().flatten();
    OfferedImage {
        version: bundle.digest.clone(),
        service_id: text(&spec.id),
        service_name: text(&spec.name),
        bundle: bundle.manifest.name.clone(),
        bundle_version: bundle.manifest.bundle_version.clone(),
        plans: plans.map(|it| (text(&it.id), text(&it.name))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{PublishedCatalog, image_of, wants};
    use crate::bundle_folders::{FoundBundle, Snapshot};
    use crate::version_store::Bundle;
    use std::path::PathBuf;
    use std::sync::Arc;
    use sutler_bundle::{Manifest, Offer, claimed_names, offering};

    fn listed(name: &str) -> FoundBundle {
        let text =
            format!("{{name: {name}, description: d, plans: [{{name: p, description: d}}]}}");
        let manifest = Manifest::load(text.as_bytes(), "bundle.yml").expect("a manifest");
        FoundBundle {
            folder: PathBuf::from(name),
            spec: offering(&manifest, &Offer::default()),
            bundle: Arc::new(Bundle {
                digest: format!("sha256:{name}"),
                manifest,
                folder: PathBuf::new(),
            }),
        }
    }

    #[test]
    fn an_image_claims_the_names_of_its_offering() {
        let FoundBundle { spec, bundle, .. } = listed("hello");
        let image = image_of(&spec, &bundle);
        assert_eq!(wants(&image).collect::<Vec<_>>(), claimed_names(&spec));
    }

    #[test]
    fn an_offering_left_out_for_a_folder_is_reconsidered_when_folders_change() {
        let mut window = PublishedCatalog {
            specs: Some(1),
            ..PublishedCatalog::default()
        };
        window.replace_folders(Arc::default());
        assert_eq!(window.specs, Some(1));
        window.left_out = true;
        window.replace_folders(Arc::new(Snapshot::default()));
        assert_eq!(window.specs, None);
    }
}
