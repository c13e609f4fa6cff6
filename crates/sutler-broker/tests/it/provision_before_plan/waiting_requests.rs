//! Provisions that wait for their plan, with other events at the same time.

use super::{TestCatalogSource, refreshing, without_large};
use crate::fixture::scripted_service::Script;
use crate::fixture::test_catalog::{LARGE, SMALL, catalog, catalog_without};
use crate::fixture::{Fixture, catalog_of, in_memory, on_each_store};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Broker, PlanAvailability, PlanWaitLimits};
use sutler_journal::{KeyRing, MemoryStore};
use sutler_osb::OperationKind;

const WITHDRAWN: &str = "The service was withdrawn on Monday.";

fn withdrawn() -> PlanAvailability {
    PlanAvailability {
        refreshing: true,
        withdrawn: Some(WITHDRAWN.to_owned()),
    }
}

#[test]
fn the_default_limits_are_a_hundred_waits_of_five_minutes_or_twenty_seconds() {
    let expected = PlanWaitLimits {
        wait: Duration::from_secs(5 * 60),
        waiting_max: 100,
        sync_wait: Duration::from_secs(20),
    };
    assert_eq!(PlanWaitLimits::default(), expected);
}

#[tokio::test]
async fn a_withdrawn_plan_is_refused_only_after_a_running_refresh() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, withdrawn());
        let request = |id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
        let returns = request("i").send().await.is(202).operation();
        let poll = || kit.poll("i").plan(LARGE).operation(&returns);
        assert_eq!(poll().send().await.is(200).json["state"], "in progress");
        let sync = kit.provision("j").plan(LARGE).start();
        source.end_refresh(Some(catalog()), None);
        assert_eq!(kit.poll_until_done(poll()).await.json["state"], "succeeded");
        sync.await.expect("no panic").is(201);
    })
    .await;
}

#[tokio::test]
async fn a_withdrawn_plan_is_refused_with_its_reason_when_the_refresh_ends() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, withdrawn());
        let request = kit.provision("i").plan(LARGE).accepts_incomplete();
        let stays = request.send().await.is(202).operation();
        let sync = kit.provision("j").plan(LARGE).start();
        source.end_refresh(None, Some(WITHDRAWN));
        let poll = kit.poll("i").plan(LARGE).operation(&stays);
        let done = kit.poll_until_done(poll).await;
        assert_eq!(
            (done.json["state"].as_str(), done.description()),
            (Some("failed"), WITHDRAWN)
        );
        assert_eq!(
            sync.await.expect("no panic").is(400).description(),
            WITHDRAWN
        );
    })
    .await;
}

#[tokio::test]
async fn the_id_of_a_waiting_provision_is_taken() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, refreshing());
        let request = || kit.provision("i").accepts_incomplete();
        let operation = request().plan(LARGE).send().await.is(202).operation();
        // Another plan, other parameters, and the same request synchronously.
        request().plan(SMALL).send().await.is(409);
        let other = request().plan(LARGE).parameters(json!({ "size": 3 }));
        other.send().await.is(409);
        let synchronous = kit.provision("i").plan(LARGE).send().await.is(422);
        synchronous.refused_as("ConcurrencyError");
        for change in [
            kit.bind("i", "b").plan(LARGE),
            kit.update("i").plan(LARGE),
            kit.update("i").plan(SMALL),
            kit.update("i").parameters(json!({ "size": 3 })),
        ] {
            let early = change.send().await.is(422);
            early.refused_as("ConcurrencyError");
        }
        source.end_refresh(Some(catalog()), None);
        let poll = kit.poll("i").plan(LARGE).operation(&operation);
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
        kit.script.only_call(OperationKind::Provision);
    })
    .await;
}

#[tokio::test]
async fn waiting_requests_are_bounded_and_their_slots_are_released() {
    let few = |broker: Broker| broker.settings(|settings| settings.patience.waiting_max = 1);
    let kit = in_memory(few).await;
    without_large(&kit).await;
    let source = TestCatalogSource::set(&kit, refreshing());
    let first = kit.provision("i").plan(LARGE).start();
    kit.until("the first request waits", async || source.queries() >= 2)
        .await;
    let second = kit.provision("j").plan(LARGE).send().await.is(422);
    second.refused_as("ConcurrencyError");
    source.end_refresh(Some(catalog()), None);
    first.await.expect("no panic").is(201);
    without_large(&kit).await;
    source.end_refresh(None, Some(WITHDRAWN));
    let third = kit.provision("j").plan(LARGE).send().await.is(400);
    assert_eq!(third.description(), WITHDRAWN);
}

/// A store that outlives the brokers on it.
struct SharedStore {
    store: Arc<MemoryStore>,
    ring: String,
    script: Arc<Script>,
}

impl SharedStore {
    fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            ring: KeyRing::fresh_line("first").to_string(),
            script: Arc::default(),
        }
    }

    /// A broker whose catalog source is not set yet, and which does not offer the large plan.
    async fn open(&self) -> Fixture {
        let keys = KeyRing::parse(&self.ring).expect("a ring");
        let running = Broker::new(catalog_of(catalog_without(LARGE)))
            .other_services(self.script.clone())
            .basic_auth("user", "s3cret")
            .shared_store(self.store.clone(), keys)
            .settings(|it| it.lease = Duration::from_millis(500))
            .with_catalog_source()
            .start()
            .await;
        Fixture::around(running.expect("the broker starts"))
    }
}

#[tokio::test]
async fn a_waiting_provision_still_waits_after_a_restart() {
    let shared = SharedStore::new();
    let kit = shared.open().await;
    let _source = TestCatalogSource::set(&kit, refreshing());
    let request = |kit: &Fixture, id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
    let next_catalog = request(&kit, "comes").send().await.is(202).operation();
    let goes = request(&kit, "goes").send().await.is(202).operation();
    kit.running.shut_down().await;

    // The catalog source is not set yet, so the plan may still appear.
    let kit = shared.open().await;
    let poll = |id: &str, it: &str| kit.poll(id).plan(LARGE).operation(it);
    kit.until("what waits was claimed", async || {
        kit.running.operations_running() >= 2
    })
    .await;
    assert_eq!(
        poll("comes", &next_catalog).send().await.is(200).json["state"],
        "in progress"
    );
    let later = request(&kit, "later").send().await.is(202).operation();
    let delete = kit.deprovision("goes").plan(LARGE).accepts_incomplete();
    let deleted = delete.send().await.is(202).operation();
    let source = TestCatalogSource::set(&kit, refreshing());
    let done = kit.poll_until_done(poll("goes", &deleted)).await;
    assert_eq!(done.json["state"], "succeeded");
    source.end_refresh(Some(catalog()), None);
    for (id, operation) in [("comes", &next_catalog), ("later", &later)] {
        let done = kit.poll_until_done(poll(id, operation)).await;
        assert_eq!(done.json["state"], "succeeded", "{}", done.description());
    }
    assert_ne!(goes, deleted);
    let made = shared.script.calls(OperationKind::Provision).into_iter();
    let mut made: Vec<String> = made.map(|it| it.instance).collect();
    made.sort_unstable();
    assert_eq!(made, ["comes", "later"]);
}

#[tokio::test]
async fn a_waiting_provision_of_a_dead_replica_is_taken_over() {
    let shared = SharedStore::new();
    let (first, second) = (shared.open().await, shared.open().await);
    let dies = TestCatalogSource::set(&first, refreshing());
    let request = first.provision("i").plan(LARGE).accepts_incomplete();
    let operation = request.send().await.is(202).operation();
    // The first replica does not notice the end of the refresh; the second one does.
    let source = TestCatalogSource::set(&second, refreshing());
    source.end_refresh(Some(catalog()), None);
    drop(dies);
    first.running.shut_down().await;
    let poll = second.poll("i").plan(LARGE).operation(&operation);
    let done = second.poll_until_done(poll).await;
    assert_eq!(done.json["state"], "succeeded", "{}", done.description());
    shared.script.only_call(OperationKind::Provision);
}
