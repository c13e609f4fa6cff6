//! Each rule of reconciliation separately; all of them together, over random histories: `random_histories.rs`.

use super::{
    ClaimedNames, ItemOutcome, KnownRegistries, ListOutcome, RefreshFacts, RegistryChange,
    SpecName, WithdrawalReason, WithdrawalRules, offered_specs, reconcile,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(3600);

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn good(digest: &str) -> ItemOutcome {
    let wants = ClaimedNames::from_iter([format!("the service id of {digest}")]);
    let digest = digest.to_owned();
    ItemOutcome::Good { digest, wants }
}

fn wanting(digest: &str, want: &str) -> ItemOutcome {
    ItemOutcome::Good {
        digest: digest.to_owned(),
        wants: ClaimedNames::from_iter([want]),
    }
}

fn faulty(why: &str) -> ItemOutcome {
    ItemOutcome::Faulty(why.to_owned())
}

fn complete<const N: usize>(items: [(&str, ItemOutcome); N]) -> ListOutcome {
    let items = items.into_iter();
    ListOutcome::Complete(
        items
            .map(|(item, outcome)| (item.to_owned(), outcome))
            .collect(),
    )
}

fn failed() -> ListOutcome {
    ListOutcome::Failed("no route to it; see whether it runs".to_owned())
}

/// Registries `a` and `b` are configured, in this order.
struct World {
    known: KnownRegistries,
    configured: BTreeSet<String>,
    used: BTreeSet<SpecName>,
    rules: WithdrawalRules,
    now: i64,
}

impl World {
    fn new() -> Self {
        Self {
            known: KnownRegistries::default(),
            configured: BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            used: BTreeSet::new(),
            rules: WithdrawalRules {
                grace: GRACE,
                failures_max: None,
            },
            now: 0,
        }
    }

    /// Computes and applies a refresh; returns the changes except the routine ones.
    fn refresh<const N: usize>(&mut self, outcomes: [(&str, ListOutcome); N]) -> Vec<String> {
        let outcomes: BTreeMap<String, ListOutcome> = outcomes
            .into_iter()
            .map(|(registry, outcomes)| (registry.to_owned(), outcomes))
            .collect();
        let facts = RefreshFacts {
            configured: &self.configured,
            outcomes: &outcomes,
            used: &self.used,
            rules: self.rules,
            now: second(self.now),
        };
        let changes = reconcile(&self.known, &facts);
        changes.iter().for_each(|it| self.known.apply(it));
        let lines = changes
            .iter()
            .filter(|it| !matches!(it, RegistryChange::Listed { .. }));
        lines
            .map(|it| {
                format!(
                    "{} {}",
                    it.word(),
                    it.spec().map_or(it.registry(), |it| &it.item)
                )
            })
            .collect()
    }

    fn offered(&self) -> Vec<String> {
        let order = ["a".to_owned(), "b".to_owned()];
        let offered = offered_specs(&self.known, &order);
        let names = offered.specs.iter();
        names
            .map(|(name, held)| format!("{name}@{}", held.digest))
            .collect()
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_new_item_is_offered_and_a_changed_one_is_replaced() {
    let mut world = World::new();
    assert_eq!(
        world.refresh([("a", complete([("x", good("1"))]))]),
        ["add x"]
    );
    assert_eq!(world.offered(), ["a/x@1"]);
    assert_eq!(
        world.refresh([("a", complete([("x", ItemOutcome::Same)]))]),
        NOTHING
    );
    assert_eq!(
        world.refresh([("a", complete([("x", good("2"))]))]),
        ["replace x"]
    );
    assert_eq!(world.offered(), ["a/x@2"]);
}

#[test]
fn an_item_that_fails_keeps_its_last_good_version() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    let broken = complete([("x", faulty("answered 500")), ("y", faulty("answered 500"))]);
    assert_eq!(world.refresh([("a", broken)]), ["keep x", "skip y"]);
    assert_eq!(world.offered(), ["a/x@1"]);
    let fault = world.known.0["a"].specs["x"].fault.as_deref();
    assert_eq!(fault, Some("answered 500"));
    assert_eq!(world.known.0["a"].unread.len(), 1);
    let healed = complete([("x", ItemOutcome::Same), ("y", good("2"))]);
    assert_eq!(world.refresh([("a", healed)]), ["mend x", "add y"]);
    assert_eq!(world.known.0["a"].specs["x"].fault, None);
    assert!(world.known.0["a"].unread.is_empty());
}

#[test]
fn a_registry_that_cannot_be_listed_keeps_everything_for_ever() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    for failures in 1..100 {
        world.now += 1_000_000;
        assert_eq!(world.refresh([("a", failed())]), ["failed a"]);
        assert_eq!(world.known.0["a"].failures, failures);
        assert_eq!(world.offered(), ["a/x@1"]);
    }
    assert_eq!(
        world.refresh([("a", complete([("x", ItemOutcome::Same)]))]),
        NOTHING
    );
    assert_eq!(world.known.0["a"].failures, 0);
}

#[test]
fn an_impatient_operator_has_unused_specs_withdrawn_after_so_many_failures() {
    let mut world = World::new();
    world.rules.failures_max = Some(2);
    let both = complete([("used", good("1")), ("unused", good("2"))]);
    world.refresh([("a", both)]);
    world.used.insert(SpecName::new("a", "used"));
    assert_eq!(world.refresh([("a", failed())]), ["failed a"]);
    assert_eq!(
        world.refresh([("a", failed())]),
        ["failed a", "mark unused"]
    );
    assert_eq!(world.offered(), ["a/used@1"]);
    // One successful refresh resets the count of failures.
    let back = complete([("used", ItemOutcome::Same), ("unused", ItemOutcome::Same)]);
    assert_eq!(world.refresh([("a", back)]), ["unmark unused"]);
    assert_eq!(world.refresh([("a", failed())]), ["failed a"]);
    assert_eq!(world.offered(), ["a/unused@2", "a/used@1"]);
}

#[test]
fn a_spec_missing_from_a_complete_listing_is_withdrawn_and_returns_unchanged() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    world.now = 10;
    assert_eq!(world.refresh([("a", complete([]))]), ["mark x"]);
    let mark = world.known.0["a"].specs["x"].mark.clone().expect("a mark");
    assert_eq!(mark.reason, WithdrawalReason::Absent);
    assert_eq!((mark.at, mark.until), (second(10), second(3610)));
    assert_eq!(world.offered(), NOTHING);
    // The mark keeps its time.
    world.now = 20;
    assert_eq!(world.refresh([("a", complete([]))]), NOTHING);
    assert_eq!(world.known.0["a"].specs["x"].mark, Some(mark));
    assert_eq!(
        world.refresh([("a", complete([("x", ItemOutcome::Same)]))]),
        ["unmark x"]
    );
    assert_eq!(world.offered(), ["a/x@1"]);
}

#[test]
fn a_withdrawn_spec_returns_although_it_cannot_be_read() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    world.refresh([("a", complete([]))]);
    let back = complete([("x", faulty("answered 500"))]);
    assert_eq!(world.refresh([("a", back)]), ["unmark x", "keep x"]);
    assert_eq!(world.offered(), ["a/x@1"]);
}

#[test]
fn an_image_that_loses_its_label_withdraws_nothing_and_restores_nothing() {
    let unlabelled = |why: &str| complete([("x", ItemOutcome::NotABundle(why.to_owned()))]);
    let mut world = World::new();
    assert_eq!(world.refresh([("a", unlabelled("no label"))]), NOTHING);
    assert_eq!(world.known.0["a"].items, 0, "it counts as not listed");
    world.refresh([("a", complete([("x", good("1"))]))]);
    assert_eq!(world.refresh([("a", unlabelled("no label"))]), ["keep x"]);
    assert_eq!(world.offered(), ["a/x@1"]);
    let fault = world.known.0["a"].specs["x"].fault.clone();
    assert_eq!(fault.as_deref(), Some("no label"));
    assert_eq!(world.known.0["a"].items, 1);
    let mended = complete([("x", ItemOutcome::Same)]);
    assert_eq!(world.refresh([("a", mended)]), ["mend x"]);
    world.refresh([("a", complete([]))]);
    assert_eq!(world.refresh([("a", unlabelled("no label"))]), NOTHING);
    assert_eq!(world.offered(), NOTHING);
}

#[test]
fn a_withdrawn_spec_is_deleted_after_its_grace_and_not_while_it_is_used() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    world.used.insert(SpecName::new("a", "x"));
    world.refresh([("a", complete([]))]);
    world.now = 3599;
    world.used.clear();
    assert_eq!(world.refresh([]), NOTHING);
    world.now = 3600;
    world.used.insert(SpecName::new("a", "x"));
    assert_eq!(world.refresh([]), NOTHING);
    world.used.clear();
    assert_eq!(world.refresh([]), ["delete x"]);
    assert!(world.known.0["a"].specs.is_empty());
}

#[test]
fn a_spec_that_returns_after_its_grace_and_before_its_deletion_stays() {
    let mut world = World::new();
    world.refresh([("a", complete([("x", good("1"))]))]);
    world.refresh([("a", complete([]))]);
    world.now = 3600;
    let back = world.refresh([("a", complete([("x", ItemOutcome::Same)]))]);
    assert_eq!(back, ["unmark x"]);
    assert_eq!(world.offered(), ["a/x@1"]);
}

#[test]
fn a_mark_from_a_clock_that_was_ahead_is_shortened_and_one_from_a_clock_behind_is_kept() {
    let mut world = World::new();
    world.refresh([("a", complete([("x:1", good("d1"))]))]);
    let year = 365 * 24 * 3600;
    world.now = year;
    world.refresh([("a", complete([]))]);
    // The clock was corrected.
    world.now = 100;
    assert_eq!(world.refresh([("a", complete([]))]).len(), 1);
    let held = world.known.spec(&SpecName::new("a", "x:1"));
    let mark = held
        .and_then(|it| it.mark.clone())
        .expect("it is withdrawn");
    assert_eq!(mark.reason, WithdrawalReason::Absent);
    assert_eq!((mark.at, mark.until), (second(100), second(100 + 3600)));
    // It is shortened only once, and not deleted early.
    world.now = 200;
    assert_eq!(world.refresh([("a", complete([]))]), [""; 0]);
    world.now = 50;
    assert_eq!(world.refresh([("a", failed())]).len(), 1);
    assert!(world.known.spec(&SpecName::new("a", "x:1")).is_some());
    world.now = 100 + 3600;
    world.refresh([("a", complete([]))]);
    assert_eq!(world.known.spec(&SpecName::new("a", "x:1")), None);
}

#[test]
fn the_same_content_under_other_ids_is_replaced() {
    let mut world = World::new();
    world.refresh([(
        "a",
        complete([("x:1", wanting("d1", "the service id old"))]),
    )]);
    world.refresh([(
        "a",
        complete([("x:1", wanting("d1", "the service id new"))]),
    )]);
    let held = world.known.spec(&SpecName::new("a", "x:1"));
    let wants = &held.expect("it is there").wants;
    assert_eq!(wants, &ClaimedNames::from_iter(["the service id new"]));
}

#[test]
fn a_registry_that_is_left_out_of_the_configuration_is_withdrawn_and_forgotten() {
    let mut world = World::new();
    world.refresh([("b", complete([("x", good("1"))]))]);
    world.configured.remove("b");
    assert_eq!(world.refresh([]), ["mark x"]);
    world.now = 3600;
    assert_eq!(world.refresh([]), ["delete x"]);
    assert_eq!(world.refresh([]), ["forget b"]);
    assert!(world.known.0.is_empty());
}

#[test]
fn of_two_specs_with_the_same_name_the_one_of_the_first_registry_is_offered() {
    let mut world = World::new();
    world.refresh([("b", complete([("x", wanting("1", "the id s"))]))]);
    assert_eq!(world.offered(), ["b/x@1"]);
    world.refresh([("a", complete([("y", wanting("2", "the id s"))]))]);
    assert_eq!(world.offered(), ["a/y@2"]);
    let order = ["a".to_owned(), "b".to_owned()];
    let conflicts = offered_specs(&world.known, &order).conflicts;
    let lines: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "a/y and b/x both have the id s: b/x is not offered until one of them has another, or its \
          registry stands first in the configuration"
        ]
    );
    // A failure of the first does not move the offering to the second and back.
    world.refresh([("a", failed())]);
    assert_eq!(world.offered(), ["a/y@2"]);
    world.refresh([("a", complete([("y", faulty("answered 500"))]))]);
    assert_eq!(world.offered(), ["a/y@2"]);
    world.refresh([("a", complete([]))]);
    assert_eq!(world.offered(), ["b/x@1"]);
}

#[test]
fn changes_print_as_one_line() {
    let mut world = World::new();
    let items = complete([
        ("x", good("sha256:0123456789abcdef")),
        ("y", faulty("no label")),
    ]);
    let outcomes = BTreeMap::from([("a".to_owned(), items), ("b".to_owned(), failed())]);
    let facts = RefreshFacts {
        configured: &world.configured,
        outcomes: &outcomes,
        used: &world.used,
        rules: world.rules,
        now: second(0),
    };
    let changes = reconcile(&world.known, &facts);
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "listed    a: 2 items",
            "add       a/x sha256:0123456789ab",
            "skip      a/y, it is not offered: no label",
            "failed    b (refresh 1 in a row), all of it stays: no route to it; see whether it runs",
        ]
    );
    changes.iter().for_each(|it| world.known.apply(it));
    let gone = BTreeMap::from([("a".to_owned(), complete([]))]);
    let facts = RefreshFacts {
        outcomes: &gone,
        now: second(60),
        ..facts
    };
    let lines: Vec<String> = reconcile(&world.known, &facts)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines[1],
        "withdraw  a/x: its registry does not have it any more; kept until 1970-01-01T01:01:00Z at least"
    );
}
