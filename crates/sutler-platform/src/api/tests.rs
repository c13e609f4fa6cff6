//! Tests of the whole API over a platform in memory, without a socket.
//!
//! Its broker is registered by hand and never answers: these tests are about requests, refusals and what is accepted. What
//! brokers do with it is tested with the executor.

mod access;
mod audit;
mod broker_ids;
mod brokers;
mod changes;
mod conditions;
mod lists;
mod refusals;

use super::access::AccessSettings;
use super::health::PlatformHealth;
use super::rest_api::RestApi;
use crate::author::Author;
use crate::brokers::{BrokerTransport, ConnectBroker, HttpConnector};
use crate::catalog::{OfferedPlan, OfferedService};
use crate::platform::{Platform, PlatformParts, PlatformSettings};
use crate::platform_records::PlatformRecords;
use crate::records::{BrokerRegistration, BrokerState, CatalogRecord, Record, TypedRecord};
use async_trait::async_trait;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::{
    Answer as BrokerAnswer, EgressPolicy, InvalidConnectionError, Request as BrokerRequest,
    TransportError,
};
use sutler_journal::{Commit, Key, KeyRing, MemoryStore, Store, StoreTime};
use sutler_osb::ServiceOffering;
use sutler_records::{LoadedDocument, StoreClock};
use sutler_server::{
    Admission, Auth, AuthMethods, BodyLimits, Limits, Probes, SharedLimits, Users,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Every user's password.
const PASSWORD: &str = "hush";
/// Uid of the broker that is registered.
const BROKER: Uuid = Uuid::from_u128(0xb0b);
/// Largest body.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Documents in memory.
pub(super) fn records() -> PlatformRecords {
    let clock = StoreClock::at(StoreTime(1_000_000));
    let ring = Arc::new(KeyRing::ephemeral());
    PlatformRecords::new(Arc::new(MemoryStore::new()), ring, clock)
}

/// Checks registrations as always, and connects to nothing.
struct SilentBroker(HttpConnector);

/// Never answers.
struct Silence;

impl ConnectBroker for SilentBroker {
    fn connect(
        &self,
        registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        self.0.connect(registration)?;
        Ok(Arc::new(Silence))
    }
}

#[async_trait]
impl BrokerTransport for Silence {
    async fn send(&self, _: &BrokerRequest) -> Result<BrokerAnswer, TransportError> {
        std::future::pending().await
    }
}

/// An API with the users `ada`, `bob`, `dora` and `kube`. Ada is an operator, Bob may abandon and read credentials, Dora is an
/// operator who may abandon, Kube may act for others.
struct TestApi(RestApi);

/// An answer.
#[derive(Debug)]
struct TestReply {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl TestReply {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|it| it.to_str().ok());
        value.unwrap_or_default()
    }

    /// The word of a problem.
    fn word(&self) -> &str {
        let kind = self.body["type"].as_str().unwrap_or_default();
        kind.strip_prefix("urn:sutler:").unwrap_or_default()
    }
}

impl TestApi {
    async fn start() -> Self {
        Self::over(Arc::new(MemoryStore::new())).await
    }

    async fn over(store: Arc<dyn Store>) -> Self {
        Self::within(store, Limits::default()).await
    }

    async fn within(store: Arc<dyn Store>, limits: Limits) -> Self {
        let platform = Platform::start(PlatformParts {
            store,
            keys: Arc::new(KeyRing::ephemeral()),
            connector: Arc::new(SilentBroker(
                HttpConnector::new(EgressPolicy::public_only()),
            )),
            settings: PlatformSettings::of_cluster("here".try_into().expect("a text")),
        });
        let platform = platform.await.expect("it starts");
        let users = ["ada", "bob", "dora", "kube"]
            .into_iter()
            .fold(Users::new(), |users, name| {
                let added = users.with_password(name, &PASSWORD.into());
                added.expect("a user")
            });
        let auth = Auth::any_of(AuthMethods {
            users,
            ..AuthMethods::default()
        });
        let health = Arc::new(PlatformHealth::default());
        let shared = SharedLimits::new(limits, CancellationToken::new());
        Self(RestApi {
            platform,
            auth: auth.expect("users"),
            access: Arc::new(AccessSettings {
                operators: vec!["ada".to_owned(), "dora".to_owned()],
                abandon: vec!["bob".to_owned(), "dora".to_owned()],
                credentials: vec!["bob".to_owned()],
                impersonators: vec!["kube".to_owned()],
            }),
            admission: Arc::new(Admission::new(shared)),
            body: BodyLimits {
                bytes_max: BODY_BYTES_MAX,
                within: Duration::from_secs(5),
            },
            probes: Probes {
                health: health.clone(),
                metrics: None,
                public_metrics: false,
            },
            health,
        })
    }

    /// With a namespace `app` and a broker that offers `postgresql` with the plans `small` and `large`.
    async fn with_broker() -> Self {
        let api = Self::start().await;
        let created = api.put("/namespaces/app", json!({})).await;
        assert_eq!(created.status, 201, "{created:?}");
        let records = api.0.platform.records();
        let keys = &records.keys;
        let registration = registration();
        let name = registration.name.clone();
        store(records, &keys.broker(None, &name), registration).await;
        let state = BrokerState {
            catalog_revision: 1,
            ..BrokerState::default()
        };
        store(records, &keys.broker_state(BROKER), state).await;
        let offering = offering();
        for plan in &offering.plans {
            let key = keys.service_plan(BROKER, &offering.id, &plan.id);
            let plan = OfferedPlan::from_plan(offering.id.clone(), plan.clone());
            store(records, &key, CatalogRecord::Plan(plan)).await;
        }
        let key = keys.service_offering(BROKER, &offering.id);
        let service = OfferedService::from_offering(offering);
        store(records, &key, CatalogRecord::Service(service)).await;
        api
    }

    /// With an instance `db` whose create waits.
    async fn with_instance() -> Self {
        let api = Self::with_broker().await;
        let created = api.post("/namespaces/app/instances", instance("db")).await;
        assert_eq!(created.status, 202, "{created:?}");
        api
    }

    async fn send(&self, request: Request<Body>) -> TestReply {
        let response = self.0.answer(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        TestReply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    /// A request of Ada, unless the headers say who asks.
    async fn ask(
        &self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> TestReply {
        let mut builder = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"));
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            builder = builder.header("authorization", basic("ada"));
        }
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let body = match body {
            Some(body) => {
                builder = builder.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.send(builder.body(body).expect("a request")).await
    }

    async fn get(&self, path: &str) -> TestReply {
        self.ask(("GET", path), &[], None).await
    }

    async fn put(&self, path: &str, body: Value) -> TestReply {
        self.ask(("PUT", path), &[], Some(body)).await
    }

    async fn post(&self, path: &str, body: Value) -> TestReply {
        self.ask(("POST", path), &[], Some(body)).await
    }

    async fn patch(&self, path: &str, body: Value) -> TestReply {
        self.ask(("PATCH", path), &[], Some(body)).await
    }

    async fn delete(&self, path: &str) -> TestReply {
        self.ask(("DELETE", path), &[], None).await
    }
}

/// The header of a user.
fn basic(name: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{PASSWORD}")))
}

fn instance(name: &str) -> Value {
    json!({"name": name, "class": "postgresql", "plan": "small", "parameters": {"disk": 10}})
}

async fn store<T: TypedRecord>(records: &PlatformRecords, key: &Key, contents: T) {
    let documents = &records.documents;
    let record = Record::of(contents);
    let commit = documents.put(Commit::new(), key, &LoadedDocument::absent(), &record);
    let written = documents.store.commit(&commit).await;
    written.expect("it is written");
}

fn registration() -> BrokerRegistration {
    BrokerRegistration {
        uid: BROKER,
        name: "databases".try_into().expect("a name"),
        scope: crate::catalog::BrokerScope::AllNamespaces,
        url: "https://broker.example".to_owned(),
        authentication: crate::records::BrokerAuthentication::None,
        tls: Default::default(),
        profile: crate::broker_request::Profile::Sutler,
        restrictions: Default::default(),
        access: Default::default(),
        limits: Default::default(),
        options: Default::default(),
        revision: 1,
        created: jiff::Timestamp::UNIX_EPOCH,
        created_by: Author {
            username: "ada".to_owned(),
            uid: "user:ada".to_owned(),
            groups: Vec::new(),
            extra: Default::default(),
            impersonated_by: None,
        },
        deregistering: None,
    }
}

fn offering() -> ServiceOffering {
    let schema = json!({"type": "object", "properties": {"disk": {"type": "integer"}}});
    let plan = |id: &str| {
        json!({"id": format!("{id}-id"), "name": id, "description": id,
            "schemas": {"service_instance": {"create": {"parameters": schema}}}})
    };
    let offering = json!({"id": "class-1", "name": "postgresql", "description": "A database",
        "bindable": true, "plan_updateable": true, "plans": [plan("small"), plan("large")]});
    serde_json::from_value(offering).expect("an offering")
}
