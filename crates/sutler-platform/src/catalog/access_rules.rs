//! Access rules of a broker: which namespaces may see an offering or a plan, as operators choose.
//!
//! Kept apart from the items of the catalog, so that an offering that comes back has its rules still. They are applied
//! in `visibility.rs`.

use super::offered_item::PlanKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use sutler_osb::{PlanId, ServiceId};

/// Who may see the plans of a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AccessRules {
    /// Who sees plans without a rule of their own or of their offering.
    pub default: Audience,
    /// Rules for offerings.
    pub services: BTreeMap<ServiceId, ServiceAccess>,
}

/// Who may see an offering and its plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceAccess {
    /// Who sees its plans without a rule of their own, new ones included.
    pub all_plans: Option<Audience>,
    /// Rules for single plans. A rule for a plan replaces the one for the offering.
    pub plans: BTreeMap<PlanId, Audience>,
}

/// Namespaces that may see something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Audience {
    /// All namespaces.
    #[default]
    Everyone,
    /// Namespaces with certain labels.
    NamespacesWithLabels(NamespaceSelector),
    /// Namespaces by their names.
    Namespaces(BTreeSet<String>),
    /// No namespace.
    None,
}

/// Labels that a namespace must have, each with exactly this value; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<String, String>",
    into = "BTreeMap<String, String>"
)]
pub struct NamespaceSelector(BTreeMap<String, String>);

/// A selector without labels, which would select every namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must name at least one label; for all namespaces write `everyone`")]
pub struct EmptySelectorError;

impl AccessRules {
    /// The rule for a plan: its own, else that of its offering, else that of the broker.
    pub fn audience(&self, key: &PlanKey) -> &Audience {
        let service = self.services.get(&key.service_id);
        let plan = service.and_then(|service| service.plans.get(&key.plan_id));
        let rule = plan.or_else(|| service?.all_plans.as_ref());
        rule.unwrap_or(&self.default)
    }
}

impl Audience {
    /// Whether a namespace with these labels belongs to it.
    pub fn includes(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Everyone => true,
            Self::NamespacesWithLabels(selector) => selector.selects(labels),
            Self::Namespaces(names) => names.contains(namespace),
            Self::None => false,
        }
    }
}

impl NamespaceSelector {
    /// Whether all its labels are among these.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut wanted = self.0.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    }
}

impl TryFrom<BTreeMap<String, String>> for NamespaceSelector {
    type Error = EmptySelectorError;
    fn try_from(labels: BTreeMap<String, String>) -> Result<Self, EmptySelectorError> {
        if labels.is_empty() {
            Err(EmptySelectorError)
        } else {
            Ok(Self(labels))
        }
    }
}

impl From<NamespaceSelector> for BTreeMap<String, String> {
    fn from(selector: NamespaceSelector) -> Self {
        selector.0
    }
}
