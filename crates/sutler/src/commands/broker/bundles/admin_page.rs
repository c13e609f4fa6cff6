//! Administration page of bundles from folders: the offered ones with their versions, and faults of the others.
//! Only without registries; with registries the page is in `registries.rs`.

use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};
use sutler_bundle_service::{BundlesView, Snapshot};

/// The last snapshot of the folders.
#[derive(Clone)]
pub(in crate::commands::broker) struct FolderBundlesPage(Arc<RwLock<Arc<Snapshot>>>);

impl FolderBundlesPage {
    pub(super) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(Arc::new(RwLock::new(snapshot)))
    }

    pub(super) fn replace(&self, snapshot: Arc<Snapshot>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// The page as JSON.
    pub(in crate::commands::broker) fn page(&self) -> Value {
        let snapshot = self.0.read().unwrap_or_else(PoisonError::into_inner);
        json!(BundlesView::of_folders(&snapshot))
    }
}
