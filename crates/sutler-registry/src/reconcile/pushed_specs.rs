//! Specs that developers push: a registry of its own that is never listed, so no refresh can withdraw its specs.
//!
//! A push is treated like a listed item. A deletion by the developer withdraws the spec, which is then deleted like
//! any other. If pushes are disabled, all pushed specs are withdrawn, as for any registry that is not configured,
//! and offered again when pushes are enabled.

use super::{
    ClaimedNames, ItemOutcome, KnownRegistries, KnownSpec, RegistryChange, SpecName,
    WithdrawalReason, WithdrawalRules, item_changes, marked,
};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Name of the registry of pushed specs, which no other registry may have.
pub const PUSHED_REGISTRY: &str = "apb-push";

/// Changes caused by a push.
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
    item_changes(
        SpecName::new(PUSHED_REGISTRY, item),
        held,
        &good,
        &mut changes,
    );
    changes
}

/// Change caused by a deletion by the developer.
#[must_use]
pub fn unpush(
    item: &str,
    held: &KnownSpec,
    rules: WithdrawalRules,
    now: Timestamp,
) -> Option<RegistryChange> {
    let reason = held.mark.as_ref().map(|it| it.reason);
    match reason {
        // Without the mark it would be offered again when pushes are enabled.
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

/// Changes caused by enabling pushes again.
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
    fn a_push_adds_replaces_and_restores_and_repeats_nothing() {
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
    fn pushed_services_are_offered_again_when_pushes_are_enabled_again() {
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
    fn a_spec_deleted_by_its_developer_stays_withdrawn_and_is_deleted_after_its_grace() {
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
