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
fn a_hundred_wait_five_minutes_or_twenty_seconds_where_nothing_else_is_said() {
    let expected = PlanWaitLimits {
        wait: Duration::from_secs(5 * 60),
        waiting_max: 100,
        sync_wait: Duration::from_secs(20),
    };
    assert_eq!(PlanWaitLimits::default(), expected);
}

#[tokio::test]
async fn of_what_was_withdrawn_a_refresh_that_runs_is_awaited_first() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let told = TestCatalogSource::keep(kit, withdrawn());
        let ask = |id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
        let returns = ask("i").send().await.is(202).operation();
        let poll = || kit.poll("i").plan(LARGE).operation(&returns);
        assert_eq!(poll().send().await.is(200).json["state"], "in progress");
        let sync = kit.provision("j").plan(LARGE).start();
        told.is_over(Some(catalog()), None);
        assert_eq!(kit.poll_until_done(poll()).await.json["state"], "succeeded");
        sync.await.expect("no panic").is(201);
    })
    .await;
}

#[tokio::test]
async fn what_was_withdrawn_and_does_not_return_is_told_when_the_refresh_is_over() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let told = TestCatalogSource::keep(kit, withdrawn());
        let ask = kit.provision("i").plan(LARGE).accepts_incomplete();
        let stays = ask.send().await.is(202).operation();
        let sync = kit.provision("j").plan(LARGE).start();
        told.is_over(None, Some(WITHDRAWN));
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
async fn an_id_that_waits_is_taken() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let told = TestCatalogSource::keep(kit, refreshing());
        let ask = || kit.provision("i").accepts_incomplete();
        let operation = ask().plan(LARGE).send().await.is(202).operation();
        // Another plan, other parameters, and the same without patience.
        ask().plan(SMALL).send().await.is(409);
        let other = ask().plan(LARGE).parameters(json!({ "size": 3 }));
        other.send().await.is(409);
        let hasty = kit.provision("i").plan(LARGE).send().await.is(422);
        hasty.refused_as("ConcurrencyError");
        for change in [
            kit.bind("i", "b").plan(LARGE),
            kit.update("i").plan(LARGE),
            kit.update("i").plan(SMALL),
            kit.update("i").parameters(json!({ "size": 3 })),
        ] {
            let early = change.send().await.is(422);
            early.refused_as("ConcurrencyError");
        }
        told.is_over(Some(catalog()), None);
        let poll = kit.poll("i").plan(LARGE).operation(&operation);
        assert_eq!(kit.poll_until_done(poll).await.json["state"], "succeeded");
        kit.script.only_call(OperationKind::Provision);
    })
    .await;
}

#[tokio::test]
async fn requests_that_wait_here_are_bounded_and_make_room_again() {
    let few = |broker: Broker| broker.settings(|settings| settings.patience.waiting_max = 1);
    let kit = in_memory(few).await;
    without_large(&kit).await;
    let told = TestCatalogSource::keep(&kit, refreshing());
    let first = kit.provision("i").plan(LARGE).start();
    kit.until("the first request waits", async || told.queries() >= 2)
        .await;
    let second = kit.provision("j").plan(LARGE).send().await.is(422);
    second.refused_as("ConcurrencyError");
    told.is_over(Some(catalog()), None);
    first.await.expect("no panic").is(201);
    without_large(&kit).await;
    told.is_over(None, Some(WITHDRAWN));
    let third = kit.provision("j").plan(LARGE).send().await.is(400);
    assert_eq!(third.description(), WITHDRAWN);
}

/// A store that stays, and brokers that come and go.
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
async fn what_waits_goes_on_waiting_in_a_broker_that_starts_anew() {
    let shared = SharedStore::new();
    let kit = shared.open().await;
    let _told = TestCatalogSource::keep(&kit, refreshing());
    let ask = |kit: &Fixture, id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
    let comes = ask(&kit, "comes").send().await.is(202).operation();
    let goes = ask(&kit, "goes").send().await.is(202).operation();
    kit.running.shut_down().await;

    // The catalog source is not set yet, so the plan may still appear.
    let kit = shared.open().await;
    let poll = |id: &str, it: &str| kit.poll(id).plan(LARGE).operation(it);
    kit.until("what waits was claimed", async || {
        kit.running.operations_running() >= 2
    })
    .await;
    assert_eq!(
        poll("comes", &comes).send().await.is(200).json["state"],
        "in progress"
    );
    let later = ask(&kit, "later").send().await.is(202).operation();
    let delete = kit.deprovision("goes").plan(LARGE).accepts_incomplete();
    let deleted = delete.send().await.is(202).operation();
    let told = TestCatalogSource::keep(&kit, refreshing());
    let done = kit.poll_until_done(poll("goes", &deleted)).await;
    assert_eq!(done.json["state"], "succeeded");
    told.is_over(Some(catalog()), None);
    for (id, operation) in [("comes", &comes), ("later", &later)] {
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
async fn what_waits_is_taken_over_from_a_replica_that_died() {
    let shared = SharedStore::new();
    let (first, second) = (shared.open().await, shared.open().await);
    let dies = TestCatalogSource::keep(&first, refreshing());
    let ask = first.provision("i").plan(LARGE).accepts_incomplete();
    let operation = ask.send().await.is(202).operation();
    // The first replica does not notice the end of the refresh; the second one does.
    let told = TestCatalogSource::keep(&second, refreshing());
    told.is_over(Some(catalog()), None);
    drop(dies);
    first.running.shut_down().await;
    let poll = second.poll("i").plan(LARGE).operation(&operation);
    let done = second.poll_until_done(poll).await;
    assert_eq!(done.json["state"], "succeeded", "{}", done.description());
    shared.script.only_call(OperationKind::Provision);
}
