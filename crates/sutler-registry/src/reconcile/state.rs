//! What is known of registries between refreshes: what is kept, and what changes do to it.

use super::{ClaimedNames, RegistryChange};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Most items of one registry of which it is kept why they cannot be offered.
pub const UNREAD_KEPT_MAX: usize = 100;

/// Names a spec: a registry, and an item of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpecName {
    /// The registry.
    pub registry: String,
    /// The item, as its registry names it.
    pub item: String,
}

impl SpecName {
    /// An item of a registry.
    #[must_use]
    pub fn new(registry: &str, item: &str) -> Self {
        Self {
            registry: registry.to_owned(),
            item: item.to_owned(),
        }
    }
}

impl fmt::Display for SpecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.item)
    }
}

/// Why a spec is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum WithdrawalReason {
    /// A complete listing does not have it.
    Absent,
    /// Its registry could not be listed so many times in a row.
    Unreachable {
        /// How often.
        failures: u32,
    },
    /// Its registry is not configured any more.
    NotConfigured,
    /// The developer who pushed it deleted it.
    Deleted,
}

impl fmt::Display for WithdrawalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("its registry does not have it any more"),
            Self::Unreachable { failures } => {
                write!(
                    f,
                    "its registry could not be listed {failures} times in a row"
                )
            }
            Self::NotConfigured => f.write_str("its registry is not configured any more"),
            Self::Deleted => f.write_str("its developer deleted it"),
        }
    }
}

/// A spec that is withdrawn: not offered, and deleted later if nobody needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithdrawalMark {
    /// Why.
    #[serde(flatten)]
    pub reason: WithdrawalReason,
    /// Since when.
    pub at: Timestamp,
    /// It is not deleted before.
    pub until: Timestamp,
}

/// A spec that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSpec {
    /// Names the content of its last good version.
    pub digest: String,
    /// What no other offering may have.
    pub wants: ClaimedNames,
    /// Whether it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<WithdrawalMark>,
    /// Why its present version cannot be read, so that an earlier one is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What is known of one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRegistry {
    /// Refreshes that failed since the last that did not.
    pub failures: u32,
    /// When it was last listed completely.
    #[serde(default)]
    pub listed: Option<Timestamp>,
    /// Why it could not be listed the last time.
    #[serde(default)]
    pub fault: Option<String>,
    /// How many items the last complete listing had.
    #[serde(default)]
    pub items: usize,
    /// Items that could not be read and of which no good version is known, and why: at most
    /// [`UNREAD_KEPT_MAX`].
    #[serde(default)]
    pub unread: BTreeMap<String, String>,
    /// What is kept of it, by item. There may be thousands, so copies share them.
    #[serde(default)]
    pub specs: BTreeMap<String, Arc<KnownSpec>>,
}

/// What is known of all registries, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRegistries(pub BTreeMap<String, KnownRegistry>);

impl KnownRegistries {
    /// All specs.
    pub fn specs(&self) -> impl Iterator<Item = (SpecName, &KnownSpec)> {
        let all = self.0.iter();
        all.flat_map(|(registry, its)| {
            let specs = its.specs.iter();
            specs.map(|(item, held)| (SpecName::new(registry, item), held.as_ref()))
        })
    }

    /// A spec, if it is known.
    #[must_use]
    pub fn spec(&self, name: &SpecName) -> Option<&KnownSpec> {
        self.held(name).map(Arc::as_ref)
    }

    /// The same, to be kept.
    #[must_use]
    pub fn held(&self, name: &SpecName) -> Option<&Arc<KnownSpec>> {
        self.0.get(&name.registry)?.specs.get(&name.item)
    }

    /// Does what a change says. A change that does not fit changes nothing.
    pub fn apply(&mut self, change: &RegistryChange) {
        match change {
            RegistryChange::Listed {
                registry,
                items,
                at,
            } => {
                let its = self.0.entry(registry.clone()).or_default();
                its.failures = 0;
                its.fault = None;
                its.listed = Some(*at);
                its.items = *items;
                its.unread.clear();
            }
            RegistryChange::Failed {
                registry,
                failures,
                why,
            } => {
                let its = self.0.entry(registry.clone()).or_default();
                its.failures = *failures;
                its.fault = Some(why.clone());
            }
            RegistryChange::Skip { spec, why } => {
                let its = self.0.entry(spec.registry.clone()).or_default();
                if its.unread.len() < UNREAD_KEPT_MAX {
                    its.unread.insert(spec.item.clone(), why.clone());
                }
            }
            RegistryChange::Add {
                spec,
                digest,
                wants,
            } => {
                let its = self.0.entry(spec.registry.clone()).or_default();
                let held = KnownSpec {
                    digest: digest.clone(),
                    wants: wants.clone(),
                    mark: None,
                    fault: None,
                };
                its.specs.insert(spec.item.clone(), Arc::new(held));
            }
            RegistryChange::Forget { registry } => {
                self.0.remove(registry);
            }
            RegistryChange::Delete { spec, .. } => {
                if let Some(its) = self.0.get_mut(&spec.registry) {
                    its.specs.remove(&spec.item);
                }
            }
            RegistryChange::Replace { spec, .. }
            | RegistryChange::Keep { spec, .. }
            | RegistryChange::Mend { spec }
            | RegistryChange::Mark { spec, .. }
            | RegistryChange::Unmark { spec } => {
                let its = self.0.get_mut(&spec.registry);
                if let Some(held) = its.and_then(|its| its.specs.get_mut(&spec.item)) {
                    change_held(Arc::make_mut(held), change);
                }
            }
        }
    }
}

fn change_held(held: &mut KnownSpec, change: &RegistryChange) {
    match change {
        RegistryChange::Replace { to, wants, .. } => {
            held.digest = to.clone();
            held.wants = wants.clone();
            held.fault = None;
        }
        RegistryChange::Keep { why, .. } => held.fault = Some(why.clone()),
        RegistryChange::Mend { .. } => held.fault = None,
        RegistryChange::Mark { mark, .. } => held.mark = Some(mark.clone()),
        RegistryChange::Unmark { .. } => held.mark = None,
        RegistryChange::Listed { .. }
        | RegistryChange::Failed { .. }
        | RegistryChange::Skip { .. }
        | RegistryChange::Add { .. }
        | RegistryChange::Delete { .. }
        | RegistryChange::Forget { .. } => {}
    }
}
