//! A secret as it is shown: which keys it has, and who changed it. Its values are never shown, nor anything made of them.

use super::AuthorView;
use crate::commands::SecretSummary;
use jiff::Timestamp;
use serde::Serialize;

/// A secret.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretView {
    name: String,
    namespace: String,
    keys: Vec<String>,
    revision: u64,
    changed: Timestamp,
    changed_by: AuthorView,
}

impl SecretView {
    pub(crate) fn of(namespace: &str, secret: &SecretSummary) -> Self {
        Self {
            name: secret.name.clone(),
            namespace: namespace.to_owned(),
            keys: secret.keys.clone(),
            revision: secret.revision,
            changed: secret.changed,
            changed_by: AuthorView::of(&secret.changed_by),
        }
    }
}
