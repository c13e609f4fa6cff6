//! State of registries that is stored between refreshes, and how changes modify it.

use super::{ClaimedNames, RegistryChange};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Maximum number of unreadable items per registry whose causes are stored.
pub const UNREAD_KEPT_MAX: usize = 100;

/// Name of a spec: a registry and an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpecName {
    /// Registry.
    pub registry: String,
    /// Item, as its registry names it.
    pub item: String,
}

impl SpecName {
    /// Name of an item of a registry.
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

/// Reason why a spec is withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum WithdrawalReason {
    /// A complete listing does not contain it.
    Absent,
    /// Its registry could not be listed several times in a row.
    Unreachable {
        /// Number of failures.
        failures: u32,
    },
    /// Its registry is no longer configured.
    NotConfigured,
    /// Its developer deleted it.
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

/// Mark of a withdrawn spec, which is not offered, and deleted later if no instance uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithdrawalMark {
    /// Reason.
    #[serde(flatten)]
    pub reason: WithdrawalReason,
    /// Time of the withdrawal.
    pub at: Timestamp,
    /// End of the grace period.
    pub until: Timestamp,
}

/// A known spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSpec {
    /// Digest of its last good version.
    pub digest: String,
    /// Names that no other offering may have.
    pub wants: ClaimedNames,
    /// Mark, if it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<WithdrawalMark>,
    /// Reason why the current version cannot be read, so that an earlier one is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Known state of one registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownRegistry {
    /// Failed refreshes since the last successful one.
    pub failures: u32,
    /// Time of the last complete listing.
    #[serde(default)]
    pub listed: Option<Timestamp>,
    /// Cause of the last failed listing.
    #[serde(default)]
    pub fault: Option<String>,
    /// Number of items of the last complete listing.
    #[serde(default)]
    pub items: usize,
    /// Unreadable items without a known good version, and the causes: at most
    /// [`UNREAD_KEPT_MAX`].
    #[serde(default)]
    pub unread: BTreeMap<String, String>,
    /// Specs by item. There may be thousands, so clones share them.
    #[serde(default)]
    pub specs: BTreeMap<String, Arc<KnownSpec>>,
}

/// Known state of all registries, by name.
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

    /// A spec, shared.
    #[must_use]
    pub fn held(&self, name: &SpecName) -> Option<&Arc<KnownSpec>> {
        self.0.get(&name.registry)?.specs.get(&name.item)
    }

    /// Applies a change. A change of an unknown spec has no effect.
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
