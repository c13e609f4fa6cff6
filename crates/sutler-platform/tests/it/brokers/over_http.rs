//! Catalogs that are read from a real server.

use super::fixture::{definition, until};
use super::samples::{catalog, name, operator};
use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_client::wire::EgressPolicy;
use sutler_journal::{
    Engine, EngineSettings, Executor, KeyRing, Lost, MemoryStore, Run, RunResult, Store,
};
use sutler_platform::broker_request::{Annotations, Namespace};
use sutler_platform::brokers::{
    BrokerCommandError, BrokerDefinition, Brokers, BrokersSettings, HttpConnector,
};
use sutler_platform::platform_records::PlatformRecords;
use sutler_platform::records::{
    BrokerAuthentication, NamespaceRecord, NamespaceState, Record, platform_queue,
};
use sutler_records::{LoadedDocument, StoreClock};

/// Headers of all requests so far.
type Received = Arc<Mutex<Vec<HeaderMap>>>;

async fn serve_catalog(State(received): State<Received>, headers: HeaderMap) -> Response {
    let has_tag = headers.get("if-none-match").is_some();
    let is_known = headers.get("authorization").is_some_and(|it| {
        // platform:s3cret
        it == "Basic cGxhdGZvcm06czNjcmV0"
    });
    received.lock().unwrap().push(headers);
    match (is_known, has_tag) {
        (false, _) => StatusCode::UNAUTHORIZED.into_response(),
        (true, true) => StatusCode::NOT_MODIFIED.into_response(),
        (true, false) => ([("etag", "\"v1\"")], catalog(&[("s", &["p"])])).into_response(),
    }
}

async fn server() -> (SocketAddr, Received) {
    let received = Received::default();
    let router = Router::new()
        .route("/v2/catalog", get(serve_catalog))
        .with_state(received.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, received)
}

struct SyncExecutor(Arc<Brokers>);

#[async_trait]
impl Executor for SyncExecutor {
    async fn execute(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        match run.operation().row.verb.as_ref() {
            "probe" => self.0.execute_probe(run).await,
            _ => self.0.execute_sync(run).await,
        }
    }

    async fn give_up(&self, run: Arc<Run>) -> Result<RunResult, Lost> {
        self.0.give_up_sync(run).await
    }
}

async fn platform(connector: HttpConnector) -> (PlatformRecords, Arc<Brokers>, Engine) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = StoreClock::read(store.as_ref()).await.expect("it answers");
    let ring = Arc::new(KeyRing::ephemeral());
    let records = PlatformRecords::new(store.clone(), ring, clock);
    let settings = BrokersSettings::default();
    let brokers = Brokers::new(records.clone(), Arc::new(connector), settings);
    let brokers = Arc::new(brokers);
    let executor = Arc::new(SyncExecutor(brokers.clone()));
    let settings = EngineSettings::for_queue(platform_queue(), 4);
    let engine = Engine::start(store, executor, settings).await;
    (records, brokers, engine.expect("a lease"))
}

fn with_password(address: SocketAddr, password: &str) -> BrokerDefinition {
    BrokerDefinition {
        url: format!("http://{address}"),
        authentication: BrokerAuthentication::Basic {
            username: "platform".to_owned(),
            password: password.to_owned(),
        },
        ..definition()
    }
}

/// Holds: P-002, P-010, P-040.
#[tokio::test]
async fn a_catalog_is_read_with_the_brokers_credentials_its_tag_and_no_user() {
    let (address, received) = server().await;
    let (_, brokers, engine) = platform(HttpConnector::new(EgressPolicy::Anywhere)).await;
    let (db, by) = (name("db"), operator());
    let definition = with_password(address, "s3cret");
    let registered = brokers.register(None, &db, definition, &by).await;
    let broker = registered.expect("it is registered").uid;
    let served = async |number| {
        until("it is served", async || {
            let state = brokers.state(broker).await.expect("it is readable");
            state.is_some_and(|it| it.sync.served >= number)
        })
        .await;
    };
    served(1).await;
    served(brokers.sync(broker).await.expect("it is requested")).await;
    let view = brokers.view(broker).await.expect("it is registered");
    assert_eq!(view.state.sync.failure, None);
    assert_eq!(view.catalog.known().plans().len(), 1);
    let received = received.lock().unwrap().clone();
    assert_eq!(received.len(), 2);
    for headers in &received {
        assert!(headers.get("x-broker-api-version").is_some());
        assert_eq!(headers.get("x-broker-api-originating-identity"), None);
    }
    assert_eq!(received[0].get("if-none-match"), None);
    let tag = received[1].get("if-none-match").expect("a tag");
    assert_eq!(tag, "\"v1\"");
    engine.shut_down(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_wrong_password_opens_the_breaker_and_another_one_closes_it() {
    let (address, _) = server().await;
    let (_, brokers, engine) = platform(HttpConnector::new(EgressPolicy::Anywhere)).await;
    let (db, by) = (name("db"), operator());
    let wrong = with_password(address, "wrong");
    let registered = brokers.register(None, &db, wrong, &by).await;
    let broker = registered.expect("it is registered").uid;
    let stops = async || {
        let state = brokers.state(broker).await.expect("it is readable");
        state.is_some_and(|it| it.breaker.stop().is_some())
    };
    until("the breaker opens", stops).await;
    let right = with_password(address, "s3cret");
    let updated = brokers.update(broker, None, right).await;
    updated.expect("it is updated");
    until("the breaker closes", async || !stops().await).await;
    engine.shut_down(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn brokers_of_a_namespace_are_at_public_addresses_unless_others_are_allowed() {
    let (address, _) = server().await;
    for (connector, is_allowed) in [
        (HttpConnector::new(EgressPolicy::Anywhere), false),
        (
            HttpConnector::new(EgressPolicy::Anywhere)
                .with_egress_of_namespaces(EgressPolicy::Anywhere),
            true,
        ),
    ] {
        let (records, brokers, engine) = platform(connector).await;
        let text = |text: &str| text.to_owned().try_into().expect("a text");
        let namespace = NamespaceRecord {
            facts: Namespace {
                name: text("app"),
                uid: text("u"),
                cluster_id: text("c"),
                annotations: Annotations::default(),
                cloud_foundry: None,
            },
            labels: Default::default(),
            created: records.now(),
            state: NamespaceState::Active,
        };
        let (app, db, by) = (name("app"), name("db"), operator());
        let (key, documents) = (records.keys.namespace(&app), &records.documents);
        let commit = sutler_journal::Commit::new();
        let absent = LoadedDocument::absent();
        let commit = documents.put(commit, &key, &absent, &Record::of(namespace));
        documents
            .store
            .commit(&commit)
            .await
            .expect("it is written");
        let definition = with_password(address, "s3cret");
        let registered = brokers.register(Some(&app), &db, definition, &by).await;
        match registered {
            Ok(_) => assert!(is_allowed),
            Err(BrokerCommandError::Invalid { pointer, .. }) => {
                assert!(!is_allowed);
                assert_eq!(pointer, "/url");
            }
            Err(other) => panic!("{other}"),
        }
        engine.shut_down(Duration::from_secs(1)).await;
    }
}
