//! Fixture: a folder of bundles, a store and a runner that outlive brokers, and brokers over them.

use super::fake_runner::FakeRunner;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sutler_broker::{Admin, Broker, BrokerHandle, BuildError};
use sutler_bundle::{Action, RunLimits};
use sutler_bundle_service::{
    BundleFolders, BundleService, OfferSettings, OperatorSecret, Runners, ServiceParts, Snapshot,
    VersionStore,
};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{KeyRing, MemoryStore};
use sutler_runner::{ProcessRunner, ProcessSettings, Runner, Supervisor};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How long a test waits for anything before it fails.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The bundle of most tests.
pub(crate) const MANIFEST: &str = r"
version: 1.0
name: db
id: db-id
bundle_version: 1.2.3
description: A database.
bindable: true
async: optional
dashboard_url: https://db.example.com/{instance_id}
plans:
  - name: small
    id: small-id
    description: For few.
    updates_to: [large]
    parameters:
      - {name: size, type: int, default: 1, updatable: true}
      - {name: password, type: string, display_type: password, updatable: true}
      - {name: flags, type: object, updatable: true, properties: [{name: fast, type: boolean}]}
    bind_parameters:
      - {name: role, type: string, default: reader}
  - name: tiny
    id: tiny-id
    description: For nobody.
  - name: large
    id: large-id
    description: For many.
    parameters:
      - {name: size, type: int, default: 10, updatable: true}
";

pub(crate) struct Fixture {
    root: TempDir,
    pub(crate) fake: Arc<FakeRunner>,
    store: Arc<MemoryStore>,
    ring: String,
    pub(crate) shares: bool,
    /// Runs real processes instead of the fake runner.
    pub(crate) real: bool,
    /// While set, the store rejects commits.
    pub(crate) refuses: Arc<AtomicBool>,
    /// Whether the operator has the secret `server`.
    pub(crate) has_secret: bool,
    /// Whether there is an engine for images; it is the fake runner, too.
    pub(crate) has_engine: bool,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let fixture = Self {
            root: tempfile::tempdir().expect("a folder"),
            fake: Arc::default(),
            store: Arc::new(MemoryStore::new()),
            ring: KeyRing::fresh_line("first").to_string(),
            shares: false,
            real: false,
            refuses: Arc::default(),
            has_secret: false,
            has_engine: false,
        };
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(fixture.root.path(), open).expect("open to runs");
        fixture.write("db", MANIFEST);
        for action in Action::ALL {
            fixture.script("db", action.as_str());
        }
        fixture
    }

    pub(crate) fn bundles(&self) -> PathBuf {
        self.root.path().join("bundles")
    }

    pub(crate) fn write(&self, bundle: &str, manifest: &str) {
        let folder = self.bundles().join(bundle);
        fs::create_dir_all(folder.join("actions")).expect("a folder");
        fs::write(folder.join("bundle.yml"), manifest).expect("a manifest");
    }

    pub(crate) fn script(&self, bundle: &str, action: &str) {
        self.script_that(bundle, action, "");
    }

    pub(crate) fn script_that(&self, bundle: &str, action: &str, text: &str) {
        let path = self.bundles().join(bundle).join("actions").join(action);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    /// Path of a file that scripts and tests both use.
    pub(crate) fn shared_file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Number of run directories.
    pub(crate) fn runs(&self) -> usize {
        let runs = self.root.path().join("work/runs");
        fs::read_dir(runs).map_or(0, |it| it.count())
    }

    /// Digests in the version store.
    pub(crate) fn stored_versions(&self) -> Vec<String> {
        let version_store =
            VersionStore::open(&self.root.path().join("work")).expect("a version store");
        let digests = version_store.digests().expect("digests");
        digests.into_iter().collect()
    }

    fn runner(&self) -> Arc<dyn Runner> {
        if !self.real {
            return self.fake.clone();
        }
        let mut settings = ProcessSettings::new(self.root.path().join("work"));
        settings.supervisor =
            Supervisor::at(env!("CARGO_BIN_EXE_bundle-service-test-supervisor").as_ref());
        Arc::new(ProcessRunner::open(settings).expect("a runner"))
    }

    fn secrets(&self) -> Vec<OperatorSecret> {
        let kept = OperatorSecret {
            name: "server".to_owned(),
            bundles: BTreeSet::new(),
            keys: BTreeMap::from([("server_password".to_owned(), "hush-hush".into())]),
        };
        self.has_secret.then_some(kept).into_iter().collect()
    }

    /// Starts a broker over these parts.
    pub(crate) async fn open(&self) -> TestBroker {
        let work = self.root.path().join("work");
        let version_store = Arc::new(VersionStore::open(&work).expect("a version store"));
        let mut folders = BundleFolders::new(
            vec![self.bundles()],
            version_store.clone(),
            OfferSettings::default(),
        );
        let snapshot = Arc::new(folders.look());
        assert_eq!(snapshot.faults, [] as [String; 0]);
        let service = Arc::new(BundleService::new(ServiceParts {
            version_store,
            runners: Arc::new(Runners {
                processes: self.runner(),
                containers: self
                    .has_engine
                    .then(|| self.fake.clone() as Arc<dyn Runner>),
            }),
            secrets: self.secrets(),
            limits: RunLimits::default(),
            share_provision_credentials: self.shares,
            host: None,
        }));
        service.offer(snapshot.clone());
        let catalog = snapshot.catalog().expect("a catalog");
        let cut = Arc::new(AtomicBool::new(false));
        let (dead, refuses) = (cut.clone(), self.refuses.clone());
        let store = InterceptingStore::new(self.store.clone(), move |call| match call {
            _ if dead.load(Ordering::Relaxed) => Intercept::CrashBefore,
            Call::Commit(_) if refuses.load(Ordering::Relaxed) => Intercept::Refuse,
            _ => Intercept::Pass,
        });
        let running = Broker::new(catalog)
            .other_services(service.clone())
            .store(store, KeyRing::parse(&self.ring).expect("keys"))
            .settings(|it| it.lease = Duration::from_secs(1))
            .without_auth()
            .admin(Admin::at("/admin").without_auth())
            .start()
            .await
            .expect("the broker starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (served, operations) = (running.clone(), Arc::new(running.clone()));
        let serves = tokio::spawn(async move {
            served.serve(listener, std::future::pending()).await;
        });
        let reaps = tokio::spawn({
            let service = service.clone();
            async move { service.reap(operations).await }
        });
        TestBroker {
            url,
            running,
            service,
            folders,
            cut,
            tasks: vec![serves, reaps],
        }
    }
}

/// A running broker.
pub(crate) struct TestBroker {
    url: String,
    running: BrokerHandle,
    service: Arc<BundleService>,
    folders: BundleFolders,
    cut: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A request.
#[derive(Clone)]
pub(crate) struct TestRequest {
    request: Value,
    method: &'static str,
    path: String,
    query: String,
    user: &'static str,
}

pub(crate) struct Reply {
    pub status: u16,
    pub json: Value,
}

impl Reply {
    pub(crate) fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.json);
        self.json
    }
}

impl TestRequest {
    /// A command of an operator.
    pub(crate) fn admin_command(broker: &TestBroker, path: &str) -> Self {
        let mut ask = broker.ask("POST", path.to_owned(), json!({ "reason": "a test" }));
        ask.query.clear();
        ask
    }

    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.request[field] = value;
        self
    }

    pub(crate) fn asynchronous(mut self) -> Self {
        self.query.push_str("&accepts_incomplete=true");
        self
    }

    /// On behalf of another user: the header of a Kubernetes platform.
    pub(crate) fn by(mut self, user: &'static str) -> Self {
        self.user = user;
        self
    }

    /// Sends it to this address.
    pub(crate) async fn send_to(self, url: &str) -> Reply {
        let ask = self;
        use base64::Engine as _;
        let identity = json!({ "username": ask.user }).to_string();
        let identity = base64::engine::general_purpose::STANDARD.encode(identity);
        let method = reqwest::Method::from_bytes(ask.method.as_bytes()).expect("a method");
        let url = format!("{}{}?{}", url, ask.path, ask.query.trim_start_matches('&'));
        let mut request = reqwest::Client::new()
            .request(method, url)
            .header("X-Broker-API-Version", "2.17")
            .header(
                "X-Broker-API-Originating-Identity",
                format!("kubernetes {identity}"),
            );
        if !ask.request.is_null() {
            request = request.json(&ask.request);
        }
        let answer = request.send().await.expect("an answer");
        Reply {
            status: answer.status().as_u16(),
            json: answer.json().await.unwrap_or_default(),
        }
    }
}

impl TestBroker {
    /// Ends without cleanup, like a killed process: no call of the store returns.
    pub(crate) fn crash(self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Removes unused versions; returns their digests.
    pub(crate) async fn sweep(&self, now: Instant) -> Vec<String> {
        let swept = self.service.sweep(&self.running, now).await;
        swept.expect("a sweep").into_iter().collect()
    }

    /// Scans the folders until changes are taken, and offers the bundles.
    pub(crate) async fn refresh(&mut self) -> Arc<Snapshot> {
        self.folders.look();
        let snapshot = Arc::new(self.folders.look());
        self.offer(snapshot.clone()).await.expect("it fits");
        snapshot
    }

    /// Offers a snapshot, if the store accepts it.
    pub(crate) async fn offer(&self, snapshot: Arc<Snapshot>) -> Result<(), BuildError> {
        let catalog = snapshot.catalog().expect("a catalog");
        self.running.replace_catalog(catalog).await?;
        self.service.offer(snapshot);
        Ok(())
    }

    /// Scans the folders once.
    pub(crate) fn scan(&mut self) -> Arc<Snapshot> {
        Arc::new(self.folders.look())
    }

    /// Address of the broker.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    fn ask(&self, method: &'static str, path: String, body: Value) -> TestRequest {
        TestRequest {
            request: body,
            method,
            path,
            query: "service_id=db-id&plan_id=small-id".to_owned(),
            user: "duke",
        }
    }

    pub(crate) fn provision(&self, id: &str) -> TestRequest {
        let body = json!({
            "service_id": "db-id", "plan_id": "small-id", "organization_guid": "o", "space_guid": "s",
            "context": { "platform": "kubernetes", "namespace": "blue" },
        });
        self.ask("PUT", format!("/v2/service_instances/{id}"), body)
    }

    pub(crate) fn update(&self, id: &str, change: Value) -> TestRequest {
        let mut body = json!({ "service_id": "db-id" });
        for (key, value) in change.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        self.ask("PATCH", format!("/v2/service_instances/{id}"), body)
    }

    pub(crate) fn deprovision(&self, id: &str) -> TestRequest {
        self.ask("DELETE", format!("/v2/service_instances/{id}"), Value::Null)
    }

    pub(crate) fn fetch(&self, id: &str) -> TestRequest {
        self.ask("GET", format!("/v2/service_instances/{id}"), Value::Null)
    }

    pub(crate) fn bind(&self, id: &str, binding: &str) -> TestRequest {
        let path = format!("/v2/service_instances/{id}/service_bindings/{binding}");
        self.ask(
            "PUT",
            path,
            json!({ "service_id": "db-id", "plan_id": "small-id" }),
        )
    }

    pub(crate) fn unbind(&self, id: &str, binding: &str) -> TestRequest {
        let path = format!("/v2/service_instances/{id}/service_bindings/{binding}");
        self.ask("DELETE", path, Value::Null)
    }

    pub(crate) fn fetch_binding(&self, id: &str, binding: &str) -> TestRequest {
        let path = format!("/v2/service_instances/{id}/service_bindings/{binding}");
        self.ask("GET", path, Value::Null)
    }

    pub(crate) fn log(&self, operation: &str) -> TestRequest {
        let mut ask = self.ask(
            "GET",
            format!("/admin/v1/operations/{operation}/log"),
            Value::Null,
        );
        ask.query.clear();
        ask
    }

    pub(crate) async fn send(&self, ask: TestRequest) -> Reply {
        ask.send_to(&self.url).await
    }

    /// Sends any GET request.
    pub(crate) async fn get(&self, path_and_query: &str) -> Value {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let mut ask = self.ask("GET", path.to_owned(), Value::Null);
        query.clone_into(&mut ask.query);
        self.send(ask).await.json
    }

    /// Polls until an operation is no longer in progress.
    pub(crate) async fn until_done(&self, path: &str, operation: &str) -> Value {
        let path = format!("/v2/service_instances/{path}/last_operation?operation={operation}");
        let polled = async {
            loop {
                let answer = self.get(&path).await;
                if answer["state"] != "in progress" {
                    return answer;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, polled).await;
        waited.expect("the operation did not end in time")
    }
}

/// Waits until a condition holds, and fails the test if it never does.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let watched = async {
        while !holds().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, watched).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}
