//! `maintenance_info`: the version of what a plan's instances run.
//!
//! The same shape stands in the catalog, in requests and in fetched instances. That a catalog's
//! version is semantic is checked in `catalog/load.rs`; whether a request's version conflicts with
//! the plan's (B-128, B-167) is the broker's decision.

use serde::{Deserialize, Serialize};

/// A version and what reaching it means for the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceInfo {
    /// A semantic version 2.0; always there in a loaded catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The impact of the maintenance, for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl MaintenanceInfo {
    /// Says just the version.
    pub fn of_version(version: impl Into<String>) -> Self {
        Self {
            version: Some(version.into()),
            description: None,
        }
    }

    /// The version a request names. An object without one, or with an empty one as generated
    /// clients write it, counts as absent (D-05).
    pub fn requested_version(info: Option<&Self>) -> Option<&str> {
        info.and_then(|info| info.version.as_deref())
            .filter(|version| !version.is_empty())
    }
}
