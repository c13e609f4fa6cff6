//! The body of `PUT /namespaces/{ns}`.

use crate::broker_request::{Annotations, CloudFoundryLocation};
use crate::commands::WantedNamespace;
use serde::Deserialize;
use std::collections::BTreeMap;
use sutler_osb::NonEmptyText;

/// What a namespace is, as its administrator writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NamespaceBody {
    /// Labels, for the visibility of plans.
    pub labels: BTreeMap<String, String>,
    /// Annotations, which are sent to brokers.
    pub annotations: Annotations,
    /// Id of the cluster that it belongs to; that of the platform if it belongs to none.
    pub cluster_id: Option<NonEmptyText>,
    /// Organization and space that it stands for on Cloud Foundry.
    pub cloud_foundry: Option<CloudFoundryLocation>,
}

impl From<NamespaceBody> for WantedNamespace {
    fn from(body: NamespaceBody) -> Self {
        Self {
            labels: body.labels,
            annotations: body.annotations,
            cluster_id: body.cluster_id,
            cloud_foundry: body.cloud_foundry,
        }
    }
}
