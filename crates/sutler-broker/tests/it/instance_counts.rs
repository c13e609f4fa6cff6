//! Instance counts include every platform in the store, configured or not.

use crate::fixture::scripted_service::Script;
use crate::fixture::test_catalog::{LARGE, SMALL, catalog};
use crate::fixture::{Fixture, catalog_of};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{
    Broker, BrokerHandle, InstanceCounts, PeriodicTask, Platform, TaskContext, TaskResult,
};
use sutler_journal::{KeyRing, MemoryStore};

/// Does nothing: only a broker with periodic tasks has collections.
struct Idle;

#[async_trait]
impl PeriodicTask for Idle {
    fn name(&self) -> &str {
        "idle"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run_once(&self, _: &TaskContext) -> TaskResult<()> {
        Ok(())
    }
}

struct RestartableBroker {
    store: Arc<MemoryStore>,
    ring: String,
}

impl RestartableBroker {
    async fn open(&self, set_up: impl FnOnce(Broker) -> Broker) -> BrokerHandle {
        let broker = Broker::new(catalog_of(catalog()))
            .other_services(Arc::new(Script::default()))
            .shared_store(
                self.store.clone(),
                KeyRing::parse(&self.ring).expect("a ring"),
            )
            .periodic_task(Arc::new(Idle));
        set_up(broker).start().await.expect("the broker starts")
    }
}

async fn have_instance_of(running: &BrokerHandle, plan: &str) -> bool {
    let collections = running.collections().expect("there are periodic tasks");
    let counts = InstanceCounts::read(&collections)
        .await
        .expect("the store answers");
    counts
        .have_instance_of([plan])
        .await
        .expect("the store answers")
}

#[tokio::test]
async fn instances_of_a_platform_that_is_not_configured_any_more_count() {
    let brokers = RestartableBroker {
        store: Arc::new(MemoryStore::new()),
        ring: KeyRing::fresh_line("first").to_string(),
    };
    let at_cf = || Platform::at("/cf").without_auth();
    let kit = Fixture::around(brokers.open(|it| it.platform(at_cf())).await);
    let provision = kit.provision("i").plan(LARGE);
    provision.through(&kit.router(), "/cf").send().await.is(201);
    kit.running.shut_down().await;

    let running = brokers.open(Broker::without_auth).await;
    assert!(have_instance_of(&running, LARGE).await);
    assert!(!have_instance_of(&running, SMALL).await);
    let mut plans = Vec::new();
    let scan = running.each_instance(|plan, _| plans.push(plan.plan_id.as_str().to_owned()));
    scan.await.expect("the store answers");
    assert_eq!(plans, [LARGE]);
    running.shut_down().await;

    // It is configured again, and its instances can be deleted.
    let kit = Fixture::around(brokers.open(|it| it.platform(at_cf())).await);
    let delete = kit.deprovision("i").plan(LARGE);
    delete.through(&kit.router(), "/cf").send().await.is(200);
    assert!(!have_instance_of(&kit.running, LARGE).await);
}

#[tokio::test]
async fn instances_sealed_with_other_keys_are_not_counted() {
    let brokers = RestartableBroker {
        store: Arc::new(MemoryStore::new()),
        ring: KeyRing::fresh_line("first").to_string(),
    };
    let other = RestartableBroker {
        store: brokers.store.clone(),
        ring: KeyRing::fresh_line("second").to_string(),
    };
    let at_other = || Platform::at("/other").without_auth();
    let foreign = Broker::new(catalog_of(catalog()))
        .other_services(Arc::new(Script::default()))
        .shared_store(
            other.store.clone(),
            KeyRing::parse(&other.ring).expect("a ring"),
        )
        .platform(at_other());
    let kit = Fixture::around(foreign.start().await.expect("the broker starts"));
    let provision = kit.provision("i").plan(LARGE);
    provision
        .through(&kit.router(), "/other")
        .send()
        .await
        .is(201);
    kit.running.shut_down().await;
    let running = brokers.open(Broker::without_auth).await;
    let mut plans = 0;
    let scan = running.each_instance(|_, _| plans += 1);
    scan.await.expect("what is not ours is left alone");
    assert_eq!(plans, 0);
}
