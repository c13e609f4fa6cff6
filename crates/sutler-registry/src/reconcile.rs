//! Decides what a refresh changes, from the known state and the outcomes of listings only.
//!
//! A spec is absent only if a complete listing does not contain it. A spec that cannot be read keeps its last good
//! version. A registry that cannot be listed keeps all specs. A withdrawn spec is marked first, and deleted only
//! when its grace period is over and no instance uses it. So a failure deletes nothing, and specs do not flap. No
//! I/O, no clock: listing and fetching is in `scan.rs`. The known state is in `reconcile/state.rs`, changes and
//! their texts in `reconcile/change.rs`, precedence between specs with the same names in
//! `reconcile/offered_specs.rs`, those names in `reconcile/claimed_names.rs`, pushed specs in
//! `reconcile/pushed_specs.rs`.

mod change;
mod claimed_names;
mod offered_specs;
mod pushed_specs;
mod state;

pub use change::RegistryChange;
pub use claimed_names::ClaimedNames;
pub use offered_specs::{NameConflict, OfferedSpecs, offered_specs};
pub use pushed_specs::{PUSHED_REGISTRY, push, unpush};
pub use state::{
    KnownRegistries, KnownRegistry, KnownSpec, SpecName, UNREAD_KEPT_MAX, WithdrawalMark,
    WithdrawalReason,
};

use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Rules for withdrawn specs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawalRules {
    /// Grace period between the mark and the deletion.
    pub grace: Duration,
    /// Number of failed refreshes in a row after which unused specs of a registry are marked; `None` means never.
    pub failures_max: Option<u32>,
}

impl Default for WithdrawalRules {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(24 * 3600),
            failures_max: None,
        }
    }
}

/// Outcome for one item of a complete listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// Unchanged: nothing was fetched.
    Same,
    /// Fetched, and can be offered.
    Good {
        /// Digest of the content.
        digest: String,
        /// Names that no other offering may have: its name, its id, the ids of its plans.
        wants: ClaimedNames,
    },
    /// Exists, but cannot be read now; the sentence names the cause.
    Faulty(String),
    /// Exists, but is not labelled as a bundle. This is an error for an offered item, and ignored for others.
    NotABundle(String),
}

/// Outcome of listing a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOutcome {
    /// All items.
    Complete(BTreeMap<String, ItemOutcome>),
    /// No complete listing; the sentence names the cause.
    Failed(String),
}

/// Input of a refresh in addition to the known state.
#[derive(Clone, Copy, Debug)]
pub struct RefreshFacts<'a> {
    /// Configured registries.
    pub configured: &'a BTreeSet<String>,
    /// Outcomes of the listed registries; others stay unchanged.
    pub outcomes: &'a BTreeMap<String, ListOutcome>,
    /// Specs that instances use, among those that [`usage_candidates`] returns.
    pub used: &'a BTreeSet<SpecName>,
    /// Rules for withdrawn specs.
    pub rules: WithdrawalRules,
    /// Current time.
    pub now: Timestamp,
}

/// All changes of a refresh: those of listings, and deletions.
#[must_use]
pub fn reconcile(known: &KnownRegistries, facts: &RefreshFacts<'_>) -> Vec<RegistryChange> {
    let mut changes = refresh(known, facts);
    let mut after = known.clone();
    changes.iter().for_each(|change| after.apply(change));
    // A spec that is marked by this refresh is deleted by a later one: its usage has not been checked yet.
    let still = |spec: &SpecName| after.spec(spec).is_some_and(|it| it.mark.is_some());
    let deleted = deletions(known, facts).into_iter();
    changes.extend(deleted.filter(|it| it.spec().is_none_or(still)));
    changes
}

/// Changes caused by listings. Deletes nothing.
#[must_use]
pub fn refresh(known: &KnownRegistries, facts: &RefreshFacts<'_>) -> Vec<RegistryChange> {
    let mut changes = Vec::new();
    for (registry, outcomes) in facts.outcomes {
        let nothing = KnownRegistry::default();
        let of = RegistryRefresh {
            registry,
            known: known.0.get(registry).unwrap_or(&nothing),
            facts,
        };
        match outcomes {
            ListOutcome::Complete(items) => of.listed(items, &mut changes),
            ListOutcome::Failed(why) => of.failed(why, &mut changes),
        }
    }
    for (registry, its) in &known.0 {
        if !facts.configured.contains(registry) {
            let of = RegistryRefresh {
                registry,
                known: its,
                facts,
            };
            of.mark_all(WithdrawalReason::NotConfigured, |_| true, &mut changes);
        }
    }
    changes.extend(pushed_specs::taken_again(known, facts.configured));
    changes
}

/// Deletions: marked specs whose grace period is over and that no instance uses.
#[must_use]
pub fn deletions(known: &KnownRegistries, facts: &RefreshFacts<'_>) -> Vec<RegistryChange> {
    let expired = expired(known, facts.now);
    let unused = expired.filter(|(name, _)| !facts.used.contains(name));
    let deleted = unused.map(|(spec, held)| RegistryChange::Delete {
        spec,
        digest: held.digest.clone(),
    });
    let forgotten = known
        .0
        .iter()
        .filter(|(registry, its)| its.specs.is_empty() && !facts.configured.contains(*registry));
    let forgotten = forgotten.map(|(registry, _)| RegistryChange::Forget {
        registry: registry.clone(),
    });
    deleted.chain(forgotten).collect()
}

/// Specs whose usage by instances must be known before the refresh is decided.
#[must_use]
pub fn usage_candidates(
    known: &KnownRegistries,
    outcomes: &BTreeMap<String, ListOutcome>,
    rules: WithdrawalRules,
    now: Timestamp,
) -> BTreeSet<SpecName> {
    let mut names: BTreeSet<SpecName> = expired(known, now).map(|(name, _)| name).collect();
    for (registry, outcome) in outcomes {
        let Some(its) = known.0.get(registry) else {
            continue;
        };
        let gives_up = rules
            .failures_max
            .is_some_and(|max| its.failures + 1 >= max);
        if matches!(outcome, ListOutcome::Failed(_)) && gives_up {
            names.extend(its.specs.keys().map(|item| SpecName::new(registry, item)));
        }
    }
    names
}

fn expired(
    known: &KnownRegistries,
    now: Timestamp,
) -> impl Iterator<Item = (SpecName, &KnownSpec)> {
    known.specs().filter(move |(_, held)| {
        let until = held.mark.as_ref().map(|mark| mark.until);
        until.is_some_and(|until| until <= now)
    })
}

/// Refresh of one registry.
struct RegistryRefresh<'a> {
    registry: &'a str,
    known: &'a KnownRegistry,
    facts: &'a RefreshFacts<'a>,
}

impl RegistryRefresh<'_> {
    fn name(&self, item: &str) -> SpecName {
        SpecName::new(self.registry, item)
    }

    fn held(&self, item: &str) -> Option<&KnownSpec> {
        self.known.specs.get(item).map(AsRef::as_ref)
    }

    fn listed(&self, items: &BTreeMap<String, ItemOutcome>, changes: &mut Vec<RegistryChange>) {
        changes.push(RegistryChange::Listed {
            registry: self.registry.to_owned(),
            items: items
                .iter()
                .filter(|(item, it)| is_item(self.held(item), it))
                .count(),
            at: self.facts.now,
        });
        for (item, is) in items {
            item_changes(self.name(item), self.held(item), is, changes);
        }
        let absent = |item: &str| !items.contains_key(item);
        self.mark_all(WithdrawalReason::Absent, absent, changes);
    }

    fn failed(&self, why: &str, changes: &mut Vec<RegistryChange>) {
        let failures = self.known.failures.saturating_add(1);
        changes.push(RegistryChange::Failed {
            registry: self.registry.to_owned(),
            failures,
            why: why.to_owned(),
        });
        let max = self.facts.rules.failures_max;
        if max.is_some_and(|max| failures >= max) {
            let unused = |item: &str| !self.facts.used.contains(&self.name(item));
            self.mark_all(WithdrawalReason::Unreachable { failures }, unused, changes);
        }
    }

    /// Marks specs that are not marked yet; a mark keeps its first reason and its time. A mark that lasts longer
    /// than the grace period comes from a clock that was ahead, or from a longer grace period: it is shortened.
    fn mark_all(
        &self,
        reason: WithdrawalReason,
        which: impl Fn(&str) -> bool,
        changes: &mut Vec<RegistryChange>,
    ) {
        let new = marked(reason, self.facts.rules, self.facts.now);
        for (item, held) in self.known.specs.iter().filter(|(item, _)| which(item)) {
            let mark = match &held.mark {
                Some(mark) if mark.until <= new.until => continue,
                Some(mark) => WithdrawalMark {
                    reason: mark.reason,
                    at: mark.at.min(new.at),
                    until: new.until,
                },
                None => new.clone(),
            };
            let spec = self.name(item);
            changes.push(RegistryChange::Mark { spec, mark });
        }
    }
}

fn marked(reason: WithdrawalReason, rules: WithdrawalRules, now: Timestamp) -> WithdrawalMark {
    let until = now.checked_add(rules.grace).unwrap_or(Timestamp::MAX);
    WithdrawalMark {
        reason,
        at: now,
        until,
    }
}

/// Whether the item counts as listed.
fn is_item(held: Option<&KnownSpec>, outcome: &ItemOutcome) -> bool {
    match outcome {
        ItemOutcome::NotABundle(_) => held.is_some_and(|it| it.mark.is_none()),
        ItemOutcome::Same | ItemOutcome::Good { .. } | ItemOutcome::Faulty(_) => true,
    }
}

/// Changes caused by a listed item.
fn item_changes(
    spec: SpecName,
    held: Option<&KnownSpec>,
    outcome: &ItemOutcome,
    changes: &mut Vec<RegistryChange>,
) {
    if !is_item(held, outcome) {
        return;
    }
    match (held, outcome) {
        (None, ItemOutcome::Good { digest, wants }) => changes.push(RegistryChange::Add {
            spec,
            digest: digest.clone(),
            wants: wants.clone(),
        }),
        (None, ItemOutcome::Faulty(why) | ItemOutcome::NotABundle(why)) => {
            changes.push(RegistryChange::Skip {
                spec,
                why: why.clone(),
            })
        }
        // An unknown item cannot be unchanged: the caller lost state.
        (None, ItemOutcome::Same) => changes.push(RegistryChange::Skip {
            spec,
            why: "it was not fetched; refresh again".to_owned(),
        }),
        (Some(held), outcome) => known_item_changes(spec, held, outcome, changes),
    }
}

/// Changes of a known item that is listed: a mark is removed in any case.
fn known_item_changes(
    spec: SpecName,
    held: &KnownSpec,
    outcome: &ItemOutcome,
    changes: &mut Vec<RegistryChange>,
) {
    if held.mark.is_some() {
        changes.push(RegistryChange::Unmark { spec: spec.clone() });
    }
    let mended = held.fault.is_some();
    match outcome {
        // The same content under other names or ids is another offering: the configuration changed.
        ItemOutcome::Good { digest, wants } if *digest != held.digest || *wants != held.wants => {
            changes.push(RegistryChange::Replace {
                spec,
                from: held.digest.clone(),
                to: digest.clone(),
                wants: wants.clone(),
            });
        }
        ItemOutcome::Good { .. } | ItemOutcome::Same if mended => {
            changes.push(RegistryChange::Mend { spec })
        }
        ItemOutcome::Good { .. } | ItemOutcome::Same => {}
        ItemOutcome::Faulty(why) | ItemOutcome::NotABundle(why) => {
            changes.push(RegistryChange::Keep {
                spec,
                why: why.clone(),
            })
        }
    }
}

#[cfg(test)]
mod random_histories;
#[cfg(test)]
mod tests;
