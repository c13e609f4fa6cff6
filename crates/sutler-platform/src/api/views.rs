//! What callers see: JSON of namespaces, brokers, offerings, instances, bindings, intents, orphans and secrets.
//!
//! Pure: documents in, serialisable values out. None of them has credentials of brokers or bindings, or a value of a
//! secret; a value inside a transform is left out too, because it may be one. Parameters that are written out are shown.
//! Texts of brokers are shown as texts, and their links only if they lead to HTTP.

mod binding_view;
mod broker_view;
mod catalog_names;
mod catalog_view;
mod instance_view;
mod intent_view;
mod namespace_view;
mod orphan_view;
mod secret_view;
mod shown_metadata;
mod spec_view;
#[cfg(test)]
mod tests;

pub(crate) use binding_view::{BindingContext, BindingView};
pub(crate) use broker_view::BrokerDocument;
pub(crate) use catalog_names::CatalogNames;
pub(crate) use catalog_view::{OfferedClass, offered_classes};
pub(crate) use instance_view::{InstanceContext, InstanceView};
pub(crate) use intent_view::{BrokerWords, IntentDocument};
pub(crate) use namespace_view::NamespaceView;
pub(crate) use orphan_view::{OrphanId, OrphanView};
pub(crate) use secret_view::SecretView;

use crate::author::Author;
use crate::lifecycle::instance::{ConditionStatus, Tombstone};
use crate::lifecycle::intent::Abandonment;
use jiff::Timestamp;
use serde::Serialize;

/// A page of a list.
#[derive(Debug, Serialize)]
pub(crate) struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins, for `after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthorView {
    username: String,
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_by: Option<String>,
}

impl AuthorView {
    pub(crate) fn of(author: &Author) -> Self {
        Self {
            username: author.username.clone(),
            uid: author.uid.clone(),
            groups: author.groups.clone(),
            impersonated_by: author.impersonated_by.clone(),
        }
    }
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct ConditionView {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

impl ConditionView {
    fn of(condition: &ConditionStatus) -> Self {
        let (status, reason) = match condition {
            ConditionStatus::True => ("true", None),
            ConditionStatus::False(reason) => ("false", Some(*reason)),
            ConditionStatus::Unknown(reason) => ("unknown", Some(*reason)),
        };
        Self { status, reason }
    }
}

/// Why something is no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct TombstoneView {
    how: &'static str,
    at: Timestamp,
}

impl TombstoneView {
    fn of(tombstone: &Tombstone) -> Self {
        let (how, at) = match tombstone {
            Tombstone::Deleted(at) => ("deleted", *at),
            Tombstone::Abandoned(at) => ("abandoned", *at),
        };
        Self { how, at }
    }
}

/// Who gave something up, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct AbandonmentView {
    by: AuthorView,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl AbandonmentView {
    fn of(abandonment: &Abandonment) -> Self {
        Self {
            by: AuthorView::of(&abandonment.by),
            reason: abandonment.reason.clone(),
        }
    }
}

/// A link of a broker, if it leads to HTTP: others could run code in a browser.
fn http_link(url: Option<&str>) -> Option<&str> {
    let is_http = |url: &&str| {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|it| it.eq_ignore_ascii_case("http") || it.eq_ignore_ascii_case("https"))
    };
    url.filter(is_http)
}
