//! Loads a manifest: reads its fields (`manifest.rs`) and checks that its offering can be served (`catalog.rs`).
//!
//! Separate from `manifest.rs` because the catalog mapping depends on the manifest's type.

use crate::catalog::{Offer, catalog_problems};
use crate::manifest::{Manifest, ManifestError, ManifestFindings, ManifestForm, read};
use std::path::Path;
use sutler_yaml::{Kind as Yaml, Node};

impl Manifest {
    /// Reads a manifest. The file's name decides its form: `apb.yml` is read with the tolerance of Automation
    /// Broker.
    ///
    /// # Errors
    /// All faults, each with its location.
    pub fn load(bytes: &[u8], file: &str) -> Result<Self, ManifestError> {
        let mut findings = ManifestFindings::new(form_of(file));
        let manifest = read(bytes, &mut findings).map(|(manifest, document)| {
            check_offering(&manifest, &document, &mut findings);
            manifest
        });
        let ManifestFindings {
            form: _,
            mut faults,
            mut warnings,
        } = findings;
        faults.sort_by_key(|fault| fault.place);
        warnings.sort_by_key(|warning| warning.place);
        match manifest {
            Some(mut manifest) if faults.is_empty() => {
                manifest.warnings = warnings;
                Ok(manifest)
            }
            Some(_) | None => Err(ManifestError {
                file: file.to_owned(),
                faults,
                warnings,
            }),
        }
    }
}

fn form_of(file: &str) -> ManifestForm {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    match stem {
        Some("apb") => ManifestForm::Apb,
        Some(_) | None => ManifestForm::Bundle,
    }
}

/// Reports offerings that a broker could not serve.
fn check_offering(manifest: &Manifest, document: &Node, findings: &mut ManifestFindings) {
    if manifest.plans.is_empty() || !findings.faults.is_empty() {
        return;
    }
    for (path, reason) in catalog_problems(manifest, &Offer::default()) {
        let nth = path
            .strip_prefix("plans[")
            .and_then(|it| it.split(']').next());
        let nth: Option<usize> = nth.and_then(|nth| nth.parse().ok());
        let plans = document.get("plans").map(|plans| &plans.kind);
        let plan = match (plans, nth) {
            (Some(Yaml::List(plans)), Some(nth)) => plans.get(nth),
            _ => None,
        };
        let place = plan.map_or(document.place, |plan| plan.place);
        findings.fault(place, &path, reason);
    }
}
