//! View of all bundles for operators, of folders and of registries. No decisions, no secrets.
//!
//! Registries are `view.rs`.

use super::records::{RegistryRecords, SpecRecord};
use crate::bundle_folders::{FoundBundle, Snapshot};
use crate::version_store::Bundle;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sutler_registry::WithdrawalMark;

/// All bundles, and the faults of those that are not offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundlesView {
    /// Bundles of folders first, then those of registries by name.
    pub items: Vec<BundleView>,
    /// Each sentence names a folder or an item, and says what to do.
    pub faults: Vec<String>,
}

/// One bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleView {
    /// Its name.
    pub name: String,
    /// Its version, if the manifest has one.
    pub version: Option<String>,
    /// Id of its service.
    pub service_id: String,
    /// Whether it is offered.
    pub state: BundleState,
    /// Where it was found: a folder, or a registry and an item.
    pub from: String,
    /// The folder, if it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The registry, if it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The item of the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Digest of its content where it was found.
    pub digest: String,
    /// Why it is withdrawn, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<WithdrawalMark>,
}

/// Whether a bundle is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BundleState {
    /// It is in the catalog.
    Offered,
    /// It is not found any more; its instances are still served.
    Withdrawn,
    /// Another bundle has its name or id, or it cannot be used here.
    LeftOut,
}

impl BundlesView {
    /// The bundles of folders.
    #[must_use]
    pub fn of_folders(folders: &Snapshot) -> Self {
        Self {
            items: folders.listed.iter().map(in_folder).collect(),
            faults: folders.faults.clone(),
        }
    }
}

/// Bundles of folders and registries. `published`: the current catalog; `found`: versions by digest.
pub(super) fn all(
    records: &RegistryRecords,
    folders: &Snapshot,
    published: &Snapshot,
    found: impl Fn(&str) -> Option<Arc<Bundle>>,
) -> BundlesView {
    let mut view = BundlesView::of_folders(folders);
    view.faults = published.faults.clone();
    for spec in records.specs.values().map(|it| &it.value) {
        let from = spec.name.to_string();
        let offered = published.images.get(&spec.service_id);
        let offered = offered.filter(|it| it.version == spec.version);
        let state = match (&spec.held.mark, offered) {
            (Some(_), _) => BundleState::Withdrawn,
            (None, Some(_)) => BundleState::Offered,
            (None, None) => BundleState::LeftOut,
        };
        if let Some(fault) = &spec.held.fault {
            let stays = "its last good version stays";
            view.faults.push(format!("{from}: {fault} ({stays})"));
        }
        // Offered bundles need not be read again.
        let named = match offered {
            Some(it) => Some((it.bundle.clone(), it.bundle_version.clone())),
            None => found(&spec.version).map(|it| {
                let manifest = &it.manifest;
                (manifest.name.clone(), manifest.bundle_version.clone())
            }),
        };
        view.items.push(in_registry(spec, state, named));
    }
    for (registry, its) in &records.registries {
        let unread = its.value.unread.iter();
        let sentences =
            unread.map(|(item, why)| format!("{registry}/{item}: {why} (it is not offered)"));
        view.faults.extend(sentences);
    }
    view
}

fn in_folder(listed: &FoundBundle) -> BundleView {
    let manifest = &listed.bundle.manifest;
    let folder = listed.folder.display().to_string();
    BundleView {
        name: manifest.name.clone(),
        version: manifest.bundle_version.clone(),
        service_id: listed.spec.id.clone().unwrap_or_default(),
        state: BundleState::Offered,
        from: folder.clone(),
        folder: Some(folder),
        registry: None,
        item: None,
        digest: listed.bundle.digest.clone(),
        mark: None,
    }
}

/// `named`: name and version of the bundle, if known.
fn in_registry(
    spec: &SpecRecord,
    state: BundleState,
    named: Option<(String, Option<String>)>,
) -> BundleView {
    let (name, version) = named.unwrap_or_else(|| (spec.service_name.clone(), None));
    BundleView {
        name,
        version,
        service_id: spec.service_id.clone(),
        state,
        from: spec.name.to_string(),
        folder: None,
        registry: Some(spec.name.registry.clone()),
        item: Some(spec.name.item.clone()),
        digest: spec.held.digest.clone(),
        mark: spec.held.mark.clone(),
    }
}
