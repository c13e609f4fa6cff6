//! Fixture: a fake registry, a store and a runner that outlive brokers, and brokers over them.

use super::scheduler::Scheduler;
use super::store_calls::{StoreCalls, counted};
use crate::service::fake_runner::FakeRunner;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{Broker, BrokerHandle, PeriodicTask};
use sutler_bundle::{Action, RunLimits};
use sutler_bundle_service::{
    ApbCompatRoutes, BundleService, CatalogPublisher, DELETIONS, Deletions, OfferSettings,
    PublisherConfig, Pushes, REFRESH, Refresh, Runners, ServiceParts, Snapshot, Source,
    VersionStore,
};
use sutler_journal::{KeyRing, Store};
use sutler_registry::{
    Digest, Item, ItemError, ListError, Listing, Registry, Spec, WithdrawalRules,
};
use sutler_runner::Runnable;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// The ids are the same for all versions.
pub(crate) const SERVICE: &str = "hello-id";
pub(crate) const PLAN: &str = "plan-id";

/// The manifest of a version.
pub(crate) fn manifest(version: &str) -> String {
    format!(
        "{{version: 1.0, name: hello, id: {SERVICE}, bundle_version: {version}, description: Greets., \
         bindable: true, plans: [{{name: small, id: {PLAN}, description: One.}}]}}"
    )
}

/// Content of a fake registry.
#[derive(Default)]
struct RegistryContent {
    items: BTreeMap<String, String>,
    faults: BTreeMap<String, ItemError>,
    down: bool,
    fetched: usize,
}

/// A registry controlled by the test.
pub(crate) struct FakeRegistry {
    name: String,
    content: Mutex<RegistryContent>,
    /// Listings wait for a permit.
    gate: Semaphore,
}

impl FakeRegistry {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            content: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    fn content(&self) -> std::sync::MutexGuard<'_, RegistryContent> {
        self.content.lock().expect("no panic")
    }

    pub(crate) fn push(&self, item: &str, manifest: &str) {
        let mut content = self.content();
        content.items.insert(item.to_owned(), manifest.to_owned());
        content.faults.remove(item);
    }

    pub(crate) fn remove(&self, item: &str) {
        self.content().items.remove(item);
    }

    pub(crate) fn fails(&self, item: &str, fault: ItemError) {
        self.content().faults.insert(item.to_owned(), fault);
    }

    pub(crate) fn is_down(&self, down: bool) {
        self.content().down = down;
    }

    pub(crate) fn fetched(&self) -> usize {
        self.content().fetched
    }

    /// Blocks listings.
    pub(crate) fn hold(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Unblocks listings.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1000);
    }
}

#[async_trait]
impl Registry for FakeRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListError> {
        let _permit = self.gate.acquire().await.expect("never closed");
        let content = self.content();
        if content.down {
            return Err(ListError::Unreachable(
                "it does not answer; start it".to_owned(),
            ));
        }
        let items = content.items.keys().map(|name| item(name));
        Ok(Listing::complete(items.collect()))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        let content = self.content();
        let name = item.to_string();
        if let Some(fault) = content.faults.get(&name) {
            return Err(fault.clone());
        }
        match content.items.get(&name) {
            Some(manifest) => Ok(Digest::of(manifest.as_bytes())),
            None => Err(ItemError::Gone("there is no such tag".to_owned())),
        }
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        let digest = self.look_up(item).await?;
        let mut content = self.content();
        content.fetched += 1;
        let manifest = content.items[&item.to_string()].clone();
        Ok(Spec {
            item: item.clone(),
            image: Some(format!("registry.example/{}@{digest}", item.image)),
            digest,
            manifest: manifest.into(),
            file: "bundle.yml".to_owned(),
            runtime: Some("2".to_owned()),
        })
    }
}

fn item(name: &str) -> Item {
    let (image, tag) = name.rsplit_once(':').expect("image and tag");
    Item::new(image, tag)
}

/// Parts that outlive brokers.
pub(crate) struct Fixture {
    pub(crate) registries: Vec<Arc<FakeRegistry>>,
    pub(crate) fake: Arc<FakeRunner>,
    pub(crate) rules: WithdrawalRules,
    /// Controls the periodic tasks of brokers that are opened later.
    pub(crate) scheduler: Option<Arc<Scheduler>>,
    pub(crate) pushes: Pushes,
    /// Tag under which bundles have their own names.
    pub(crate) default_tag: String,
    store: Arc<dyn Store>,
    store_calls: Arc<Mutex<StoreCalls>>,
    ring: String,
}

impl Fixture {
    /// Image of the last run of an action.
    pub(crate) fn ran(&self, action: Action) -> String {
        let run_specs = self.fake.started_specs();
        let run_spec = run_specs.iter().rev().find(|it| it.action == action);
        match &run_spec.expect("it was run").runnable {
            Runnable::Image { reference, .. } => reference.clone(),
            Runnable::Folder { .. } => "a folder".to_owned(),
        }
    }

    pub(crate) fn with(registries: &[Arc<FakeRegistry>]) -> Self {
        let (store, store_calls) = counted();
        Self {
            registries: registries.to_vec(),
            fake: Arc::default(),
            rules: WithdrawalRules {
                grace: Duration::ZERO,
                failures_max: None,
            },
            scheduler: None,
            pushes: Pushes::Refused,
            default_tag: "latest".to_owned(),
            store,
            store_calls,
            ring: KeyRing::fresh_line("first").to_string(),
        }
    }

    /// One registry with one bundle, and a broker that has read it.
    pub(crate) async fn with_hello() -> (Self, Arc<FakeRegistry>, TestBroker) {
        let registry = FakeRegistry::new("dh");
        registry.push("org/hello:latest", &manifest("1.0.0"));
        let fixture = Self::with(std::slice::from_ref(&registry));
        let broker = fixture.open().await;
        broker.refresh().await;
        (fixture, registry, broker)
    }

    fn sources(&self) -> Arc<[Source]> {
        let registries = self.registries.iter();
        let sources = registries.map(|registry| Source {
            registry: registry.clone(),
            default_tag: self.default_tag.clone(),
            at_once: 4,
        });
        sources.collect()
    }

    /// Returns the calls of the store since the last call of this function.
    pub(crate) fn take_store_calls(&self) -> StoreCalls {
        std::mem::take(&mut *self.store_calls.lock().expect("no panic"))
    }

    /// Starts a broker over these parts.
    pub(crate) async fn open(&self) -> TestBroker {
        let work = tempfile::tempdir().expect("a folder");
        let version_store = Arc::new(VersionStore::open(work.path()).expect("a version store"));
        let sources = self.sources();
        let service = Arc::new(BundleService::new(ServiceParts {
            version_store: version_store.clone(),
            runners: Arc::new(Runners {
                processes: self.fake.clone(),
                containers: Some(self.fake.clone()),
            }),
            secrets: Vec::new(),
            limits: RunLimits::default(),
            share_provision_credentials: false,
            host: None,
        }));
        let often = Duration::from_secs(3600);
        let offers = OfferSettings::default();
        let refresh = Refresh::new(sources.clone(), offers.clone(), self.rules, often);
        let refresh = Arc::new(refresh.pushes(self.pushes));
        let deletions = Deletions::new(sources.clone(), self.rules, often).pushes(self.pushes);
        let empty = Snapshot::default();
        let store: Arc<dyn Store> = match &self.scheduler {
            Some(scheduler) => scheduler.wrap_store(self.store.clone()),
            None => self.store.clone(),
        };
        let driven = |task: Arc<dyn PeriodicTask>| match &self.scheduler {
            Some(scheduler) => scheduler.wrap_task(task),
            None => task,
        };
        let running = Broker::new(empty.catalog().expect("an empty catalog"))
            .other_services(service.clone())
            .shared_store(store, KeyRing::parse(&self.ring).expect("keys"))
            .settings(|it| it.lease = Duration::from_secs(1))
            .without_auth()
            .with_catalog_source()
            .periodic_task(driven(refresh.clone()))
            .periodic_task(driven(Arc::new(deletions)))
            .start()
            .await
            .expect("the broker starts");
        let parts = PublisherConfig {
            sources,
            offers,
            version_store,
            service,
            refresh,
            pushes: self.pushes,
        };
        let publisher = CatalogPublisher::open(parts, running.clone(), Arc::new(empty)).await;
        let publisher = publisher.expect("what is known is offered");
        running.add_routes(Arc::new(ApbCompatRoutes::new(Some(publisher.clone()))));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let served = running.clone();
        let serves = tokio::spawn(async move {
            served.serve(listener, std::future::pending()).await;
        });
        let followed = publisher.clone();
        let follows = tokio::spawn(async move { followed.follow().await });
        TestBroker {
            url,
            running,
            publisher,
            tasks: vec![serves, follows],
            status_reads: AtomicUsize::new(0),
            _work: work,
        }
    }
}

/// A running broker.
pub(crate) struct TestBroker {
    url: String,
    pub(crate) running: BrokerHandle,
    pub(crate) publisher: Arc<CatalogPublisher>,
    tasks: Vec<JoinHandle<()>>,
    /// Number of status reads while waiting for a task.
    status_reads: AtomicUsize,
    _work: TempDir,
}

impl TestBroker {
    /// Stops it.
    pub(crate) async fn close(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.running.shut_down().await;
    }

    /// Requests a refresh, and waits until its result is published here.
    pub(crate) async fn refresh(&self) {
        self.run_task(REFRESH).await;
        sutler_broker::CatalogSource::catch_up(self.publisher.as_ref()).await;
    }

    /// Runs the deletion task.
    pub(crate) async fn delete(&self) {
        self.run_task(DELETIONS).await;
    }

    async fn run_task(&self, task: &str) {
        let number = self
            .running
            .request_run(task)
            .await
            .expect("the store answers");
        until("the task is done", async || {
            self.status_reads.fetch_add(1, Ordering::Relaxed);
            let status = self.running.task_status(task).await;
            let status = status.expect("the store answers");
            status.served >= number && status.running_since.is_none()
        })
        .await;
    }

    /// Returns the number of status reads while waiting for tasks, since the last call of this function.
    pub(crate) fn take_status_reads(&self) -> usize {
        self.status_reads.swap(0, Ordering::Relaxed)
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = reqwest::Client::new()
            .request(method, format!("{}{path}", self.url))
            .header("X-Broker-API-Version", "2.17");
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Pushes a bundle as developers do, without headers of the specification.
    pub(crate) async fn push(&self, manifest: &str) -> (u16, Value) {
        let encoded = STANDARD.encode(manifest).replace('+', "%2B");
        let answer = reqwest::Client::new()
            .post(format!("{}/v2/apb", self.url))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(format!("apbSpec={encoded}"))
            .send()
            .await
            .expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Names of the offered services.
    pub(crate) async fn offers(&self) -> Vec<String> {
        let (_, catalog) = self.send("GET", "/v2/catalog", Value::Null).await;
        let services = catalog["services"].as_array().cloned().unwrap_or_default();
        let names = services.iter().filter_map(|it| it["name"].as_str());
        names.map(str::to_owned).collect()
    }

    pub(crate) async fn provision(&self, id: &str, query: &str) -> (u16, Value) {
        let body = json!({
            "service_id": SERVICE, "plan_id": PLAN, "organization_guid": "o", "space_guid": "s",
        });
        let path = format!("/v2/service_instances/{id}?{query}");
        self.send("PUT", &path, body).await
    }

    pub(crate) async fn deprovision(&self, id: &str) -> u16 {
        let path = format!("/v2/service_instances/{id}?service_id={SERVICE}&plan_id={PLAN}");
        self.send("DELETE", &path, Value::Null).await.0
    }

    pub(crate) async fn bind(&self, id: &str, binding: &str) -> u16 {
        let path = format!("/v2/service_instances/{id}/service_bindings/{binding}");
        let body = json!({ "service_id": SERVICE, "plan_id": PLAN });
        self.send("PUT", &path, body).await.0
    }

    pub(crate) async fn unbind(&self, id: &str, binding: &str) -> u16 {
        let path = format!(
            "/v2/service_instances/{id}/service_bindings/{binding}?service_id={SERVICE}&plan_id={PLAN}"
        );
        self.send("DELETE", &path, Value::Null).await.0
    }

    /// Polls until an operation is no longer in progress.
    pub(crate) async fn until_done(&self, id: &str, operation: &str) -> Value {
        let path = format!("/v2/service_instances/{id}/last_operation?operation={operation}");
        let polled = async {
            loop {
                let (_, answer) = self.send("GET", &path, Value::Null).await;
                if answer["state"] != "in progress" {
                    return answer;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, polled).await;
        waited.expect("the operation did not end in time")
    }

    /// Items of the stored specs, each with its mark and fault.
    pub(crate) async fn specs(&self, registry: &str) -> Vec<String> {
        let view = self
            .publisher
            .view_of(registry)
            .await
            .expect("the store answers");
        let specs = view.map(|it| it.specs).unwrap_or_default();
        let described = specs.iter().map(|it| match (&it.mark, &it.fault) {
            (Some(mark), _) => format!("{}: {}", it.item, mark.reason),
            (None, Some(fault)) => format!("{}: {fault}", it.item),
            (None, None) => it.item.clone(),
        });
        described.collect()
    }
}

/// Waits until a condition holds, and fails the test if it never does.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let watched = async {
        while !holds().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, watched).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}
