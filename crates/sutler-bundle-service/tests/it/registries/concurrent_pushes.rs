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

struct PushFixture {
    _town: Fixture,
    registry: Arc<FakeRegistry>,
    scheduler: Arc<Scheduler>,
    broker: TestBroker,
}

impl PushFixture {
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
        let pushed = self
            .broker
            .publisher
            .push(manifest(version).as_bytes())
            .await;
        pushed.expect("it is taken");
    }

    async fn run_task(&self, task: &str) {
        match task {
            REFRESH => self.broker.refresh().await,
            _ => self.broker.delete().await,
        }
    }

    /// Interleaves a developer's action with a task: each goes first, up to each of its calls, then the other runs
    /// to its end.
    async fn every_order(
        &self,
        task: &str,
        prepare: impl AsyncFn(),
        act: impl AsyncFn(),
        check: impl AsyncFn(&str),
    ) {
        for (first, second) in [(DEVELOPER, task), (task, DEVELOPER)] {
            for calls in 0.. {
                prepare().await;
                let parts = [(first, calls), (second, ALL), (first, ALL)];
                self.scheduler.set_plan(&parts);
                let acts = self.scheduler.acting(DEVELOPER, act());
                tokio::join!(self.run_task(task), acts);
                let made = self.scheduler.made(first);
                self.scheduler.set_plan(&[]);
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
        let collections = self
            .broker
            .running
            .collections()
            .expect("there are periodic tasks");
        let keep = |named: &mut Vec<_>, it: CollectionItem<Value>| {
            named.push(it.value["version"].as_str().map(str::to_owned));
        };
        let named = collections.fold("spec", Vec::new(), keep).await;
        for digest in named.expect("the store answers") {
            let digest = digest.expect("a spec names its version");
            let found = collections.get::<Value>("version", &digest).await;
            let found = found.expect("the store answers");
            assert!(
                found.is_some(),
                "{when}: {digest} is named and is not there"
            );
        }
        for task in [REFRESH, DELETIONS] {
            let status = self.broker.running.task_status(task).await;
            let failure = status.expect("the store answers").failure;
            assert_eq!(failure, None, "{when}: {task}");
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
async fn a_version_that_is_pushed_again_while_it_is_deleted_is_stored_in_every_order() {
    let fixture = PushFixture::open().await;
    let prepare = async || {
        fixture.push("1.0.0").await;
        fixture.push("2.0.0").await;
    };
    let act = async || fixture.push("1.0.0").await;
    let check = async |when: &str| fixture.holds("1.0.0", when).await;
    fixture.every_order(DELETIONS, prepare, act, check).await;
}

#[tokio::test]
async fn a_service_pushed_again_while_it_is_deleted_is_offered_in_every_order() {
    let fixture = PushFixture::open().await;
    let prepare = async || {
        fixture.push("1.0.0").await;
        fixture
            .broker
            .publisher
            .unpush_all()
            .await
            .expect("it is taken");
        assert_eq!(fixture.broker.offers().await, ["other"]);
    };
    let act = async || fixture.push("1.0.0").await;
    let check = async |when: &str| fixture.holds("1.0.0", when).await;
    fixture.every_order(DELETIONS, prepare, act, check).await;
}

#[tokio::test]
async fn a_push_during_a_refresh_and_the_refresh_both_complete() {
    let fixture = PushFixture::open().await;
    let prepare = async || {
        fixture.push("1.0.0").await;
        fixture.registry.push(OTHER, &other("1.0.0"));
        fixture.broker.refresh().await;
        fixture.registry.push(OTHER, &other("2.0.0"));
    };
    let act = async || fixture.push("2.0.0").await;
    let check = async |when: &str| {
        fixture.holds("2.0.0", when).await;
        let (_, catalog) = fixture.broker.send("GET", "/v2/catalog", Value::Null).await;
        let version = &catalog["services"][1]["metadata"]["bundleVersion"];
        assert_eq!(version, "2.0.0", "{when}");
    };
    fixture.every_order(REFRESH, prepare, act, check).await;
}
