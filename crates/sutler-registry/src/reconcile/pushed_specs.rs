//! What developers pushed: a registry of its own that nobody asks, so that no refresh can miss what is in it.
//!
//! A push is like an item that was seen. A deletion by its developer withdraws it, and what is withdrawn is
//! deleted as everywhere. Where pushes are not taken any more all of it is withdrawn, as of any registry
//! that is not configured, and is offered again when they are.

use super::{
    ClaimedNames, ItemOutcome, KnownRegistries, KnownSpec, RegistryChange, SpecName,
    WithdrawalReason, WithdrawalRules, marked, seen,
};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The name of the registry of what was pushed. No other may have it.
pub const PUSHED_REGISTRY: &str = "apb-push";

/// What changes when an item is pushed of which this is known.
#[must_use]
pub fn push(
    item: &str,
    held: Option<&KnownSpec>,
    digest: &str,
    wants: &ClaimedNames,
) -> Vec<RegistryChange> {
    let good = ItemOutcome::Good {
        digest: digest.to_owned(),
        wants: wants.clone(),
    };
    let mut changes = Vec::new();
    seen(
        SpecName::new(PUSHED_REGISTRY, item),
        held,
        &good,
        &mut changes,
    );
    changes
}

/// What changes when its developer deletes an item.
#[must_use]
pub fn unpush(
    item: &str,
    held: &KnownSpec,
    rules: WithdrawalRules,
    now: Timestamp,
) -> Option<RegistryChange> {
    let reason = held.mark.as_ref().map(|it| it.reason);
    match reason {
        // It would be offered again when pushes are taken again.
        None | Some(WithdrawalReason::NotConfigured) => Some(RegistryChange::Mark {
            spec: SpecName::new(PUSHED_REGISTRY, item),
            mark: marked(WithdrawalReason::Deleted, rules, now),
        }),
        Some(
            WithdrawalReason::Absent
            | WithdrawalReason::Unreachable { .. }
            | WithdrawalReason::Deleted,
        ) => None,
    }
}

/// What is offered again because pushes are taken again.
pub(super) fn taken_again(
    known: &KnownRegistries,
    configured: &BTreeSet<String>,
) -> Vec<RegistryChange> {
    if !configured.contains(PUSHED_REGISTRY) {
        return Vec::new();
    }
    let specs = known.specs().filter(|(spec, held)| {
        let reason = held.mark.as_ref().map(|it| it.reason);
        spec.registry == PUSHED_REGISTRY && reason == Some(WithdrawalReason::NotConfigured)
    });
    specs
        .map(|(spec, _)| RegistryChange::Unmark { spec })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{RefreshFacts, deletions, refresh};
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const RULES: WithdrawalRules = WithdrawalRules {
        grace: Duration::from_secs(60),
        failures_max: Some(1),
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn wants() -> ClaimedNames {
        ClaimedNames::from_iter(["the service id hello"])
    }

    fn do_all(known: &mut KnownRegistries, changes: &[RegistryChange]) -> Vec<&'static str> {
        changes.iter().for_each(|change| known.apply(change));
        changes.iter().map(RegistryChange::word).collect()
    }

    fn push_to(known: &mut KnownRegistries, digest: &str) -> Vec<&'static str> {
        let held = known.spec(&SpecName::new(PUSHED_REGISTRY, "hello"));
        let changes = push("hello", held, digest, &wants());
        do_all(known, &changes)
    }

    fn refresh_of(known: &mut KnownRegistries, configured: &[&str], now: i64) -> Vec<&'static str> {
        let configured = configured.iter().map(|it| (*it).to_owned()).collect();
        let facts = RefreshFacts {
            configured: &configured,
            outcomes: &BTreeMap::new(),
            used: &BTreeSet::new(),
            rules: RULES,
            now: at(now),
        };
        let changes = refresh(known, &facts);
        do_all(known, &changes)
    }

    #[test]
    fn a_push_adds_replaces_and_brings_back_and_says_nothing_twice() {
        let mut known = KnownRegistries::default();
        assert_eq!(push_to(&mut known, "1"), ["add"]);
        assert_eq!(push_to(&mut known, "1"), [""; 0]);
        assert_eq!(push_to(&mut known, "2"), ["replace"]);
        let held = known
            .spec(&SpecName::new(PUSHED_REGISTRY, "hello"))
            .expect("held");
        let gone = unpush("hello", held, RULES, at(0)).expect("it goes");
        known.apply(&gone);
        assert_eq!(push_to(&mut known, "3"), ["unmark", "replace"]);
    }

    #[test]
    fn what_was_pushed_is_offered_again_when_pushes_are_taken_again() {
        let mut known = KnownRegistries::default();
        push_to(&mut known, "1");
        assert_eq!(refresh_of(&mut known, &["dh"], 0), ["mark"]);
        assert_eq!(refresh_of(&mut known, &["dh"], 1), [""; 0]);
        assert_eq!(
            refresh_of(&mut known, &["dh", PUSHED_REGISTRY], 2),
            ["unmark"]
        );
        assert_eq!(refresh_of(&mut known, &["dh", PUSHED_REGISTRY], 3), [""; 0]);
    }

    #[test]
    fn what_its_developer_deleted_stays_deleted_and_goes_after_its_grace() {
        let mut known = KnownRegistries::default();
        push_to(&mut known, "1");
        refresh_of(&mut known, &[], 0);
        let name = SpecName::new(PUSHED_REGISTRY, "hello");
        let held = known.spec(&name).expect("held").clone();
        let gone = unpush("hello", &held, RULES, at(1)).expect("it goes");
        known.apply(&gone);
        let held = known.spec(&name).expect("held").clone();
        assert_eq!(unpush("hello", &held, RULES, at(2)), None);
        assert_eq!(refresh_of(&mut known, &[PUSHED_REGISTRY], 3), [""; 0]);
        let configured = BTreeSet::from([PUSHED_REGISTRY.to_owned()]);
        let (nobody, nothing) = (BTreeSet::new(), BTreeMap::new());
        let facts = |now| RefreshFacts {
            configured: &configured,
            outcomes: &nothing,
            used: &nobody,
            rules: RULES,
            now: at(now),
        };
        assert_eq!(deletions(&known, &facts(60)), []);
        let changes = deletions(&known, &facts(61));
        assert_eq!(do_all(&mut known, &changes), ["delete"]);
    }
}
