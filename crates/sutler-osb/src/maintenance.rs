//! `maintenance_info`: the maintenance version of a plan or an instance.
//!
//! The catalog, requests and fetched instances have the same shape. `catalog/load.rs` checks that a
//! catalog's version is semantic; the broker decides whether a request's version conflicts with the
//! plan's (B-128, B-167).

use serde::{Deserialize, Serialize};

/// A version, and the impact of an upgrade to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceInfo {
    /// A semantic version 2.0; always set in a loaded catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The impact of the maintenance, for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl MaintenanceInfo {
    /// Only a version.
    pub fn of_version(version: impl Into<String>) -> Self {
        Self {
            version: Some(version.into()),
            description: None,
        }
    }

    /// The version that a request names. An object without a version, or with an empty one as generated
    /// clients send it, counts as absent (D-05).
    pub fn requested_version(info: Option<&Self>) -> Option<&str> {
        info.and_then(|info| info.version.as_deref())
            .filter(|version| !version.is_empty())
    }
}
