//! What operators are shown of the bundles of folders, where there is no registry: which are offered in which
//! version, and what is wrong with the rest. Where there are registries: `registries.rs`.

use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};
use sutler_bundle_service::{BundlesView, Snapshot};

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
        json!(BundlesView::of_folders(&snapshot))
    }
}
