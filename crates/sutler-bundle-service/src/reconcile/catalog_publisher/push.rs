//! Services pushed by developers: stored under a registry of their own and published like all others.
//!
//! Version and spec are written in one commit before the response. No refresh lists that registry, so none can miss
//! a pushed service (`sutler_registry::PUSHED_REGISTRY`). Permissions and request parsing are in
//! `apb_compat_routes.rs`.

use super::{CatalogPublisher, PublishError};
use crate::bundle_folders::OfferSettings;
use crate::reconcile::change_log::log_change;
use crate::reconcile::records::{
    RegistryRecords, SPECS, SpecRecord, VERSIONS, VersionRecord, id_of, pushes, put_pushes,
};
use crate::reconcile::version::{self, NewVersion};
use jiff::Timestamp;
use serde_json::Value;
use sutler_broker::{CatalogSource as _, Error, Result};
use sutler_bundle::{Manifest, claimed_names};
use sutler_osb::Catalog;
use sutler_registry::{
    Digest, Item, KnownRegistries, KnownSpec, PUSHED_REGISTRY, RegistryChange, Spec, SpecName,
    offered_specs, push, unpush,
};

/// Maximum pushed services that are not deleted yet.
const PUSHED_MAX: usize = 1_000;
/// Attempts of a commit that conflicts with other writers.
const TRIES: u32 = 8;
/// File name under which a pushed manifest is read, as Automation Broker did.
const FILE: &str = "apb.yml";
/// Version of the contract that pushed services are assumed to support.
const RUNTIME: &str = "2";

/// Whether developers may push services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pushes {
    /// They may.
    Taken,
    /// They may not; services pushed earlier are withdrawn.
    #[default]
    Refused,
}

impl Pushes {
    /// Name of the registry of pushed services, if pushes are accepted.
    pub(in crate::reconcile) fn registry(self) -> Option<String> {
        (self == Self::Taken).then(|| PUSHED_REGISTRY.to_owned())
    }
}

impl CatalogPublisher {
    /// Whether developers may push services.
    pub(in crate::reconcile) fn takes_pushes(&self) -> bool {
        self.parts.pushes == Pushes::Taken
    }

    /// Offers the service of a manifest, and replaces an earlier one of the same name. Returns its catalog entry.
    ///
    /// # Guarantees
    /// It is stored, and published by this process; every other replica follows.
    ///
    /// # Errors
    /// The manifest has faults, another offering has its name or id, or the store does not answer.
    pub async fn push(&self, manifest: &[u8]) -> Result<Value> {
        let (name, fresh) = read(manifest, &self.parts.offers).map_err(Error::invalid)?;
        let catalog_entry = self.catalog_entry(&fresh)?;
        let records = self.read_records().await?;
        self.check_collisions(&records, &name, &fresh).await?;
        let plan = |held: Option<&KnownSpec>| {
            let digest = fresh.terms.version.as_str();
            push(&name.item, held, digest, &fresh.wants)
        };
        self.change(&name, Some(&fresh), plan).await?;
        Ok(catalog_entry)
    }

    /// Withdraws a pushed service by its id. Returns its name, if it exists.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn unpush(&self, service_id: &str) -> Result<Option<String>> {
        let records = self.read_records().await?;
        let mut pushed = pushed(&records);
        let Some(spec) = pushed.find(|it| it.service_id == service_id) else {
            return Ok(None);
        };
        self.withdraw(&spec.name).await?;
        Ok(Some(spec.name.item.clone()))
    }

    /// Withdraws all pushed services.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn unpush_all(&self) -> Result<()> {
        let records = self.read_records().await?;
        for spec in pushed(&records) {
            self.withdraw(&spec.name).await?;
        }
        Ok(())
    }

    async fn withdraw(&self, name: &SpecName) -> Result<()> {
        let (rules, now) = (self.parts.refresh.rules(), Timestamp::now());
        let plan = |held: Option<&KnownSpec>| {
            let change = held.and_then(|held| unpush(&name.item, held, rules, now));
            change.into_iter().collect()
        };
        self.change(name, None, plan).await
    }

    /// Reads the current records.
    async fn read_records(&self) -> Result<RegistryRecords> {
        let records = RegistryRecords::read(&self.collections).await;
        records.map_err(|fault| unavailable(fault.into()))
    }

    /// Its catalog entry.
    fn catalog_entry(&self, fresh: &NewVersion) -> Result<Value> {
        let bundle =
            version::bundle(&fresh.terms.version, &fresh.record).map_err(Error::invalid)?;
        let offer = self.parts.offers.of(&bundle.manifest.name);
        let offer = version::offer_of(PUSHED_REGISTRY, offer);
        let catalog = Catalog::load(vec![version::offered(&bundle, &offer, None)]);
        let catalog = catalog.map_err(|faults| Error::invalid(faults.to_string()))?;
        Ok(serde_json::to_value(&catalog)?)
    }

    /// Checks that it does not collide with a published offering.
    async fn check_collisions(
        &self,
        records: &RegistryRecords,
        name: &SpecName,
        fresh: &NewVersion,
    ) -> Result<()> {
        let published = self.published.lock().await;
        for listed in &published.folders.listed {
            let mut wanted = claimed_names(&listed.spec).into_iter();
            if let Some(what) = wanted.find(|it| fresh.wants.contains(it)) {
                let folder = listed.folder.display();
                return Err(Error::invalid(format!(
                    "The bundle in {folder} has {what} already: give this one another name, or remove that."
                )));
            }
        }
        drop(published);
        let mut known = records.known();
        let held = known.spec(name);
        if held.is_none() && pushed(records).count() >= PUSHED_MAX {
            return Err(Error::invalid(format!(
                "There are {PUSHED_MAX} services that developers pushed: delete some first."
            )));
        }
        let changes = push(&name.item, held, &fresh.terms.version, &fresh.wants);
        changes.iter().for_each(|change| known.apply(change));
        let offered = offered_specs(&known, &self.names_in_config_order());
        let mut conflicts = offered.conflicts.iter();
        match conflicts.find(|it| it.left_out == *name) {
            None => Ok(()),
            Some(conflict) => Err(Error::invalid(format!(
                "{} has {} already: give this bundle another name.",
                conflict.offered, conflict.what
            ))),
        }
    }

    /// Writes the change of one spec, and publishes it. `fresh`: the version that the spec names.
    async fn change(
        &self,
        name: &SpecName,
        fresh: Option<&NewVersion>,
        plan: impl Fn(Option<&KnownSpec>) -> Vec<RegistryChange>,
    ) -> Result<()> {
        for _ in 0..TRIES {
            let written = self.try_change(name, fresh, &plan).await;
            let Some(changes) = written.map_err(unavailable)? else {
                continue;
            };
            changes.iter().for_each(log_change);
            // It is stored: if it cannot be published now, that is logged and retried.
            self.catch_up().await;
            return Ok(());
        }
        Err(Error::transient(
            "Too many push at once; repeat the request a little later.",
        ))
    }

    /// Writes everything in one commit. `None`: another writer was first.
    async fn try_change(
        &self,
        name: &SpecName,
        fresh: Option<&NewVersion>,
        plan: impl Fn(Option<&KnownSpec>) -> Vec<RegistryChange>,
    ) -> std::result::Result<Option<Vec<RegistryChange>>, PublishError> {
        let id = id_of(name);
        let count = pushes(&self.collections).await?;
        let was = self.collections.get::<SpecRecord>(SPECS, &id).await?;
        let (changes, record) = next(name, fresh, was.as_ref().map(|it| &it.value), plan);
        let Some(record) = record else {
            return Ok(Some(Vec::new()));
        };
        let revision = was.map(|it| it.revision);
        let mut batch = put_pushes(self.collections.batch(), count);
        batch = batch.put(SPECS, &id, revision, &record);
        if let Some(fresh) = fresh {
            // An existing version is written again, so that a concurrent deletion conflicts.
            let version = &fresh.terms.version;
            let was = self
                .collections
                .get::<VersionRecord>(VERSIONS, version)
                .await?;
            let revision = was.map(|it| it.revision);
            batch = batch.put(VERSIONS, version, revision, &fresh.record);
        }
        let written = self.collections.write(batch).await?;
        Ok(written.then_some(changes))
    }
}

/// All pushed services that are not deleted yet.
fn pushed(records: &RegistryRecords) -> impl Iterator<Item = &SpecRecord> {
    let specs = records.specs.values().map(|it| &it.value);
    specs.filter(|it| it.name.registry == PUSHED_REGISTRY)
}

/// Error for a developer, who may push again later.
fn unavailable(fault: PublishError) -> Error {
    let sentence = "The service broker cannot reach its records now; repeat the request later.";
    Error::transient(sentence).because(fault)
}

/// The record after a change; `None`: it is unchanged.
fn next(
    name: &SpecName,
    fresh: Option<&NewVersion>,
    was: Option<&SpecRecord>,
    plan: impl Fn(Option<&KnownSpec>) -> Vec<RegistryChange>,
) -> (Vec<RegistryChange>, Option<SpecRecord>) {
    let changes = plan(was.map(|it| it.held.as_ref()));
    let mut known = KnownRegistries::default();
    if let Some(was) = was {
        let its = known.0.entry(PUSHED_REGISTRY.to_owned()).or_default();
        its.specs.insert(name.item.clone(), was.held.clone());
    }
    changes.iter().for_each(|change| known.apply(change));
    let record = known.held(name).and_then(|held| match (fresh, was) {
        (Some(fresh), _) => Some(fresh.terms.named(name, held)),
        (None, Some(was)) => Some(SpecRecord {
            held: held.clone(),
            ..was.clone()
        }),
        (None, None) => None,
    });
    (changes, record.filter(|it| Some(it) != was))
}

/// Parses a pushed manifest into a version.
fn read(
    text: &[u8],
    offers: &OfferSettings,
) -> std::result::Result<(SpecName, NewVersion), String> {
    let manifest = Manifest::load(text, FILE).map_err(|faults| faults.to_string())?;
    let image = Manifest::image_of(text)?;
    let name = SpecName::new(PUSHED_REGISTRY, &manifest.name);
    let spec = Spec {
        item: Item::new(&manifest.name, ""),
        digest: Digest::of(text),
        manifest: text.to_vec().into(),
        file: FILE.to_owned(),
        runtime: Some(RUNTIME.to_owned()),
        // Automation Broker ran the image with the bundle's name.
        image: Some(image.unwrap_or(manifest.name)),
    };
    let offer = version::offer_of(PUSHED_REGISTRY, offers.all.clone());
    let fresh = version::read(&name, &spec, &offer, None)?;
    Ok((name, fresh))
}

#[cfg(test)]
mod tests {
    use super::{PUSHED_REGISTRY, read};
    use crate::bundle_folders::OfferSettings;
    use sutler_bundle::Offer;

    const MANIFEST: &str = "version: 1.0\nname: hello-apb\ndescription: d\n\
                            plans: [{name: p, description: d}]\n";

    #[test]
    fn the_image_is_that_of_the_manifest_or_is_called_as_the_bundle() {
        let image = |text: &str| {
            let read = read(text.as_bytes(), &OfferSettings::default());
            read.map(|(_, fresh)| fresh.record.image.unwrap_or_default())
        };
        assert_eq!(image(MANIFEST).as_deref(), Ok("hello-apb"));
        let named = format!("{MANIFEST}image: registry.example/hello:dev\n");
        assert_eq!(image(&named).as_deref(), Ok("registry.example/hello:dev"));
        let faulty = format!("{MANIFEST}image: two words\n");
        let fault = image(&faulty).expect_err("no image");
        assert!(fault.contains("must be a reference"), "{fault}");
    }

    #[test]
    fn the_old_ids_contain_the_registry_of_pushed_services() {
        let offers = OfferSettings {
            all: Offer::compatible("dh"),
            ..OfferSettings::default()
        };
        let (name, fresh) = read(MANIFEST.as_bytes(), &offers).expect("it can be offered");
        assert_eq!(name.to_string(), format!("{PUSHED_REGISTRY}/hello-apb"));
        assert_eq!(fresh.terms.service_name, "apb-push-hello-apb");
        // printf %s apb-push-hello-apb | md5sum
        assert_eq!(fresh.terms.service_id, "acbf1bc854924ec2da09f70faf39458f");
    }

    #[test]
    fn a_faulty_manifest_is_refused_with_its_faults_and_locations() {
        let fault = read(b"name: hello\n", &OfferSettings::default()).expect_err("no plans");
        assert!(fault.contains("plans"), "{fault}");
    }
}
