//! Manifests that load, and every way in which loading fails.

mod apb_yml;
mod bundle_yml;
mod faulty;

use super::{Manifest, ManifestError};

fn load(text: &str, file: &str) -> Manifest {
    Manifest::load(text.as_bytes(), file).unwrap_or_else(|faults| panic!("{faults}"))
}

fn refused(text: &str, file: &str) -> ManifestError {
    match Manifest::load(text.as_bytes(), file) {
        Ok(_) => panic!("it has no fault:\n{text}"),
        Err(faults) => faults,
    }
}

/// The warnings, one line each.
fn warnings(manifest: &Manifest, file: &str) -> Vec<String> {
    manifest
        .warnings
        .iter()
        .map(|it| it.in_file(file))
        .collect()
}
