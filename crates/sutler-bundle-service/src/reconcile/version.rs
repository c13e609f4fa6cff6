//! Builds a version that can be offered and run from an item that was read, or a sentence why not. Pure.
//!
//! The stored form is in `records.rs`.

use super::records::{SpecRecord, VersionRecord};
use crate::bundle_folders::with_origin;
use crate::version_store::{Bundle, ImageManifest};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use sutler_bundle::{IdScheme, Manifest, Offer, claimed_names, offering};
use sutler_osb::ServiceSpec;
use sutler_registry::{ClaimedNames, KnownSpec, Spec, SpecName};

/// A version that was read in this refresh.
#[derive(Clone, Debug)]
pub(super) struct NewVersion {
    pub record: VersionRecord,
    pub wants: ClaimedNames,
    pub terms: OfferTerms,
}

/// Names and ids of a version's offering, without the manifest, so that thousands of them are small.
#[derive(Clone, Debug)]
pub(super) struct OfferTerms {
    /// Digest of the version.
    pub version: String,
    pub service_id: String,
    pub service_name: String,
    pub plans: Vec<String>,
    pub offered_by: String,
}

/// Inputs of names and ids in addition to the manifest.
pub(super) fn offered_by(offer: &Offer, tag: Option<&str>) -> String {
    let ids = match offer.ids {
        IdScheme::Explicit => "explicit",
        IdScheme::Md5 { .. } => "md5",
    };
    format!("{ids} {}", tag.unwrap_or_default())
}

impl OfferTerms {
    /// The record of a spec that names this version.
    pub(super) fn named(&self, name: &SpecName, held: &Arc<KnownSpec>) -> SpecRecord {
        SpecRecord {
            name: Arc::new(name.clone()),
            held: held.clone(),
            version: self.version.clone(),
            service_id: self.service_id.clone(),
            service_name: self.service_name.clone(),
            plans: self.plans.clone(),
            offered_by: self.offered_by.clone(),
        }
    }
}

/// Builds a version from an item of a registry; it runs exactly the listed image.
pub(super) fn listed(
    name: &SpecName,
    spec: &Spec,
    offer: &Offer,
    tag: Option<&str>,
) -> Result<NewVersion, String> {
    let fresh = read(name, spec, offer, tag)?;
    let image = match &fresh.record.image {
        Some(image) => Some(image.clone()),
        None => bundle("", &fresh.record)?.manifest.image,
    };
    match image.is_some_and(|it| it.contains("@sha256:")) {
        true => Ok(fresh),
        false => Err(
            "it names an image without its digest, and what is listed must be what runs; write NAME@sha256:…"
                .to_owned(),
        ),
    }
}

/// Builds a version from a manifest. `offer`: how it is offered; `tag`: tag to add to its name, if it is not the
/// default one.
pub(super) fn read(
    name: &SpecName,
    spec: &Spec,
    offer: &Offer,
    tag: Option<&str>,
) -> Result<NewVersion, String> {
    let Ok(manifest) = String::from_utf8(spec.manifest.to_vec()) else {
        return Err("its manifest is not UTF-8; write it anew".to_owned());
    };
    let mut record = VersionRecord {
        spec: name.clone(),
        manifest,
        file: spec.file.clone(),
        image: spec.image.clone(),
        runtime: spec.runtime.clone(),
        plans: Vec::new(),
    };
    let bundle = bundle("", &record)?;
    let service = offered(&bundle, offer, tag);
    let plans = service.plans.iter().flatten();
    record.plans = plans.filter_map(|plan| plan.id.clone()).collect();
    Ok(NewVersion {
        wants: claimed_names(&service).into_iter().collect(),
        terms: OfferTerms {
            version: digest_of(&record),
            service_id: service.id.unwrap_or_default(),
            service_name: service.name.unwrap_or_default(),
            plans: record.plans.clone(),
            offered_by: offered_by(offer, tag),
        },
        record,
    })
}

/// A version in the form of the version store.
pub(super) fn written(record: VersionRecord) -> ImageManifest {
    ImageManifest {
        manifest: record.manifest,
        file: record.file,
        image: record.image,
        runtime: record.runtime,
    }
}

/// The bundle of a version.
pub(super) fn bundle(digest: &str, record: &VersionRecord) -> Result<Bundle, String> {
    written(record.clone()).read(digest)
}

/// Its catalog entry.
pub(super) fn offered(bundle: &Bundle, offer: &Offer, tag: Option<&str>) -> ServiceSpec {
    let spec = match tag {
        None => offering(&bundle.manifest, offer),
        Some(tag) => offering(&tagged(&bundle.manifest, tag), offer),
    };
    with_origin(spec, bundle)
}

/// A separate offering for another tag than the default: other names, so other ids.
fn tagged(manifest: &Manifest, tag: &str) -> Manifest {
    let plain = |letter: char| match letter.to_ascii_lowercase() {
        '_' => '-',
        other => other,
    };
    let tag: String = tag.chars().map(plain).collect();
    let mut manifest = manifest.clone();
    manifest.name = format!("{}-{tag}", manifest.name);
    manifest.id = None;
    for plan in &mut manifest.plans {
        plan.id = None;
    }
    manifest
}

/// Offer settings for one registry: Automation Broker's ids contain the registry's name.
pub(super) fn offer_of(registry: &str, mut offer: Offer) -> Offer {
    if let IdScheme::Md5 { registry: of } = &mut offer.ids {
        registry.clone_into(of);
    }
    offer
}

/// Digest of a version. It covers the spec and its plans: each version knows the plans that were offered of it, so
/// that instances with one of them are found.
fn digest_of(record: &VersionRecord) -> String {
    let mut hash = Sha256::new();
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let (image, runtime) = (optional(&record.image), optional(&record.runtime));
    let spec = record.spec.to_string();
    let parts = [&spec, &record.file, &record.manifest, &image, &runtime];
    for part in parts.into_iter().chain(&record.plans) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut text = "sha256:".to_owned();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{listed, offer_of, offered, read};
    use sutler_bundle::Offer;
    use sutler_registry::{Digest, Item, Spec, SpecName};

    const MANIFEST: &str =
        "{name: hello, id: chosen, description: d, plans: [{name: p, id: own, description: d}]}";

    fn spec(manifest: &str, image: Option<&str>) -> Spec {
        Spec {
            item: Item::new("org/hello", "latest"),
            digest: Digest::of(manifest.as_bytes()),
            manifest: manifest.to_owned().into(),
            file: "bundle.yml".to_owned(),
            runtime: Some("2".to_owned()),
            image: image.map(str::to_owned),
        }
    }

    fn name() -> SpecName {
        SpecName::new("dh", "org/hello:latest")
    }

    #[test]
    fn an_item_becomes_a_version_that_runs_the_image_it_was_listed_with() {
        let offer = Offer::default();
        let fresh = read(
            &name(),
            &spec(MANIFEST, Some("r/hello@sha256:1")),
            &offer,
            None,
        );
        let fresh = fresh.expect("it can be offered");
        assert_eq!(
            (fresh.terms.service_id.as_str(), fresh.record.plans),
            ("chosen", vec!["own".to_owned()])
        );
        assert!(fresh.wants.contains("the service name hello"));
        let other = read(
            &name(),
            &spec(MANIFEST, Some("r/hello@sha256:2")),
            &offer,
            None,
        );
        let other = other.expect("it can be offered");
        assert_ne!(other.terms.version, fresh.terms.version);
    }

    #[test]
    fn a_named_tag_is_an_offering_of_its_own() {
        let offer = Offer::default();
        let spec = spec(MANIFEST, Some("r/hello@sha256:1"));
        let plain = read(&name(), &spec, &offer, None).expect("it can be offered");
        let tagged = read(&name(), &spec, &offer, Some("V1_0")).expect("it can be offered");
        assert_eq!(tagged.terms.service_name, "hello-v1-0");
        let both = tagged.wants.iter().find(|it| plain.wants.contains(it));
        assert_eq!(both, None, "{:?}", tagged.wants);
    }

    #[test]
    fn the_old_ids_are_made_of_the_name_of_the_registry() {
        let offer = offer_of("dh", Offer::compatible("other"));
        let manifest = MANIFEST.replace("hello", "postgresql-apb");
        let fresh = read(
            &name(),
            &spec(&manifest, Some("r/x@sha256:1")),
            &offer,
            None,
        );
        let fresh = fresh.expect("it can be offered");
        assert_eq!(fresh.terms.service_id, "1dda1477cace09730bd8ed7a6505607e");
    }

    #[test]
    fn a_version_that_cannot_be_offered_has_a_reason() {
        let offer = Offer::default();
        for (manifest, image, why) in [
            ("{name: 1}", Some("i"), "description"),
            (MANIFEST, None, "names no image"),
        ] {
            let fault = read(&name(), &spec(manifest, image), &offer, None);
            let fault = fault.expect_err("it cannot be offered");
            assert!(fault.contains(why), "{fault}");
        }
        let tagged = spec(MANIFEST, Some("r/hello:latest"));
        let fault = listed(&name(), &tagged, &offer, None).expect_err("it may be another tomorrow");
        assert!(fault.contains("without its digest"), "{fault}");
        let newer = Spec {
            runtime: Some("3".to_owned()),
            ..spec(MANIFEST, Some("i"))
        };
        let fault = read(&name(), &newer, &offer, None).expect_err("nobody speaks it");
        assert!(fault.contains("runtime \"3\""), "{fault}");
    }

    #[test]
    fn every_plan_names_its_version() {
        let spec = spec(MANIFEST, Some("r/hello@sha256:1"));
        let fresh = read(&name(), &spec, &Offer::default(), None).expect("it can be offered");
        let bundle = super::written(fresh.record.clone()).read(&fresh.terms.version);
        let bundle = bundle.expect("a bundle");
        let service = offered(&bundle, &Offer::default(), None);
        let mut plans = service.plans.iter().flatten();
        assert!(plans.all(|plan| plan.origin.as_deref() == Some(fresh.terms.version.as_str())));
    }
}
