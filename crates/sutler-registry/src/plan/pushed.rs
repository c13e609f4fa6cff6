//! What developers pushed: a registry of its own that nobody asks, so that no refresh can miss what is in it.
//!
//! A push is like an item that was seen. A deletion by its developer withdraws it, and what is withdrawn is
//! deleted as everywhere. Where pushes are not taken any more all of it is withdrawn, as of any registry
//! that is not configured, and is offered again when they are.

use super::{Change, Held, Reason, Registries, Rules, Seen, SpecName, Wants, marked, seen};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// The name of the registry of what was pushed. No other may have it.
pub const PUSHED: &str = "apb-push";

/// What changes when an item is pushed of which this is known.
#[must_use]
pub fn push(item: &str, held: Option<&Held>, digest: &str, wants: &Wants) -> Vec<Change> {
    let good = Seen::Good {
        digest: digest.to_owned(),
        wants: wants.clone(),
    };
    let mut changes = Vec::new();
    seen(SpecName::new(PUSHED, item), held, &good, &mut changes);
    changes
}

/// What changes when its developer deletes an item.
#[must_use]
pub fn unpush(item: &str, held: &Held, rules: Rules, now: Timestamp) -> Option<Change> {
    let reason = held.mark.as_ref().map(|it| it.reason);
    match reason {
        // It would be offered again when pushes are taken again.
        None | Some(Reason::NotConfigured) => Some(Change::Mark {
            spec: SpecName::new(PUSHED, item),
            mark: marked(Reason::Deleted, rules, now),
        }),
        Some(Reason::Absent | Reason::Unreachable { .. } | Reason::Deleted) => None,
    }
}

/// What is offered again because pushes are taken again.
pub(super) fn taken_again(known: &Registries, configured: &BTreeSet<String>) -> Vec<Change> {
    if !configured.contains(PUSHED) {
        return Vec::new();
    }
    let specs = known.specs().filter(|(spec, held)| {
        let reason = held.mark.as_ref().map(|it| it.reason);
        spec.registry == PUSHED && reason == Some(Reason::NotConfigured)
    });
    specs.map(|(spec, _)| Change::Unmark { spec }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, deletions, refresh};
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const RULES: Rules = Rules {
        grace: Duration::from_secs(60),
        failures_max: Some(1),
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn wants() -> Wants {
        Wants::from_iter(["the service id hello"])
    }

    fn do_all(known: &mut Registries, changes: &[Change]) -> Vec<&'static str> {
        changes.iter().for_each(|change| known.apply(change));
        changes.iter().map(Change::word).collect()
    }

    fn push_to(known: &mut Registries, digest: &str) -> Vec<&'static str> {
        let held = known.spec(&SpecName::new(PUSHED, "hello"));
        let changes = push("hello", held, digest, &wants());
        do_all(known, &changes)
    }

    fn refresh_of(known: &mut Registries, configured: &[&str], now: i64) -> Vec<&'static str> {
        let configured = configured.iter().map(|it| (*it).to_owned()).collect();
        let facts = Facts {
            configured: &configured,
            asked: &BTreeMap::new(),
            used: &BTreeSet::new(),
            rules: RULES,
            now: at(now),
        };
        let changes = refresh(known, &facts);
        do_all(known, &changes)
    }

    #[test]
    fn a_push_adds_replaces_and_brings_back_and_says_nothing_twice() {
        let mut known = Registries::default();
        assert_eq!(push_to(&mut known, "1"), ["add"]);
        assert_eq!(push_to(&mut known, "1"), [""; 0]);
        assert_eq!(push_to(&mut known, "2"), ["replace"]);
        let held = known.spec(&SpecName::new(PUSHED, "hello")).expect("held");
        let gone = unpush("hello", held, RULES, at(0)).expect("it goes");
        known.apply(&gone);
        assert_eq!(push_to(&mut known, "3"), ["unmark", "replace"]);
    }

    #[test]
    fn what_was_pushed_is_offered_again_when_pushes_are_taken_again() {
        let mut known = Registries::default();
        push_to(&mut known, "1");
        assert_eq!(refresh_of(&mut known, &["dh"], 0), ["mark"]);
        assert_eq!(refresh_of(&mut known, &["dh"], 1), [""; 0]);
        assert_eq!(refresh_of(&mut known, &["dh", PUSHED], 2), ["unmark"]);
        assert_eq!(refresh_of(&mut known, &["dh", PUSHED], 3), [""; 0]);
    }

    #[test]
    fn what_its_developer_deleted_stays_deleted_and_goes_after_its_grace() {
        let mut known = Registries::default();
        push_to(&mut known, "1");
        refresh_of(&mut known, &[], 0);
        let name = SpecName::new(PUSHED, "hello");
        let held = known.spec(&name).expect("held").clone();
        let gone = unpush("hello", &held, RULES, at(1)).expect("it goes");
        known.apply(&gone);
        let held = known.spec(&name).expect("held").clone();
        assert_eq!(unpush("hello", &held, RULES, at(2)), None);
        assert_eq!(refresh_of(&mut known, &[PUSHED], 3), [""; 0]);
        let configured = BTreeSet::from([PUSHED.to_owned()]);
        let (nobody, nothing) = (BTreeSet::new(), BTreeMap::new());
        let facts = |now| Facts {
            configured: &configured,
            asked: &nothing,
            used: &nobody,
            rules: RULES,
            now: at(now),
        };
        assert_eq!(deletions(&known, &facts(60)), []);
        let changes = deletions(&known, &facts(61));
        assert_eq!(do_all(&mut known, &changes), ["delete"]);
    }
}
