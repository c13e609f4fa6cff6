//! Refreshes, deletions and provisions beside each other, one call of the store at a time; and chores that die
//! before each of their calls. Whatever comes first: nothing that is named is missing, and nothing flaps.

use super::fixture::{FakeRegistry, Fixture, TestBroker, manifest};
use super::scheduler::Scheduler;
use serde_json::Value;
use std::sync::Arc;
use sutler_broker::{CollectionItem, Collections};
use sutler_bundle_service::{DELETIONS, REFRESH};

const HELLO: &str = "org/hello:latest";
const NOTHING: [&str; 0] = [];
/// More calls than anybody makes.
const ALL: usize = usize::MAX;

struct InterleavedFixture {
    fixture: Fixture,
    registry: Arc<FakeRegistry>,
    scheduler: Arc<Scheduler>,
    broker: TestBroker,
}

impl InterleavedFixture {
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

    /// Both chores, the parts in this order.
    async fn both(&self, parts: &[(&str, usize)]) {
        self.scheduler.conduct(parts);
        tokio::join!(self.broker.refresh(), self.broker.delete());
    }

    /// The versions that are written down, by what their manifests say.
    async fn versions(&self) -> Vec<String> {
        let keep = |found: &mut Vec<String>, it: CollectionItem<Value>| {
            let manifest = it.value["manifest"].as_str().unwrap_or_default();
            let version = manifest.split("bundle_version: ").nth(1);
            let version = version.and_then(|it| it.split(',').next());
            found.push(version.unwrap_or_default().to_owned());
        };
        let found = self.ledger().fold("version", Vec::new(), keep).await;
        let mut found = found.expect("the store answers");
        found.sort();
        found
    }

    fn ledger(&self) -> Collections {
        self.broker.running.collections().expect("there are chores")
    }

    /// Every version that a spec names is there, and nobody is in the middle of anything.
    async fn holds(&self, when: &str) {
        let ledger = self.ledger();
        let keep = |named: &mut Vec<_>, it: CollectionItem<Value>| {
            named.push(it.value["version"].as_str().map(str::to_owned));
        };
        let named = ledger.fold("spec", Vec::new(), keep).await;
        for version in named.expect("the store answers") {
            let version = version.expect("a spec names its version");
            let found = ledger.get::<Value>("version", &version).await;
            let found = found.expect("the store answers");
            assert!(
                found.is_some(),
                "{when}: {version} is named and is not there"
            );
        }
        let generation = ledger.get::<Value>("registries", "generation").await;
        let generation = generation
            .expect("the store answers")
            .expect("it is written");
        assert_eq!(generation.value["dirty"], false, "{when}");
        for chore in [REFRESH, DELETIONS] {
            let status = self.broker.running.task_status(chore).await;
            let failure = status.expect("the store answers").failure;
            assert_eq!(failure, None, "{when}: {chore}");
        }
    }

    /// Who is first goes so far, then the other so far, then each to its end.
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
            // All orders once; with the other one first, those that are not the same but for their ends.
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
async fn a_spec_that_returns_while_it_is_deleted_is_offered_whoever_comes_first() {
    let interleaved = InterleavedFixture::open().await;
    let prepare = async || {
        interleaved.registry.remove(HELLO);
        interleaved.broker.refresh().await;
        assert_eq!(interleaved.broker.offers().await, NOTHING);
        interleaved.push("1.0.0");
    };
    let check = async |when: &str| {
        interleaved.holds(when).await;
        assert_eq!(interleaved.broker.offers().await, ["hello"], "{when}");
        assert_eq!(interleaved.broker.specs("dh").await, [HELLO], "{when}");
    };
    interleaved.every_order(prepare, check).await;
}

#[tokio::test]
async fn a_version_that_returns_while_it_is_deleted_is_there_whoever_comes_first() {
    let interleaved = InterleavedFixture::open().await;
    let prepare = async || {
        interleaved.push("1.0.0");
        interleaved.broker.refresh().await;
        interleaved.push("2.0.0");
        interleaved.broker.refresh().await;
        interleaved.push("1.0.0");
    };
    let check = async |when: &str| {
        interleaved.holds(when).await;
        assert!(
            interleaved.versions().await.contains(&"1.0.0".to_owned()),
            "{when}"
        );
        interleaved.broker.delete().await;
        assert_eq!(interleaved.versions().await, ["1.0.0"], "{when}");
    };
    interleaved.every_order(prepare, check).await;
}

#[tokio::test]
async fn a_provision_in_the_middle_of_withdrawal_and_deletion_is_refused_or_keeps_its_spec() {
    let interleaved = InterleavedFixture::open().await;
    interleaved.registry.remove(HELLO);
    interleaved.both(&[(REFRESH, ALL), (DELETIONS, ALL)]).await;
    let (refresh, deletions) = (
        interleaved.scheduler.made(REFRESH),
        interleaved.scheduler.made(DELETIONS),
    );
    let (mut served, mut refused) = (0, 0);
    // A refresh reads first, and writes in its second half.
    for one in refresh / 2..=refresh {
        for two in 0..=deletions {
            interleaved.push("1.0.0");
            interleaved.broker.refresh().await;
            interleaved.registry.remove(HELLO);
            match interleaved.provision_after(one, two).await {
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

impl InterleavedFixture {
    /// Somebody provisions when both chores have made so many calls; says whether there was an instance.
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
        let chores = self.both(&parts);
        let ((), (status, answer)) = tokio::join!(chores, provision);
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
    let interleaved = InterleavedFixture::open().await;
    for chore in [REFRESH, DELETIONS] {
        for calls in 0.. {
            let when = format!("{chore} dies before call {calls}");
            interleaved.push("1.0.0");
            interleaved.registry.push("org/gone:latest", &other());
            interleaved.broker.refresh().await;
            interleaved.registry.remove("org/gone:latest");
            if chore == DELETIONS {
                interleaved.push("2.0.0");
                interleaved.broker.refresh().await;
            }
            interleaved.push("3.0.0");
            interleaved.scheduler.kill(chore, calls);
            match chore {
                REFRESH => interleaved.broker.refresh().await,
                _ => interleaved.broker.delete().await,
            }
            let died = interleaved.scheduler.made(chore) == calls + 1;
            interleaved.scheduler.conduct(&[]);
            // Whatever is written: what was offered is.
            let offers = interleaved.broker.offers().await;
            assert!(offers.contains(&"hello".to_owned()), "{when}: {offers:?}");
            interleaved.broker.refresh().await;
            interleaved.broker.delete().await;
            interleaved.holds(&when).await;
            assert_eq!(interleaved.broker.offers().await, ["hello"], "{when}");
            assert_eq!(interleaved.broker.specs("dh").await, [HELLO], "{when}");
            assert_eq!(interleaved.versions().await, ["3.0.0"], "{when}");
            if !died {
                break;
            }
        }
    }
    // Another process comes to the same.
    let other = interleaved.fixture.open().await;
    assert_eq!(other.offers().await, ["hello"]);
    other.close().await;
}

fn other() -> String {
    let text = manifest("1.0.0").replace("hello", "gone");
    text.replace(super::fixture::PLAN, "gone-plan")
}

/// Calls that a look makes which finds nothing to read: how the chore stands, and in which state all records are.
const A_LOOK: usize = 4;

#[tokio::test]
async fn whoever_looks_again_while_a_refresh_writes_has_nothing_read_again() {
    let interleaved = InterleavedFixture::open().await;
    interleaved.push("2.0.0");
    interleaved.scheduler.conduct(&[(REFRESH, ALL)]);
    interleaved.broker.refresh().await;
    for at in 0..interleaved.scheduler.made(REFRESH) {
        interleaved.push(&format!("3.0.{at}"));
        let parts = [(REFRESH, at), ("operator", ALL), (REFRESH, ALL)];
        interleaved.scheduler.conduct(&parts);
        let looks = async {
            interleaved.scheduler.part_of("operator").await;
            interleaved
                .broker
                .shop
                .view()
                .await
                .expect("the store answers");
            let once = interleaved.scheduler.made("operator");
            interleaved
                .broker
                .shop
                .view()
                .await
                .expect("the store answers");
            let again = interleaved.scheduler.made("operator") - once;
            assert!(again <= A_LOOK, "{again} calls after {at} of the refresh");
        };
        let looks = interleaved.scheduler.acting("operator", looks);
        tokio::join!(interleaved.broker.refresh(), looks);
        interleaved
            .holds(&format!("looked at after {at} calls"))
            .await;
    }
}
