//! Versions of images: their manifests.
//!
//! There may be tens of thousands, of which few are in use. Each is kept as text in a file (`spill_file.rs`) and
//! parsed when needed; recently used ones stay parsed.

use super::Bundle;
use super::spill_file::SpillFile;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_bundle::Manifest;

/// Maximum parsed bundles in memory; beyond that the cache is cleared.
const READ_MAX: usize = 200;

/// Manifest of an image, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageManifest {
    /// The manifest, and its file name.
    pub manifest: String,
    pub file: String,
    /// The image by its digest, if the registry has one.
    pub image: Option<String>,
    pub runtime: Option<String>,
}

impl ImageManifest {
    /// Parses the manifest.
    ///
    /// # Errors
    /// A sentence that says why the image cannot be run.
    pub(crate) fn read(&self, digest: &str) -> Result<Bundle, String> {
        let loaded = Manifest::load(self.manifest.as_bytes(), &self.file);
        let mut manifest = loaded.map_err(|faults| faults.to_string())?;
        manifest.image = self.image.clone().or(manifest.image);
        if manifest.image.is_none() {
            return Err(
                "it names no image that could be run; add `image` to its manifest".to_owned(),
            );
        }
        // An image without this label is assumed to support the current contract.
        if let Some(runtime) = self.runtime.as_deref().filter(|it| *it != "2") {
            return Err(format!(
                "it speaks runtime {runtime:?} of the contract, and only 2 is spoken here: build the image on \
                 a base whose runtime is 2"
            ));
        }
        Ok(Bundle {
            digest: digest.to_owned(),
            manifest,
            folder: PathBuf::new(),
        })
    }
}

/// Known versions, by digest.
#[derive(Debug)]
pub(super) struct Images {
    texts: SpillFile,
    read: Mutex<HashMap<String, Arc<Bundle>>>,
}

impl Images {
    /// An empty set, whose texts are stored in this folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            texts: SpillFile::in_folder(folder),
            read: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Bundle>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, digest: &str, written: &ImageManifest) {
        if !self.texts.has(digest)
            && let Ok(text) = serde_json::to_vec(written)
        {
            self.texts.keep(digest, text);
        }
    }

    pub(super) fn has(&self, digest: &str) -> bool {
        self.texts.has(digest)
    }

    pub(super) fn get(&self, digest: &str) -> Option<Result<Arc<Bundle>, String>> {
        if let Some(bundle) = self.lock().get(digest) {
            return Some(Ok(bundle.clone()));
        }
        // Parsed outside the lock: two threads may do it at once, with the same result.
        let text = match self.texts.get(digest)? {
            Ok(text) => text,
            Err(error) => return Some(Err(format!("what it says cannot be read here: {error}"))),
        };
        let read =
            serde_json::from_slice::<ImageManifest>(&text).map_err(|error| error.to_string());
        let bundle = match read.and_then(|written| written.read(digest)) {
            Ok(bundle) => Arc::new(bundle),
            Err(why) => return Some(Err(why)),
        };
        let mut read = self.lock();
        if read.len() >= READ_MAX {
            read.clear();
        }
        read.insert(digest.to_owned(), bundle.clone());
        Some(Ok(bundle))
    }
}

#[cfg(test)]
mod tests {
    use super::{ImageManifest, Images, READ_MAX};

    fn written(name: &str) -> ImageManifest {
        ImageManifest {
            manifest: format!(
                "{{name: {name}, description: d, plans: [{{name: p, description: d}}]}}"
            ),
            file: "bundle.yml".to_owned(),
            image: Some("r/hello@sha256:1".to_owned()),
            runtime: None,
        }
    }

    #[test]
    fn every_version_can_be_had_however_many_there_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let images = Images::in_folder(folder.path());
        let all = READ_MAX + 10;
        (0..all).for_each(|nth| images.keep(&format!("sha256:{nth}"), &written("hello")));
        for nth in 0..all {
            let digest = format!("sha256:{nth}");
            let bundle = images.get(&digest).expect("it is known");
            assert_eq!(bundle.expect("it can be read").digest, digest);
        }
        assert!(images.lock().len() <= READ_MAX);
        assert!(images.get("sha256:other").is_none());
    }

    #[test]
    fn an_unreadable_version_has_a_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let images = Images::in_folder(folder.path());
        let newer = ImageManifest {
            runtime: Some("3".to_owned()),
            ..written("hello")
        };
        images.keep("sha256:1", &newer);
        let why = images.get("sha256:1").expect("it is known");
        let why = why.expect_err("nobody speaks it");
        assert!(why.contains("runtime \"3\""), "{why}");
    }
}
