//! Versions that are no folders: images, and what they say about themselves.
//!
//! There may be tens of thousands, of which few are used at a time. So each is kept as it was written, which
//! is a small part of what is made of it, and is read when it is needed; those used lately stay read.

use super::Bundle;
use crate::manifest::Manifest;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bundles that stay read; beyond that it starts anew.
const READ_MAX: usize = 200;

/// What an image says about itself, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The manifest, and the name of the file it was.
    pub manifest: String,
    pub file: String,
    /// The image by its digest, where the registry says it.
    pub image: Option<String>,
    pub runtime: Option<String>,
}

impl Written {
    /// Reads it.
    ///
    /// # Errors
    /// A sentence that says why it cannot be run.
    pub(crate) fn read(&self, digest: &str) -> Result<Bundle, String> {
        let loaded = Manifest::load(self.manifest.as_bytes(), &self.file);
        let mut manifest = loaded.map_err(|faults| faults.to_string())?;
        manifest.image = self.image.clone().or(manifest.image);
        if manifest.image.is_none() {
            return Err(
                "it names no image that could be run; add `image` to its manifest".to_owned(),
            );
        }
        // An image that says nothing is taken for one of the runtime that is spoken.
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

/// The versions that are known, by digest.
#[derive(Debug, Default)]
pub(super) struct Images(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    written: HashMap<String, Arc<Written>>,
    read: HashMap<String, Arc<Bundle>>,
}

impl Images {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, digest: &str, written: Written) {
        let mut known = self.lock();
        known.written.insert(digest.to_owned(), Arc::new(written));
    }

    pub(super) fn has(&self, digest: &str) -> bool {
        self.lock().written.contains_key(digest)
    }

    pub(super) fn get(&self, digest: &str) -> Option<Result<Arc<Bundle>, String>> {
        let known = self.lock();
        if let Some(bundle) = known.read.get(digest) {
            return Some(Ok(bundle.clone()));
        }
        let written = known.written.get(digest)?.clone();
        drop(known);
        // Read outside the lock: two threads may do it at once, and both are right.
        let bundle = match written.read(digest) {
            Ok(bundle) => Arc::new(bundle),
            Err(why) => return Some(Err(why)),
        };
        let mut known = self.lock();
        if known.read.len() >= READ_MAX {
            known.read.clear();
        }
        known.read.insert(digest.to_owned(), bundle.clone());
        Some(Ok(bundle))
    }
}

#[cfg(test)]
mod tests {
    use super::{Images, READ_MAX, Written};

    fn written(name: &str) -> Written {
        Written {
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
        let images = Images::default();
        let all = READ_MAX + 10;
        (0..all).for_each(|nth| images.keep(&format!("sha256:{nth}"), written("hello")));
        for nth in 0..all {
            let digest = format!("sha256:{nth}");
            let bundle = images.get(&digest).expect("it is known");
            assert_eq!(bundle.expect("it can be read").digest, digest);
        }
        assert!(images.lock().read.len() <= READ_MAX);
        assert!(images.get("sha256:other").is_none());
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let images = Images::default();
        let newer = Written {
            runtime: Some("3".to_owned()),
            ..written("hello")
        };
        images.keep("sha256:1", newer);
        let why = images.get("sha256:1").expect("it is known");
        let why = why.expect_err("nobody speaks it");
        assert!(why.contains("runtime \"3\""), "{why}");
    }
}
