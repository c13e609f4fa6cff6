//! A check of a store with keys: it reads every record that a broker writes.

use crate::fixture::scripted_service::Script;
use crate::fixture::test_catalog::catalog;
use crate::fixture::{Fixture, catalog_of};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Broker, DocumentOpener, PeriodicTask, TaskContext, TaskResult};
use sutler_journal::inspect::{RealmReaders, check};
use sutler_journal::{KeyRing, MemoryStore, Store};

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

#[tokio::test]
async fn a_store_with_periodic_tasks_is_consistent() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let ring = KeyRing::fresh_line("first");
    let keys = || KeyRing::parse(&ring).expect("a ring");
    let broker = Broker::new(catalog_of(catalog()))
        .other_services(Arc::new(Script::default()))
        .without_auth()
        .shared_store(store.clone(), keys())
        .periodic_task(Arc::new(Idle));
    let fixture = Fixture::around(broker.start().await.expect("the broker starts"));
    fixture.provision("i").send().await.is(201);
    fixture.running.shut_down().await;
    let readers = RealmReaders::of_others(DocumentOpener::new(keys()));
    let report = check(&store, Some(&readers), &|_, _| {}).await;
    let report = report.expect("the store answers");
    assert_eq!(report.findings, [], "{:?}", report.findings);
    assert!(report.operations > 1, "{report:?}");
}
