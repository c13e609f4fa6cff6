//! Refreshes, deletions and provisions interleaved at every call of the store; and tasks that die before each of
//! their calls. In every order: no named record is missing, and no offering disappears and returns.

use super::fixture::{FakeRegistry, Fixture, TestBroker, manifest};
use super::scheduler::Scheduler;
use serde_json::Value;
use std::sync::Arc;
use sutler_broker::{CollectionItem, Collections};
use sutler_bundle_service::{DELETIONS, REFRESH};

const HELLO: &str = "org/hello:latest";
const NOTHING: [&str; 0] = [];
/// More calls than any task makes.
const ALL: usize = usize::MAX;

struct RaceFixture {
    fixture: Fixture,
    registry: Arc<FakeRegistry>,
    scheduler: Arc<Scheduler>,
    broker: TestBroker,
}

impl RaceFixture {
    async fn open() -> Self {
        let registry = FakeRegistry::new("dh");
        registry.push(HELLO, &manifest("1.0.0"));
        let scheduler = Arc::new(Scheduler::default());
        let mut fixture = Fixture::with(std::slice::from_ref(&registry));
        fixture.scheduler = Some(scheduler.clone());
        let broker = fixture.open().await;
        broker.refresh().await;
        broker.delete().await;
        Self {
            fixture,
            registry,
            scheduler,
            broker,
        }
    }

    fn push(&self, version: &str) {
        self.registry.push(HELLO, &manifest(version));
    }

    /// Runs both tasks, in this order of parts.
    async fn both(&self, parts: &[(&str, usize)]) {
        self.scheduler.set_plan(parts);
        tokio::join!(self.broker.refresh(), self.broker.delete());
    }

    /// Versions in the manifests of the stored versions.
    async fn versions(&self) -> Vec<String> {
        let keep = |found: &mut Vec<String>, it: CollectionItem<Value>| {
            let manifest = it.value["manifest"].as_str().unwrap_or_default();
            let version = manifest.split("bundle_version: ").nth(1);
            let version = version.and_then(|it| it.split(',').next());
            found.push(version.unwrap_or_default().to_owned());
        };
        let found = self.collections().fold("version", Vec::new(), keep).await;
        let mut found = found.expect("the store answers");
        found.sort();
        found
    }

    fn collections(&self) -> Collections {
        self.broker
            .running
            .collections()
            .expect("there are periodic tasks")
    }

    /// Asserts that every version named by a spec is stored, and that no write is unfinished.
    async fn holds(&self, when: &str) {
        let collections = self.collections();
        let keep = |named: &mut Vec<_>, it: CollectionItem<Value>| {
            named.push(it.value["version"].as_str().map(str::to_owned));
        };
        let named = collections.fold("spec", Vec::new(), keep).await;
        for version in named.expect("the store answers") {
            let version = version.expect("a spec names its version");
            let found = collections.get::<Value>("version", &version).await;
            let found = found.expect("the store answers");
            assert!(
                found.is_some(),
                "{when}: {version} is named and is not there"
            );
        }
        let generation = collections.get::<Value>("registries", "generation").await;
        let generation = generation
            .expect("the store answers")
            .expect("it is written");
        assert_eq!(generation.value["dirty"], false, "{when}");
        for task in [REFRESH, DELETIONS] {
            let status = self.broker.running.task_status(task).await;
            let failure = status.expect("the store answers").failure;
            assert_eq!(failure, None, "{when}: {task}");
        }
    }

    /// For every pair of call counts: the first task makes some calls, then the second, then each runs to its end.
    async fn every_order(&self, prepare: impl AsyncFn(), check: impl AsyncFn(&str)) {
        for (first, second) in [(REFRESH, DELETIONS), (DELETIONS, REFRESH)] {
            prepare().await;
            self.both(&[(first, ALL), (second, ALL)]).await;
            check("one after the other").await;
            let (of_first, of_second) = (self.scheduler.made(first), self.scheduler.made(second));
            assert!(
                of_first > 3 && of_second > 3,
                "{of_first} and {of_second} calls"
            );
            // All orders once; with the deletions first, the refresh pauses only at half of its calls or at its end.
            let parts_of_second: Vec<usize> = match first {
                REFRESH => (1..=of_second).collect(),
                _ => vec![of_second / 2, of_second],
            };
            for one in 0..of_first {
                for &two in &parts_of_second {
                    prepare().await;
                    let parts = [(first, one), (second, two), (first, ALL), (second, ALL)];
                    self.both(&parts).await;
                    check(&format!("{first} {one}, {second} {two}")).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_spec_that_returns_while_it_is_deleted_is_offered_in_every_order() {
    let race = RaceFixture::open().await;
    let prepare = async || {
        race.registry.remove(HELLO);
        race.broker.refresh().await;
        assert_eq!(race.broker.offers().await, NOTHING);
        race.push("1.0.0");
    };
    let check = async |when: &str| {
        race.holds(when).await;
        assert_eq!(race.broker.offers().await, ["hello"], "{when}");
        assert_eq!(race.broker.specs("dh").await, [HELLO], "{when}");
    };
    race.every_order(prepare, check).await;
}

#[tokio::test]
async fn a_version_that_returns_while_it_is_deleted_is_stored_in_every_order() {
    let race = RaceFixture::open().await;
    let prepare = async || {
        race.push("1.0.0");
        race.broker.refresh().await;
        race.push("2.0.0");
        race.broker.refresh().await;
        race.push("1.0.0");
    };
    let check = async |when: &str| {
        race.holds(when).await;
        assert!(
            race.versions().await.contains(&"1.0.0".to_owned()),
            "{when}"
        );
        race.broker.delete().await;
        assert_eq!(race.versions().await, ["1.0.0"], "{when}");
    };
    race.every_order(prepare, check).await;
}

#[tokio::test]
async fn a_provision_in_the_middle_of_withdrawal_and_deletion_is_refused_or_keeps_its_spec() {
    let race = RaceFixture::open().await;
    race.registry.remove(HELLO);
    race.both(&[(REFRESH, ALL), (DELETIONS, ALL)]).await;
    let (refresh, deletions) = (race.scheduler.made(REFRESH), race.scheduler.made(DELETIONS));
    let (mut served, mut refused) = (0, 0);
    // A refresh first reads, and writes in its second half.
    for one in refresh / 2..=refresh {
        for two in 0..=deletions {
            race.push("1.0.0");
            race.broker.refresh().await;
            race.registry.remove(HELLO);
            match race.provision_after(one, two).await {
                true => served += 1,
                false => refused += 1,
            }
        }
    }
    assert!(
        served > 3 && refused > 3,
        "{served} served, {refused} refused"
    );
}

impl RaceFixture {
    /// Provisions after both tasks have made this many calls; returns whether an instance was created.
    async fn provision_after(&self, refresh: usize, deletions: usize) -> bool {
        let when = format!("a provision after {refresh} and {deletions} calls");
        let id = format!("i-{refresh}-{deletions}");
        let provision = async {
            self.scheduler.part_of("me").await;
            let answer = self.broker.provision(&id, "accepts_incomplete=true").await;
            self.scheduler.done("me");
            answer
        };
        let parts = [
            (REFRESH, refresh),
            (DELETIONS, deletions),
            ("me", 1),
            (DELETIONS, ALL),
            (REFRESH, ALL),
        ];
        let tasks = self.both(&parts);
        let ((), (status, answer)) = tokio::join!(tasks, provision);
        let state = match (status, answer["operation"].as_str()) {
            (202, Some(operation)) => self.broker.until_done(&id, operation).await["state"].clone(),
            _ => Value::Null,
        };
        let served = state == "succeeded";
        if served {
            assert_eq!(
                self.broker.specs("dh").await.len(),
                1,
                "{when}: its spec is gone"
            );
            assert_eq!(self.versions().await, ["1.0.0"], "{when}");
            assert_eq!(self.broker.deprovision(&id).await, 200, "{when}");
        }
        self.broker.delete().await;
        self.holds(&when).await;
        assert_eq!(self.broker.specs("dh").await, NOTHING, "{when}");
        assert_eq!(self.versions().await, NOTHING, "{when}");
        served
    }
}

#[tokio::test]
async fn a_chore_that_dies_before_any_of_its_calls_leaves_nothing_behind() {
    let race = RaceFixture::open().await;
    for task in [REFRESH, DELETIONS] {
        for calls in 0.. {
            let when = format!("{task} dies before call {calls}");
            race.push("1.0.0");
            race.registry.push("org/gone:latest", &other());
            race.broker.refresh().await;
            race.registry.remove("org/gone:latest");
            if task == DELETIONS {
                race.push("2.0.0");
                race.broker.refresh().await;
            }
            race.push("3.0.0");
            race.scheduler.kill(task, calls);
            match task {
                REFRESH => race.broker.refresh().await,
                _ => race.broker.delete().await,
            }
            let died = race.scheduler.made(task) == calls + 1;
            race.scheduler.set_plan(&[]);
            // The published offering stays, whatever was written so far.
            let offers = race.broker.offers().await;
            assert!(offers.contains(&"hello".to_owned()), "{when}: {offers:?}");
            race.broker.refresh().await;
            race.broker.delete().await;
            race.holds(&when).await;
            assert_eq!(race.broker.offers().await, ["hello"], "{when}");
            assert_eq!(race.broker.specs("dh").await, [HELLO], "{when}");
            assert_eq!(race.versions().await, ["3.0.0"], "{when}");
            if !died {
                break;
            }
        }
    }
    // Another process gets the same result.
    let other = race.fixture.open().await;
    assert_eq!(other.offers().await, ["hello"]);
    other.close().await;
}

fn other() -> String {
    let text = manifest("1.0.0").replace("hello", "gone");
    text.replace(super::fixture::PLAN, "gone-plan")
}

/// Calls of a poll that finds nothing to read: status of the task, and generation of the records.
const CALLS_PER_POLL: usize = 4;

#[tokio::test]
async fn views_during_a_refresh_do_not_read_records_again() {
    let race = RaceFixture::open().await;
    race.push("2.0.0");
    race.scheduler.set_plan(&[(REFRESH, ALL)]);
    race.broker.refresh().await;
    for at in 0..race.scheduler.made(REFRESH) {
        race.push(&format!("3.0.{at}"));
        let parts = [(REFRESH, at), ("operator", ALL), (REFRESH, ALL)];
        race.scheduler.set_plan(&parts);
        let views = async {
            race.scheduler.part_of("operator").await;
            race.broker
                .publisher
                .view()
                .await
                .expect("the store answers");
            let once = race.scheduler.made("operator");
            race.broker
                .publisher
                .view()
                .await
                .expect("the store answers");
            let again = race.scheduler.made("operator") - once;
            assert!(
                again <= CALLS_PER_POLL,
                "{again} calls after {at} of the refresh"
            );
        };
        let views = race.scheduler.acting("operator", views);
        tokio::join!(race.broker.refresh(), views);
        race.holds(&format!("looked at after {at} calls")).await;
    }
}
