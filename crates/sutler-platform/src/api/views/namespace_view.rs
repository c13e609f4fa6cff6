//! A namespace as it is shown.

use crate::broker_request::CloudFoundryLocation;
use crate::records::{NamespaceRecord, NamespaceState};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespaceView {
    name: String,
    uid: String,
    cluster_id: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_foundry: Option<CloudFoundryLocation>,
    created: Timestamp,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleting_since: Option<Timestamp>,
}

impl NamespaceView {
    pub(crate) fn of(namespace: &NamespaceRecord) -> Self {
        let (state, deleting_since) = match namespace.state {
            NamespaceState::Active => ("active", None),
            NamespaceState::Deleting(since) => ("deleting", Some(since)),
        };
        let facts = &namespace.facts;
        Self {
            name: facts.name.as_str().to_owned(),
            uid: facts.uid.as_str().to_owned(),
            cluster_id: facts.cluster_id.as_str().to_owned(),
            labels: namespace.labels.clone(),
            annotations: facts.annotations.as_map().clone(),
            cloud_foundry: facts.cloud_foundry.clone(),
            created: namespace.created,
            state,
            deleting_since,
        }
    }
}
