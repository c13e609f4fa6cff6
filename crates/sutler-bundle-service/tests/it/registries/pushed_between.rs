//! Pushes interleaved with refreshes and deletions at every call of the store: in every order, the pushed service is
//! offered, the records it names are stored, and neither task fails.

use super::fixture::{FakeRegistry, Fixture, PLAN, TestBroker, manifest};
use super::scheduler::Scheduler;
use serde_json::Value;
use std::sync::Arc;
use sutler_broker::CollectionItem;
use sutler_bundle_service::{DELETIONS, Pushes, REFRESH};
use sutler_registry::PUSHED_REGISTRY;

const OTHER: &str = "org/other:latest";
const DEVELOPER: &str = "developer";
/// More calls than any task makes.
const ALL: usize = usize::MAX;

struct Workshop {
    _town: Fixture,
    registry: Arc<FakeRegistry>,
    scheduler: Arc<Scheduler>,
    broker: TestBroker,
}

impl Workshop {
    async fn open() -> Self {
        let registry = FakeRegistry::new("dh");
        registry.push(OTHER, &other("1.0.0"));
        let scheduler = Arc::new(Scheduler::default());
        let mut fixture = Fixture::with(std::slice::from_ref(&registry));
        fixture.scheduler = Some(scheduler.clone());
        fixture.pushes = Pushes::Taken;
        let broker = fixture.open().await;
        broker.refresh().await;
        Self {
            _town: fixture,
            registry,
            scheduler,
            broker,
        }
    }

    async fn push(&self, version: &str) {
        let pushed = self.broker.shop.push(manifest(version).as_bytes()).await;
        pushed.expect("it is taken");
    }

    async fn turn(&self, chore: &str) {
        match chore {
            REFRESH => self.broker.refresh().await,
            _ => self.broker.delete().await,
        }
    }

    /// Interleaves a developer's action with a task: each goes first, up to each of its calls, then the other runs
    /// to its end.
    async fn every_order(
        &self,
        chore: &str,
        prepare: impl AsyncFn(),
        act: impl AsyncFn(),
        check: impl AsyncFn(&str),
    ) {
        for (first, second) in [(DEVELOPER, chore), (chore, DEVELOPER)] {
            for calls in 0.. {
                prepare().await;
                let parts = [(first, calls), (second, ALL), (first, ALL)];
                self.scheduler.conduct(&parts);
                let acts = self.scheduler.acting(DEVELOPER, act());
                tokio::join!(self.turn(chore), acts);
                let made = self.scheduler.made(first);
                self.scheduler.conduct(&[]);
                check(&format!("{second} after {calls} calls of {first}")).await;
                if calls > made {
                    assert!(calls > 4, "{first} made only {made} calls");
                    break;
                }
            }
        }
    }

    /// Asserts that the offered version is stored, and that no task failed.
    async fn holds(&self, version: &str, when: &str) {
        let ledger = self.broker.running.collections().expect("there are chores");
        let keep = |named: &mut Vec<_>, it: CollectionItem<Value>| {
            named.push(it.value["version"].as_str().map(str::to_owned));
        };
        let named = ledger.fold("spec", Vec::new(), keep).await;
        for digest in named.expect("the store answers") {
            let digest = digest.expect("a spec names its version");
            let found = ledger.get::<Value>("version", &digest).await;
            let found = found.expect("the store answers");
            assert!(
                found.is_some(),
                "{when}: {digest} is named and is not there"
            );
        }
        for chore in [REFRESH, DELETIONS] {
            let status = self.broker.running.task_status(chore).await;
            let failure = status.expect("the store answers").failure;
            assert_eq!(failure, None, "{when}: {chore}");
        }
        assert_eq!(
            self.broker.specs(PUSHED_REGISTRY).await,
            ["hello"],
            "{when}"
        );
        let (_, catalog) = self.broker.send("GET", "/v2/catalog", Value::Null).await;
        let hello = &catalog["services"][0];
        assert_eq!(hello["name"], "hello", "{when}");
        assert_eq!(hello["metadata"]["bundleVersion"], version, "{when}");
        assert_eq!(self.broker.offers().await, ["hello", "other"], "{when}");
    }
}

fn other(version: &str) -> String {
    let own = manifest(version).replace("hello", "other");
    own.replace(PLAN, "other-plan")
}

#[tokio::test]
async fn a_version_that_is_pushed_again_while_it_is_deleted_is_there_whoever_comes_first() {
    let shop = Workshop::open().await;
    let prepare = async || {
        shop.push("1.0.0").await;
        shop.push("2.0.0").await;
    };
    let act = async || shop.push("1.0.0").await;
    let check = async |when: &str| shop.holds("1.0.0", when).await;
    shop.every_order(DELETIONS, prepare, act, check).await;
}

#[tokio::test]
async fn what_is_pushed_again_while_it_is_deleted_is_offered_whoever_comes_first() {
    let shop = Workshop::open().await;
    let prepare = async || {
        shop.push("1.0.0").await;
        shop.broker.shop.unpush_all().await.expect("it is taken");
        assert_eq!(shop.broker.offers().await, ["other"]);
    };
    let act = async || shop.push("1.0.0").await;
    let check = async |when: &str| shop.holds("1.0.0", when).await;
    shop.every_order(DELETIONS, prepare, act, check).await;
}

#[tokio::test]
async fn a_push_beside_a_refresh_and_the_refresh_both_come_to_their_end() {
    let shop = Workshop::open().await;
    let prepare = async || {
        shop.push("1.0.0").await;
        shop.registry.push(OTHER, &other("1.0.0"));
        shop.broker.refresh().await;
        shop.registry.push(OTHER, &other("2.0.0"));
    };
    let act = async || shop.push("2.0.0").await;
    let check = async |when: &str| {
        shop.holds("2.0.0", when).await;
        let (_, catalog) = shop.broker.send("GET", "/v2/catalog", Value::Null).await;
        let version = &catalog["services"][1]["metadata"]["bundleVersion"];
        assert_eq!(version, "2.0.0", "{when}");
    };
    shop.every_order(REFRESH, prepare, act, check).await;
}
