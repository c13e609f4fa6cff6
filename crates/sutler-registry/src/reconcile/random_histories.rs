//! Random histories of registries, compared with a small model.
//!
//! Items appear, vanish, change and fail; hosts fail; refreshes are interrupted; two replicas provision from the
//! state they read last, also between the usage check of a spec and its deletion. Developers push and delete
//! meanwhile, and pushes are enabled or disabled.
//! Invariants: no instance lacks the version that made it, and nothing is withdrawn because of a failure.

use super::{
    ClaimedNames, ItemOutcome, KnownRegistries, KnownSpec, ListOutcome, PUSHED_REGISTRY,
    RefreshFacts, RegistryChange, SpecName, WithdrawalReason, WithdrawalRules, deletions,
    offered_specs, push, refresh, unpush, usage_candidates,
};
use jiff::Timestamp;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use proptest::{collection, option, prop_assert, prop_assert_eq, prop_oneof};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const HISTORIES: u32 = 3_000;
const STEPS_MAX: usize = 120;
const REGISTRIES: [&str; 2] = ["a", "b"];
const ITEMS: usize = 2;
const GRACE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Clone, Debug)]
enum Step {
    /// A version of an item is pushed, or the item is removed.
    Push(usize, usize, Option<u8>),
    /// An item begins to fail, or recovers.
    Break(usize, usize, bool),
    /// An item loses its label of a bundle, or gets it again.
    Unlabel(usize, usize, bool),
    /// A host is up, or down.
    Host(usize, bool),
    /// A developer pushes a version, or deletes the pushed service.
    Develop(usize, Option<u8>),
    /// Pushes are enabled, or disabled.
    TakePushes(bool),
    /// A registry is refreshed; the worker may die after this many changes.
    Refresh(usize, Option<usize>),
    /// The background task reads the usage of withdrawn specs.
    AskUses,
    /// The background task deletes specs that were unused at the last check.
    Delete,
    /// A platform provisions at a replica.
    Provision(usize, usize),
    Deprovision(usize),
    /// A replica reads the store, also when it starts.
    CatchUp(usize),
    Pass(u8),
    /// Everything is read from the store again.
    Restart,
}

/// Actual state of an item.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    version: Option<u8>,
    broken: bool,
    unlabelled: bool,
}

/// Result of the last usage check.
struct Uses {
    used: BTreeSet<SpecName>,
    pinned: BTreeSet<String>,
    /// Contents at that time: no others are deleted.
    contents: BTreeMap<String, u64>,
    /// Specs at that time: a deletion expects them unchanged.
    specs_then: KnownRegistries,
}

struct World {
    truth: BTreeMap<SpecName, Truth>,
    up: [bool; 2],
    /// Services that developers have pushed and not deleted.
    pushed: BTreeMap<SpecName, u8>,
    takes_pushes: bool,
    /// The store: specs, and contents by name, each with its last write.
    store: KnownRegistries,
    contents: BTreeMap<String, u64>,
    writes: u64,
    replicas: [KnownRegistries; 2],
    /// The spec that each instance was made from, and the content it is bound to.
    instances: Vec<(SpecName, String)>,
    uses: Option<Uses>,
    rules: WithdrawalRules,
    now: i64,
}

impl World {
    fn new(failures_max: Option<u32>) -> Self {
        Self {
            truth: BTreeMap::new(),
            up: [true; 2],
            pushed: BTreeMap::new(),
            takes_pushes: true,
            store: KnownRegistries::default(),
            contents: BTreeMap::new(),
            writes: 0,
            replicas: Default::default(),
            instances: Vec::new(),
            uses: None,
            rules: WithdrawalRules {
                grace: GRACE,
                failures_max,
            },
            now: 0,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.now).expect("a time")
    }

    fn outcomes(&self, registry: usize) -> ListOutcome {
        let name = REGISTRIES[registry];
        if !self.up[registry] {
            return ListOutcome::Failed("the host is down".to_owned());
        }
        let mut items = BTreeMap::new();
        for (spec, truth) in self.truth.iter().filter(|(spec, _)| spec.registry == name) {
            let Some(version) = truth.version else {
                continue;
            };
            let digest = format!("{spec}@{version}");
            let same = self.store.spec(spec).is_some_and(|it| it.digest == digest);
            let outcome = match (truth.broken, truth.unlabelled, same) {
                (true, _, _) => ItemOutcome::Faulty("answered 500".to_owned()),
                (false, true, _) => ItemOutcome::NotABundle("has no label".to_owned()),
                (false, false, true) => ItemOutcome::Same,
                (false, false, false) => ItemOutcome::Good {
                    digest,
                    // The same item of two registries is the same service.
                    wants: ClaimedNames::from_iter([format!("the id of {}", spec.item)]),
                },
            };
            items.insert(spec.item.clone(), outcome);
        }
        ListOutcome::Complete(items)
    }

    /// Specs that instances were made from.
    fn used(&self) -> BTreeSet<SpecName> {
        self.instances
            .iter()
            .map(|(spec, _)| spec.clone())
            .collect()
    }

    fn with_facts<T>(
        &self,
        outcomes: &BTreeMap<String, ListOutcome>,
        used: &BTreeSet<SpecName>,
        then: impl FnOnce(&RefreshFacts<'_>) -> T,
    ) -> T {
        let configured = self.order().into_iter().collect();
        then(&RefreshFacts {
            configured: &configured,
            outcomes,
            used,
            rules: self.rules,
            now: self.now(),
        })
    }

    /// Configured registries, in order.
    fn order(&self) -> Vec<String> {
        let pushed = self.takes_pushes.then_some(PUSHED_REGISTRY);
        let all = REGISTRIES.into_iter().chain(pushed);
        all.map(str::to_owned).collect()
    }

    /// One commit: the content and all changes of the spec.
    fn write(&mut self, change: &RegistryChange) {
        if let RegistryChange::Add { digest, .. } | RegistryChange::Replace { to: digest, .. } =
            change
        {
            self.writes += 1;
            self.contents.insert(digest.clone(), self.writes);
        }
        self.store.apply(change);
    }

    fn develop(&mut self, item: usize, version: Option<u8>) {
        if !self.takes_pushes {
            return;
        }
        let spec = SpecName::new(PUSHED_REGISTRY, &item_name(ITEMS + item));
        let held = self.store.spec(&spec);
        let changes = match (version, held) {
            (Some(version), held) => {
                let wants = ClaimedNames::from_iter([format!("the id of {}", spec.item)]);
                push(&spec.item, held, &format!("{spec}@{version}"), &wants)
            }
            (None, Some(held)) => {
                let change = unpush(&spec.item, held, self.rules, self.now());
                change.into_iter().collect()
            }
            (None, None) => Vec::new(),
        };
        changes.iter().for_each(|change| self.write(change));
        match version {
            Some(version) => self.pushed.insert(spec, version),
            None => self.pushed.remove(&spec),
        };
    }

    /// After a complete refresh, pushed services are offered in the pushed version.
    fn is_as_pushed(&self) -> Result<(), TestCaseError> {
        for (spec, held) in self
            .store
            .specs()
            .filter(|(it, _)| it.registry == PUSHED_REGISTRY)
        {
            let version = self.pushed.get(&spec).filter(|_| self.takes_pushes);
            let expected = version.map(|version| format!("{spec}@{version}"));
            let offered = held.mark.is_none().then(|| held.digest.clone());
            prop_assert_eq!(offered, expected, "{} after a refresh", spec);
        }
        let lost = self.pushed.keys().find(|it| self.store.spec(it).is_none());
        prop_assert!(lost.is_none(), "{lost:?} was pushed and is lost");
        Ok(())
    }

    fn refresh(&mut self, registry: usize, dies_after: Option<usize>) -> Result<(), TestCaseError> {
        let outcomes = BTreeMap::from([(REGISTRIES[registry].to_owned(), self.outcomes(registry))]);
        let question = usage_candidates(&self.store, &outcomes, self.rules, self.now());
        let used: BTreeSet<_> = self.used().intersection(&question).cloned().collect();
        let changes = self.with_facts(&outcomes, &used, |facts| refresh(&self.store, facts));
        let before = self.store.clone();
        for change in changes.iter().take(dies_after.unwrap_or(usize::MAX)) {
            self.may_be(registry, change)?;
            self.write(change);
        }
        if dies_after.is_none() {
            self.is_as_pushed()?;
        }
        if dies_after.is_none() && self.up[registry] {
            self.is_as_listed(registry, &before)?;
            let again = self.outcomes(registry);
            let outcomes = BTreeMap::from([(REGISTRIES[registry].to_owned(), again)]);
            let more = self.with_facts(&outcomes, &used, |facts| refresh(&self.store, facts));
            let rest = more.iter().find(|it| it.is_seen_by_platforms());
            prop_assert!(rest.is_none(), "a second refresh finds more: {rest:?}");
        }
        Ok(())
    }

    /// Nothing is withdrawn because of a failure, unless the operator configured it.
    fn may_be(&self, registry: usize, change: &RegistryChange) -> Result<(), TestCaseError> {
        let RegistryChange::Mark { spec, mark } = change else {
            return Ok(());
        };
        match mark.reason {
            WithdrawalReason::Absent => {
                prop_assert!(
                    self.up[registry],
                    "{spec} is withdrawn though nobody listed it"
                );
                let truth = self.truth.get(spec).copied().unwrap_or_default();
                prop_assert_eq!(
                    truth.version,
                    None,
                    "{} is withdrawn though it is there",
                    spec
                );
            }
            WithdrawalReason::Unreachable { failures } => {
                prop_assert!(self.rules.failures_max.is_some_and(|max| failures >= max));
                prop_assert!(
                    !self.used().contains(spec),
                    "{spec} is withdrawn though it is used"
                );
            }
            WithdrawalReason::NotConfigured => {
                let may = spec.registry == PUSHED_REGISTRY && !self.takes_pushes;
                prop_assert!(may, "all others are configured");
            }
            WithdrawalReason::Deleted => prop_assert!(false, "only its developer deletes {}", spec),
        }
        Ok(())
    }

    /// After a complete refresh, readable items are offered in their current version, and others in their last good
    /// one.
    fn is_as_listed(&self, registry: usize, before: &KnownRegistries) -> Result<(), TestCaseError> {
        let name = REGISTRIES[registry];
        let there = self.truth.iter().filter(|(spec, _)| spec.registry == name);
        for (spec, truth) in there.filter(|_| self.up[registry]) {
            let held = self.store.spec(spec);
            let Some(version) = truth.version else {
                prop_assert!(
                    held.is_none_or(|it| it.mark.is_some()),
                    "{spec} is still offered"
                );
                continue;
            };
            let digest = match truth.broken || truth.unlabelled {
                true => before.spec(spec).map(|it| it.digest.clone()),
                false => Some(format!("{spec}@{version}")),
            };
            prop_assert_eq!(held.map(|it| it.digest.clone()), digest);
            if truth.unlabelled && !truth.broken {
                // A withdrawn spec stays withdrawn, and an offered one stays offered.
                let mark = |it: Option<&KnownSpec>| it.and_then(|it| it.mark.clone());
                prop_assert_eq!(mark(held), mark(before.spec(spec)));
                continue;
            }
            prop_assert!(
                held.is_none_or(|it| it.mark.is_none()),
                "{spec} is not offered"
            );
        }
        Ok(())
    }

    fn ask_uses(&mut self) {
        self.uses = Some(Uses {
            used: self.used(),
            pinned: self.instances.iter().map(|(_, it)| it.clone()).collect(),
            contents: self.contents.clone(),
            specs_then: self.store.clone(),
        });
    }

    fn delete(&mut self) -> Result<(), TestCaseError> {
        let Some(uses) = self.uses.take() else {
            return Ok(());
        };
        let Uses {
            used,
            pinned,
            contents,
            specs_then,
        } = uses;
        let changes = self.with_facts(&BTreeMap::new(), &used, |facts| {
            deletions(&specs_then, facts)
        });
        for change in &changes {
            // The commit expects the spec unchanged since the usage check.
            let same = |spec: &&SpecName| self.store.spec(spec) == specs_then.spec(spec);
            let Some(spec) = change.spec().filter(same) else {
                continue;
            };
            if self.pushed.contains_key(spec) {
                let mark = specs_then.spec(spec).and_then(|it| it.mark.as_ref());
                let reason = mark.map(|it| it.reason);
                prop_assert_eq!(reason, Some(WithdrawalReason::NotConfigured), "of {}", spec);
                self.pushed.remove(spec);
            }
            self.store.apply(change);
        }
        let named = |it: &String| specs_then.specs().any(|(_, held)| held.digest == *it);
        self.contents.retain(|it, written| {
            // A content that a spec named at the check may have an instance since then; one that was written since
            // then may be named soon.
            let usage_candidates = contents.get(it) == Some(written) && !pinned.contains(it);
            !usage_candidates || named(it)
        });
        Ok(())
    }

    /// A replica offers the specs it read last; the commit expects the spec to be unchanged.
    fn provision(&mut self, replica: usize, item: usize) {
        let order = self.order();
        let view = &self.replicas[replica];
        let item = item_name(item);
        let offered = offered_specs(view, &order);
        let found = offered.specs.iter().find(|(spec, _)| spec.item == item);
        let Some((spec, held)) = found else {
            return;
        };
        if self.store.spec(spec) == Some(held) {
            self.instances.push((spec.clone(), held.digest.clone()));
        } else {
            self.replicas[replica] = self.store.clone();
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Push(registry, item, version) => self.item(registry, item).version = version,
            Step::Break(registry, item, broken) => self.item(registry, item).broken = broken,
            Step::Unlabel(registry, item, lost) => self.item(registry, item).unlabelled = lost,
            Step::Host(registry, up) => self.up[registry] = up,
            Step::Develop(item, version) => self.develop(item, version),
            Step::TakePushes(taken) => self.takes_pushes = taken,
            Step::Refresh(registry, dies_after) => self.refresh(registry, dies_after)?,
            Step::AskUses => self.ask_uses(),
            Step::Delete => self.delete()?,
            Step::Provision(replica, item) => self.provision(replica, item),
            Step::Deprovision(nth) => {
                if nth < self.instances.len() {
                    self.instances.swap_remove(nth);
                }
            }
            Step::CatchUp(replica) => self.replicas[replica] = self.store.clone(),
            Step::Pass(seconds) => self.now += i64::from(seconds),
            Step::Restart => {
                let text = serde_json::to_string(&self.store).expect("it serialises");
                self.store = serde_json::from_str(&text).expect("it is read");
                self.uses = None;
            }
        }
        for (spec, digest) in &self.instances {
            prop_assert!(
                self.contents.contains_key(digest),
                "an instance of {spec} lost {digest}"
            );
            prop_assert!(
                self.store.spec(spec).is_some(),
                "an instance lost its spec {spec}"
            );
        }
        Ok(())
    }

    fn item(&mut self, registry: usize, item: usize) -> &mut Truth {
        let spec = SpecName::new(REGISTRIES[registry], &item_name(item));
        self.truth.entry(spec).or_default()
    }

    /// At the end, without further events, absent and unused specs are deleted.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.up = [true; 2];
        self.takes_pushes = true;
        for truth in self.truth.values_mut() {
            (truth.broken, truth.unlabelled) = (false, false);
        }
        for registry in 0..REGISTRIES.len() {
            self.refresh(registry, None)?;
        }
        self.now += 1_000;
        self.ask_uses();
        self.delete()?;
        let used = self.used();
        for (spec, held) in self.store.specs() {
            let kept = held.mark.is_none() || used.contains(&spec);
            prop_assert!(kept, "{spec} is kept for nobody");
        }
        Ok(())
    }
}

fn item_name(item: usize) -> String {
    format!("item-{item}")
}

fn step() -> impl Strategy<Value = Step> {
    let which = || (0..REGISTRIES.len(), 0..ITEMS);
    prop_oneof![
        3 => (which(), option::weighted(0.6, 0u8..3)).prop_map(|((r, i), v)| Step::Push(r, i, v)),
        2 => (which(), any::<bool>()).prop_map(|((r, i), broken)| Step::Break(r, i, broken)),
        1 => (which(), any::<bool>()).prop_map(|((r, i), lost)| Step::Unlabel(r, i, lost)),
        2 => (0..REGISTRIES.len(), any::<bool>()).prop_map(|(r, up)| Step::Host(r, up)),
        6 => (0..REGISTRIES.len(), option::weighted(0.2, 0usize..4))
            .prop_map(|(r, dies)| Step::Refresh(r, dies)),
        2 => proptest::strategy::Just(Step::AskUses),
        3 => proptest::strategy::Just(Step::Delete),
        3 => (0..ITEMS, option::weighted(0.6, 0u8..3)).prop_map(|(i, v)| Step::Develop(i, v)),
        1 => any::<bool>().prop_map(Step::TakePushes),
        5 => (0usize..2, 0..2 * ITEMS).prop_map(|(replica, item)| Step::Provision(replica, item)),
        1 => (0usize..4).prop_map(Step::Deprovision),
        3 => (0usize..2).prop_map(Step::CatchUp),
        3 => any::<u8>().prop_map(Step::Pass),
        1 => proptest::strategy::Just(Step::Restart),
    ]
}

#[test]
fn in_random_histories_no_instance_dangles_and_no_failure_withdraws_anything() {
    let histories = (option::of(1u32..4), collection::vec(step(), 1..STEPS_MAX));
    let mut runner = TestRunner::new(Config {
        cases: HISTORIES,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&histories, |(failures_max, steps)| {
        let mut world = World::new(failures_max);
        for step in &steps {
            world.take(step)?;
        }
        world.settle()
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
