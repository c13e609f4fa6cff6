//! A broker in this process, a client of its router, and helpers for tests.
//!
//! Start with [`on_each_store`]. The catalog is in `fixture/test_catalog.rs`, the scripted service in
//! `fixture/scripted_service.rs`, requests and responses in `fixture/request.rs`.

pub(crate) mod request;
pub(crate) mod scripted_service;
pub(crate) mod server_port;
pub(crate) mod test_catalog;

use axum::Router;
use request::{Reply, RequestBuilder, encoded};
use scripted_service::Script;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use sutler_broker::{Broker, BrokerHandle};
use sutler_journal::{KeyRing, MemoryStore};
use sutler_osb::Catalog;
use sutler_store_sqlite::SqliteStore;
use tempfile::TempDir;
use test_catalog::{DB, SMALL};

/// Time limit of every wait in a test.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// Pause between two checks of a condition.
const CHECK_PAUSE: Duration = Duration::from_millis(2);

/// The one user, as `user:password` in base64.
pub(crate) const AUTHORIZATION: &str = "Basic dXNlcjpzM2NyZXQ=";
/// The line of the key that brokers start with.
pub(crate) const FIRST_KEY: &str = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n";
pub(crate) const VERSION: &str = "X-Broker-API-Version";

/// A running broker, its service, and a client.
pub(crate) struct Fixture {
    pub running: BrokerHandle,
    pub script: Arc<Script>,
    router: Router,
    /// Holds the database for as long as the test lasts.
    _folder: Option<TempDir>,
}

/// Runs a test once on every store, each time with a fresh broker of the fixture catalog.
pub(crate) async fn on_each_store(test: impl AsyncFn(&Fixture)) {
    on_each_store_with(|broker| broker, test).await;
}

/// Like [`on_each_store`], with changed settings of the broker.
pub(crate) async fn on_each_store_with(
    set_up: impl Fn(Broker) -> Broker,
    test: impl AsyncFn(&Fixture),
) {
    eprintln!("in memory");
    let kit = in_memory(&set_up).await;
    test(&kit).await;
    kit.finish_all().await;
    eprintln!("in SQLite");
    let kit = in_sqlite(&set_up).await;
    test(&kit).await;
    kit.finish_all().await;
}

/// A broker whose store is in memory.
pub(crate) async fn in_memory(set_up: impl Fn(Broker) -> Broker) -> Fixture {
    let set_up = |broker: Broker| set_up(broker.store(MemoryStore::new(), first_keys()));
    Fixture::start(set_up, None).await
}

async fn in_sqlite(set_up: impl Fn(Broker) -> Broker) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder for the database");
    let path = folder.path().join("broker.db");
    let store = Arc::new(
        SqliteStore::open(path)
            .await
            .expect("a fresh database opens"),
    );
    let set_up = |broker: Broker| set_up(broker.shared_store(store.clone(), first_keys()));
    Fixture::start(set_up, Some(folder)).await
}

/// The ring that brokers start with: the key `k1`.
pub(crate) fn first_keys() -> KeyRing {
    KeyRing::parse(FIRST_KEY).expect("a ring")
}

/// A catalog of the library's type.
pub(crate) fn catalog_of(json: Value) -> Catalog {
    serde_json::from_value(json).expect("the catalog keeps the rules")
}

impl Fixture {
    async fn start(set_up: impl Fn(Broker) -> Broker, folder: Option<TempDir>) -> Self {
        let script = Arc::new(Script::default());
        let catalog = catalog_of(test_catalog::catalog());
        let names: Vec<String> = catalog
            .services()
            .iter()
            .map(|it| it.id.as_str().to_owned())
            .collect();
        let broker = Broker::new(catalog).basic_auth("user", "s3cret");
        let broker = names.iter().fold(broker, |broker, name| {
            broker.untyped_service(name, script.clone())
        });
        let running = set_up(broker).start().await.expect("the broker starts");
        Self {
            router: running.router(),
            running,
            script,
            _folder: folder,
        }
    }

    /// A client of a broker that a test has built with its own services.
    pub(crate) fn around(running: BrokerHandle) -> Self {
        Self {
            router: running.router(),
            running,
            script: Arc::default(),
            _folder: None,
        }
    }

    /// Opens every gate and waits until nothing runs any more.
    async fn finish_all(&self) {
        self.script.open_all();
        self.until("nothing runs any more", async || {
            self.running.operations_running() == 0
        })
        .await;
        self.running.shut_down().await;
    }

    /// Waits until a condition holds, and fails the test if it never does.
    pub(crate) async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let watched = async {
            while !holds().await {
                tokio::time::sleep(CHECK_PAUSE).await;
            }
        };
        let waited = tokio::time::timeout(WAIT_LIMIT, watched).await;
        assert!(waited.is_ok(), "waited in vain until {what}");
    }

    /// The plain router, for nesting.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Any request, with the headers that every request has.
    pub(crate) fn request(&self, method: &'static str, path: impl Into<String>) -> RequestBuilder {
        let request = RequestBuilder::new(&self.router, method, path.into());
        request
            .header("Authorization", AUTHORIZATION)
            .header(VERSION, "2.17")
    }

    /// `GET /v2/catalog`
    pub(crate) fn catalog(&self) -> RequestBuilder {
        self.request("GET", "/v2/catalog")
    }

    /// `PUT /v2/service_instances/{id}`
    pub(crate) fn provision(&self, instance: &str) -> RequestBuilder {
        self.request("PUT", instance_path(instance))
            .header("Content-Type", "application/json")
            .fields(json!({
                "service_id": DB, "plan_id": SMALL,
                "organization_guid": "org", "space_guid": "space",
            }))
    }

    /// `PATCH /v2/service_instances/{id}`, without changes until they are added.
    pub(crate) fn update(&self, instance: &str) -> RequestBuilder {
        let request = self.request("PATCH", instance_path(instance));
        request
            .header("Content-Type", "application/json")
            .fields(json!({ "service_id": DB }))
    }

    /// `DELETE /v2/service_instances/{id}`
    pub(crate) fn deprovision(&self, instance: &str) -> RequestBuilder {
        self.request("DELETE", instance_path(instance)).plan(SMALL)
    }

    /// `GET /v2/service_instances/{id}`
    pub(crate) fn fetch(&self, instance: &str) -> RequestBuilder {
        self.request("GET", instance_path(instance))
    }

    /// `GET /v2/service_instances/{id}/last_operation`
    pub(crate) fn poll(&self, instance: &str) -> RequestBuilder {
        self.request("GET", format!("{}/last_operation", instance_path(instance)))
    }

    /// `PUT /v2/service_instances/{id}/service_bindings/{id}`
    pub(crate) fn bind(&self, instance: &str, binding: &str) -> RequestBuilder {
        let request = self.request("PUT", binding_path(instance, binding));
        let body = json!({ "service_id": DB, "plan_id": SMALL });
        request
            .header("Content-Type", "application/json")
            .fields(body)
    }

    /// `DELETE /v2/service_instances/{id}/service_bindings/{id}`
    pub(crate) fn unbind(&self, instance: &str, binding: &str) -> RequestBuilder {
        self.request("DELETE", binding_path(instance, binding))
            .plan(SMALL)
    }

    /// `GET /v2/service_instances/{id}/service_bindings/{id}`
    pub(crate) fn fetch_binding(&self, instance: &str, binding: &str) -> RequestBuilder {
        self.request("GET", binding_path(instance, binding))
    }

    /// `GET /v2/service_instances/{id}/service_bindings/{id}/last_operation`
    pub(crate) fn poll_binding(&self, instance: &str, binding: &str) -> RequestBuilder {
        self.request(
            "GET",
            format!("{}/last_operation", binding_path(instance, binding)),
        )
    }

    /// One request to each of the ten endpoints, about an instance and a binding.
    pub(crate) fn ten_endpoints(&self, instance: &str, binding: &str) -> [RequestBuilder; 10] {
        [
            self.catalog(),
            self.provision(instance),
            self.fetch(instance),
            self.update(instance),
            self.deprovision(instance),
            self.poll(instance),
            self.bind(instance, binding),
            self.fetch_binding(instance, binding),
            self.unbind(instance, binding),
            self.poll_binding(instance, binding),
        ]
    }

    /// Creates an instance of the default plan synchronously.
    pub(crate) async fn has_instance(&self, instance: &str) {
        self.provision(instance).send().await.is(201);
    }

    /// Creates an instance of a plan synchronously.
    pub(crate) async fn has_instance_of(&self, instance: &str, plan_id: &str) {
        self.provision(instance).plan(plan_id).send().await.is(201);
    }

    /// Creates a binding of the default plan synchronously.
    pub(crate) async fn has_binding(&self, instance: &str, binding: &str) {
        self.bind(instance, binding).send().await.is(201);
    }

    /// Sends a request, and polls an instance's operation to its end if it is asynchronous.
    pub(crate) async fn finish(&self, instance: &str, request: RequestBuilder) -> Reply {
        let accepted = request.send().await;
        let operation = accepted.operation();
        self.poll_until_done(self.poll(instance).operation(&operation))
            .await
    }

    /// Sends a request, and polls a binding's operation to its end if it is asynchronous.
    pub(crate) async fn finish_binding(
        &self,
        instance: &str,
        binding: &str,
        request: RequestBuilder,
    ) -> Reply {
        let accepted = request.send().await;
        let operation = accepted.operation();
        self.poll_until_done(self.poll_binding(instance, binding).operation(&operation))
            .await
    }

    /// Polls until the answer is no longer `in progress`.
    pub(crate) async fn poll_until_done(&self, poll: RequestBuilder) -> Reply {
        let polled = async {
            loop {
                let reply = poll.clone().send().await;
                if reply.json["state"] != "in progress" {
                    return reply;
                }
                tokio::time::sleep(CHECK_PAUSE).await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, polled)
            .await
            .expect("the operation did not end in time")
    }
}

fn instance_path(instance: &str) -> String {
    format!("/v2/service_instances/{}", encoded(instance))
}

fn binding_path(instance: &str, binding: &str) -> String {
    format!(
        "{}/service_bindings/{}",
        instance_path(instance),
        encoded(binding)
    )
}
