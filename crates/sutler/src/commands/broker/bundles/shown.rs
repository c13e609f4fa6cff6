//! What operators are shown of bundles: which are offered in which version, and what is wrong with the rest.

use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};
use sutler_bundle::Snapshot;

/// The last look at bundles, for whoever asks.
#[derive(Clone)]
pub(in crate::commands::broker) struct Shown(Arc<RwLock<Arc<Snapshot>>>);

impl Shown {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(Arc::new(RwLock::new(snapshot)))
    }

    pub(super) fn replace(&self, snapshot: Arc<Snapshot>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// As the administration shows it.
    pub(in crate::commands::broker) fn page(&self) -> Value {
        let snapshot = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let snapshot = snapshot.clone();
        let listed = snapshot.listed.iter().map(|it| {
            let manifest = &it.bundle.manifest;
            json!({
                "name": manifest.name,
                "version": manifest.bundle_version,
                "service_id": it.spec.id,
                "folder": it.folder.display().to_string(),
                "digest": it.bundle.digest,
            })
        });
        let listed: Vec<Value> = listed.collect();
        json!({ "items": listed, "faults": snapshot.faults })
    }
}
