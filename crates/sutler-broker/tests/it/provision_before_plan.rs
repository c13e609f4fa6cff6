//! Provisions during a catalog refresh, or after their plan was withdrawn.

mod waiting_requests;

use crate::fixture::test_catalog::{DB, LARGE, catalog, catalog_without};
use crate::fixture::{Fixture, catalog_of, in_memory, on_each_store, on_each_store_with};
use async_trait::async_trait;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{
    Broker, BrokerHandle, CatalogPrecondition, CatalogSource, PeriodicTask, PlanAvailability,
    PlanWaitLimits, TaskContext, TaskResult,
};
use sutler_osb::OperationKind;

/// Catalog source scripted by a test.
pub(crate) struct TestCatalogSource {
    running: BrokerHandle,
    availability: Mutex<PlanAvailability>,
    query_count: AtomicUsize,
    /// Catalog that a catch-up loads, if any.
    next_catalog: Mutex<Option<serde_json::Value>>,
}

impl TestCatalogSource {
    pub(crate) fn set(kit: &Fixture, availability: PlanAvailability) -> Arc<Self> {
        let source = Arc::new(Self {
            running: kit.running.clone(),
            availability: Mutex::new(availability),
            query_count: AtomicUsize::new(0),
            next_catalog: Mutex::default(),
        });
        kit.running.set_catalog_source(source.clone());
        source
    }

    /// Ends the refresh. `next_catalog`: the catalog from then on.
    pub(crate) fn end_refresh(
        &self,
        next_catalog: Option<serde_json::Value>,
        withdrawn: Option<&str>,
    ) {
        *self.next_catalog.lock().expect("no panic") = next_catalog;
        *self.availability.lock().expect("no panic") = PlanAvailability {
            refreshing: false,
            withdrawn: withdrawn.map(str::to_owned),
        };
    }

    /// Number of availability queries.
    pub(crate) fn queries(&self) -> usize {
        self.query_count.load(Ordering::Acquire)
    }
}

#[async_trait]
impl CatalogSource for TestCatalogSource {
    async fn catch_up(&self) {
        let next_catalog = self.next_catalog.lock().expect("no panic").clone();
        if let Some(next_catalog) = next_catalog {
            let replaced = self.running.replace_catalog(catalog_of(next_catalog)).await;
            replaced.expect("the catalog is valid");
        }
    }

    async fn plan_availability(&self, _service: &str, _plan: &str) -> PlanAvailability {
        self.query_count.fetch_add(1, Ordering::AcqRel);
        self.availability.lock().expect("no panic").clone()
    }
}

pub(crate) fn refreshing() -> PlanAvailability {
    PlanAvailability {
        refreshing: true,
        withdrawn: None,
    }
}

pub(crate) async fn without_large(kit: &Fixture) {
    let less = catalog_of(catalog_without(LARGE));
    let replaced = kit.running.replace_catalog(less).await;
    replaced.expect("the rest is valid");
}

#[tokio::test]
async fn a_plan_that_appears_with_the_refresh_is_provisioned_after_202() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, refreshing());
        let request = || kit.provision("i").plan(LARGE).accepts_incomplete();
        let accepted = request().send().await.is(202);
        let operation = accepted.operation();
        let poll = || kit.poll("i").plan(LARGE).operation(&operation);
        assert_eq!(poll().send().await.is(200).json["state"], "in progress");
        // A repeated request gets the same operation.
        assert_eq!(request().send().await.is(202).operation(), operation);
        source.end_refresh(Some(catalog()), None);
        let done = kit.poll_until_done(poll()).await;
        assert_eq!(done.json["state"], "succeeded");
        let call = kit.script.only_call(OperationKind::Provision);
        assert_eq!(call.plan, LARGE);
        kit.deprovision("i").plan(LARGE).send().await.is(200);
    })
    .await;
}

#[tokio::test]
async fn a_plan_that_does_not_appear_is_refused_with_the_reason_and_leaves_nothing() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, refreshing());
        let request = kit.provision("i").plan(LARGE).accepts_incomplete();
        let operation = request.send().await.is(202).operation();
        source.end_refresh(None, Some("The service was withdrawn on Monday."));
        let poll = kit.poll("i").plan(LARGE).operation(&operation);
        let done = kit.poll_until_done(poll).await;
        assert_eq!(done.json["state"], "failed");
        assert_eq!(done.description(), "The service was withdrawn on Monday.");
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
        kit.deprovision("i").plan(LARGE).send().await.is(410);
    })
    .await;
}

#[tokio::test]
async fn the_schema_of_a_late_plan_is_enforced() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let source = TestCatalogSource::set(kit, refreshing());
        let request = kit.provision("i").plan(LARGE).accepts_incomplete();
        let request = request.parameters(json!({ "size": 0 }));
        let operation = request.send().await.is(202).operation();
        source.end_refresh(Some(catalog()), None);
        let poll = kit.poll("i").plan(LARGE).operation(&operation);
        let done = kit.poll_until_done(poll).await;
        assert_eq!(done.json["state"], "failed");
        assert!(
            done.description().contains("size"),
            "{}",
            done.description()
        );
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_provision_that_waits_for_its_plan_can_be_deleted() {
    on_each_store(async |kit| {
        without_large(kit).await;
        let _source = TestCatalogSource::set(kit, refreshing());
        kit.provision("i")
            .plan(LARGE)
            .accepts_incomplete()
            .send()
            .await
            .is(202);
        let delete = kit.deprovision("i").plan(LARGE).accepts_incomplete();
        let done = kit.finish("i", delete).await;
        assert_eq!(done.json["state"], "succeeded");
        assert!(kit.script.calls(OperationKind::Provision).is_empty());
        assert!(kit.script.calls(OperationKind::Deprovision).is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_not_asynchronous_waits_for_the_refresh() {
    let kit = in_memory(|broker| broker).await;
    without_large(&kit).await;
    let source = TestCatalogSource::set(&kit, refreshing());
    let waits = kit.provision("i").plan(LARGE).start();
    source.end_refresh(Some(catalog()), None);
    waits.await.expect("no panic").is(201);
    // The plan was withdrawn, and no refresh runs.
    without_large(&kit).await;
    source.end_refresh(None, Some("The service was withdrawn on Monday."));
    let refused = kit.provision("j").plan(LARGE).send().await.is(400);
    assert_eq!(
        refused.description(),
        "The service was withdrawn on Monday."
    );
}

fn impatient(broker: Broker) -> Broker {
    broker.settings(|settings| {
        settings.patience = PlanWaitLimits {
            wait: Duration::from_millis(1),
            waiting_max: 1,
            sync_wait: Duration::from_millis(1),
        };
    })
}

#[tokio::test]
async fn waiting_provisions_are_limited_in_time_and_number() {
    on_each_store_with(impatient, async |kit| {
        without_large(kit).await;
        let _source = TestCatalogSource::set(kit, refreshing());
        let sync = kit.provision("i").plan(LARGE).send().await.is(422);
        sync.refused_as("ConcurrencyError");
        let request = |id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
        let operation = request("i").send().await.is(202).operation();
        let poll = kit.poll("i").plan(LARGE).operation(&operation);
        let done = kit.poll_until_done(poll).await;
        assert_eq!(done.json["state"], "failed");
        let description = done.description();
        assert!(
            description.contains("still being brought up to date"),
            "{description}"
        );
        kit.deprovision("i").plan(LARGE).send().await.is(410);
    })
    .await;
    let few = |broker: Broker| broker.settings(|settings| settings.patience.waiting_max = 1);
    let kit = in_memory(few).await;
    without_large(&kit).await;
    let _source = TestCatalogSource::set(&kit, refreshing());
    let request = |id: &str| kit.provision(id).plan(LARGE).accepts_incomplete();
    request("i").send().await.is(202);
    request("j")
        .send()
        .await
        .is(422)
        .refused_as("ConcurrencyError");
}

/// Writes a record at its first run, and changes it at every later one.
struct WriterTask;

#[async_trait]
impl PeriodicTask for WriterTask {
    fn name(&self) -> &str {
        "writer"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run_once(&self, cx: &TaskContext) -> TaskResult<()> {
        let was = cx.collections().get::<u64>("specs", "db").await?;
        let next = was.as_ref().map_or(1, |it| it.value + 1);
        let revision = was.map(|it| it.revision);
        let batch = cx.batch().put("specs", "db", revision, &next);
        assert!(cx.write(batch).await?, "nobody else writes");
        Ok(())
    }
}

/// Writes one record with another as precondition: first with an outdated revision, then with the
/// present one.
struct PreconditionTask;

#[async_trait]
impl PeriodicTask for PreconditionTask {
    fn name(&self) -> &str {
        "careful"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    async fn run_once(&self, cx: &TaskContext) -> TaskResult<()> {
        let mut revisions = Vec::new();
        for value in 1..=2_u64 {
            let batch = cx
                .batch()
                .put("state", "it", revisions.last().copied(), &value);
            cx.write(batch).await?;
            let now = cx.collections().get::<u64>("state", "it").await?;
            revisions.extend(now.map(|it| it.revision));
        }
        let mut written = Vec::new();
        for revision in revisions {
            let batch = cx.batch().put("specs", "db", None, &written);
            let batch = batch.unchanged("state", "it", revision);
            written.push(cx.write(batch).await?);
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_record_is_not_written_if_its_precondition_changed() {
    let set_up = |broker: Broker| broker.periodic_task(Arc::new(PreconditionTask));
    on_each_store_with(set_up, async |kit| {
        let collections = kit.running.collections().expect("there are periodic tasks");
        let entry = async || collections.get::<Vec<bool>>("specs", "db").await;
        kit.until("the task was done", async || {
            entry().await.expect("the store answers").is_some()
        })
        .await;
        // The first attempt was refused, and the second one recorded that.
        let entry = entry().await.expect("the store answers");
        assert_eq!(entry.expect("it was written").value, [false]);
    })
    .await;
}

async fn run_writer(kit: &Fixture) -> CatalogPrecondition {
    let number = kit
        .running
        .request_run("writer")
        .await
        .expect("the store answers");
    kit.until("the task was done", async || {
        let status = kit.running.task_status("writer").await;
        status.expect("the store answers").served >= number
    })
    .await;
    let collections = kit.running.collections().expect("there are periodic tasks");
    let entry = collections.get::<u64>("specs", "db").await;
    let entry = entry.expect("the store answers").expect("it was written");
    CatalogPrecondition {
        collection: "specs",
        id: entry.id,
        revision: entry.revision,
    }
}

#[tokio::test]
async fn a_provision_whose_precondition_changed_is_decided_again() {
    let set_up = |broker: Broker| broker.periodic_task(Arc::new(WriterTask));
    on_each_store_with(set_up, async |kit| {
        let source = TestCatalogSource::set(kit, PlanAvailability::default());
        let precondition = run_writer(kit).await;
        let offer = async |precondition: CatalogPrecondition| {
            let on = [(DB.to_owned(), precondition)];
            let whole = catalog_of(catalog());
            let offered = kit.running.replace_catalog_on(&whole, on);
            offered.await.expect("the catalog is valid");
        };
        offer(precondition).await;
        kit.has_instance("before").await;
        // The precondition changes: the plan was removed, and this process has not noticed.
        run_writer(kit).await;
        source.end_refresh(
            Some(catalog_without(LARGE)),
            Some("It was withdrawn on Monday."),
        );
        let refused = kit.provision("late").plan(LARGE).send().await.is(400);
        assert_eq!(refused.description(), "It was withdrawn on Monday.");
        // The plan still exists: the provision continues.
        offer(run_writer(kit).await).await;
        run_writer(kit).await;
        source.end_refresh(Some(catalog()), None);
        kit.provision("again").plan(LARGE).send().await.is(201);
    })
    .await;
}

#[tokio::test]
async fn a_task_is_planned_again_after_every_run_and_reports_its_status() {
    let set_up = |broker: Broker| broker.periodic_task(Arc::new(WriterTask));
    on_each_store_with(set_up, async |kit| {
        let status = async || {
            let status = kit.running.task_status("writer").await;
            status.expect("the store answers")
        };
        kit.until("the first turn is over", async || {
            status().await.ended.is_some()
        })
        .await;
        run_writer(kit).await;
        run_writer(kit).await;
        let status = status().await;
        assert_eq!((status.requested, status.served), (2, 2));
        assert_eq!((status.failure, status.running_since), (None, None));
    })
    .await;
}
