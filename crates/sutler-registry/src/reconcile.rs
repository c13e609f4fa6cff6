//! What a refresh changes: decided here, from what was known and what registries said, and nothing else.
//!
//! A spec is absent only if a complete listing does not have it. One that cannot be read keeps its last
//! good version. A registry that cannot be listed keeps everything. What is withdrawn is marked first, and
//! deleted only when its grace is over and no instance was made of it. So nothing goes because of a
//! failure, and nothing flaps. No I/O, no clock: who lists and fetches is `gather.rs`; what is
//! known is in `plan/known.rs`, changes in words in `plan/change.rs`, who wins where two want the same in
//! `plan/offered.rs`, what that is in `plan/wants.rs`, what developers push in `plan/pushed.rs`.

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

/// How patient the operator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawalRules {
    /// How long a mark stands before what is marked may be deleted.
    pub grace: Duration,
    /// After how many failed refreshes in a row unused specs of a registry are marked; never, if none.
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

/// One item of a complete listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It is what is known of it: nothing was fetched.
    Same,
    /// It was fetched and can be offered.
    Good {
        /// Names its content.
        digest: String,
        /// What no other offering may have: its name, its id, the ids of its plans.
        wants: ClaimedNames,
    },
    /// It is there, and cannot be read now; the sentence says why.
    Faulty(String),
    /// There is an image, and it does not say that it is a bundle. Of one that is offered that is a fault like
    /// any other; of anything else it is no news.
    NotABundle(String),
}

/// What came of asking a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOutcome {
    /// All it has, by item.
    Complete(BTreeMap<String, ItemOutcome>),
    /// It cannot be told what it has; the sentence says why.
    Failed(String),
}

/// What a refresh is decided from, besides what is known.
#[derive(Clone, Copy, Debug)]
pub struct RefreshFacts<'a> {
    /// The registries that are configured.
    pub configured: &'a BTreeSet<String>,
    /// What those said that were asked; the others are left as they are.
    pub outcomes: &'a BTreeMap<String, ListOutcome>,
    /// The specs that instances were made of, among those that [`usage_candidates`] names.
    pub used: &'a BTreeSet<SpecName>,
    /// How patient the operator is.
    pub rules: WithdrawalRules,
    /// The time.
    pub now: Timestamp,
}

/// Everything that changes: what registries said, and what may go.
#[must_use]
pub fn reconcile(known: &KnownRegistries, facts: &RefreshFacts<'_>) -> Vec<RegistryChange> {
    let mut changes = refresh(known, facts);
    let mut after = known.clone();
    changes.iter().for_each(|change| after.apply(change));
    // What is marked only now is deleted another time: nobody was asked yet who uses it.
    let still = |spec: &SpecName| after.spec(spec).is_some_and(|it| it.mark.is_some());
    let deleted = deletions(known, facts).into_iter();
    changes.extend(deleted.filter(|it| it.spec().is_none_or(still)));
    changes
}

/// What changes by what registries said. Nothing is deleted.
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

/// What may be deleted: marked, its grace over, and no instance made of it.
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

/// The specs of which it matters whether instances were made of them.
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

/// One registry, and what is known of it.
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
            seen(self.name(item), self.held(item), is, changes);
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

    /// Marks what is not marked yet: a mark keeps its first reason and its time. One that would stand for longer
    /// than the grace is from a clock that was ahead, or from a time when the grace was longer: it is cut short.
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

/// Whether it counts as listed.
fn is_item(held: Option<&KnownSpec>, seen: &ItemOutcome) -> bool {
    match seen {
        ItemOutcome::NotABundle(_) => held.is_some_and(|it| it.mark.is_none()),
        ItemOutcome::Same | ItemOutcome::Good { .. } | ItemOutcome::Faulty(_) => true,
    }
}

/// What changes by an item that is there.
fn seen(
    spec: SpecName,
    held: Option<&KnownSpec>,
    seen: &ItemOutcome,
    changes: &mut Vec<RegistryChange>,
) {
    if !is_item(held, seen) {
        return;
    }
    match (held, seen) {
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
        // Nothing is known of it, so it cannot be the same: whoever says so has forgotten something.
        (None, ItemOutcome::Same) => changes.push(RegistryChange::Skip {
            spec,
            why: "it was not fetched; refresh again".to_owned(),
        }),
        (Some(held), seen) => seen_again(spec, held, seen, changes),
    }
}

/// It is there, so a mark goes, whatever else is known of it.
fn seen_again(
    spec: SpecName,
    held: &KnownSpec,
    seen: &ItemOutcome,
    changes: &mut Vec<RegistryChange>,
) {
    if held.mark.is_some() {
        changes.push(RegistryChange::Unmark { spec: spec.clone() });
    }
    let mended = held.fault.is_some();
    match seen {
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
