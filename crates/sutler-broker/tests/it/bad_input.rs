//! Bad input at all ten endpoints: a 4xx with a helpful description, and no change.
//!
//! Everything is sent to a broker with one instance and one binding, whose whole store is compared
//! before and after. A handler that panics answers 500, so a panic fails these tests too. Bodies are
//! in `bad_input/bodies.rs`; headers, paths and queries in `bad_input/headers_and_paths.rs`; raw socket input in
//! `bad_input/wire.rs`. Random input is in `tools/fuzz`.

mod bodies;
mod headers_and_paths;
mod wire;

use crate::fixture::scripted_service::Script;
use crate::fixture::test_catalog::{DB, SMALL};
use crate::fixture::{AUTHORIZATION, VERSION, WAIT_LIMIT, catalog_of, test_catalog};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_broker::{Broker, BrokerHandle, Settings};
use sutler_journal::{
    Document, KeyRing, List, MemoryStore, Operation, OperationFilter, OperationList, Store,
};
use sutler_store_sqlite::SqliteStore;
use tempfile::TempDir;
use tower::ServiceExt;

const INSTANCE: &str = "/v2/service_instances/there";
const BINDING: &str = "/v2/service_instances/there/service_bindings/bound";

/// A broker with an instance `there` and a binding `bound`.
struct TestTarget {
    running: BrokerHandle,
    router: Router,
    store: Arc<dyn Store>,
    _folder: Option<TempDir>,
}

/// All contents of a store.
#[derive(Debug, PartialEq)]
struct Dump {
    documents: Vec<Document>,
    operations: Vec<Operation>,
}

/// Runs a test on every store.
async fn on_each_store(test: impl AsyncFn(&TestTarget)) {
    test(&TestTarget::start(Arc::new(MemoryStore::new()), None, |_| ()).await).await;
    let folder = tempfile::tempdir().expect("a folder for the database");
    let store = SqliteStore::open(folder.path().join("broker.db")).await;
    let store = Arc::new(store.expect("a fresh database opens"));
    test(&TestTarget::start(store, Some(folder), |_| ()).await).await;
}

impl TestTarget {
    async fn start(
        store: Arc<dyn Store>,
        folder: Option<TempDir>,
        set: impl FnOnce(&mut Settings),
    ) -> Self {
        let script = Arc::new(Script::default());
        let catalog = catalog_of(test_catalog::catalog());
        let ids: Vec<String> = catalog
            .services()
            .iter()
            .map(|it| it.id.to_string())
            .collect();
        let broker = Broker::new(catalog)
            .basic_auth("user", "s3cret")
            .shared_store(store.clone(), KeyRing::ephemeral())
            .settings(set);
        let broker = ids.iter().fold(broker, |broker, id| {
            broker.untyped_service(id, script.clone())
        });
        let running = broker.start().await.expect("the broker starts");
        let target = Self {
            router: running.router(),
            running,
            store,
            _folder: folder,
        };
        for path in [INSTANCE, BINDING] {
            let made = target.send(put(path, provision_body())).await;
            assert_eq!(made.status(), 201, "{path}");
        }
        target
    }

    async fn send(&self, request: Request<Body>) -> Response<Bytes> {
        let answered = tokio::time::timeout(WAIT_LIMIT, self.router.clone().oneshot(request)).await;
        let Ok(answer) = answered.expect("no answer in time");
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.expect("a body in memory").to_bytes();
        Response::from_parts(parts, bytes)
    }

    /// Sends a request that must be refused with a description, and must change nothing.
    async fn refuses(&self, what: &str, request: Request<Body>) -> u16 {
        let before = self.dump().await;
        let subject = format!("{what}: {} {:.90}", request.method(), request.uri().path());
        let answer = self.send(request).await;
        assert!(
            answer.status().is_client_error(),
            "{subject}: {} {:?}",
            answer.status(),
            answer.body()
        );
        has_description(&subject, &answer);
        assert_eq!(self.dump().await, before, "{subject}: something changed");
        answer.status().as_u16()
    }

    async fn dump(&self) -> Dump {
        let mut documents = Vec::new();
        let mut after = None;
        loop {
            let page = self
                .store
                .list(&List::Prefix(Vec::new()), after.as_ref(), 1000)
                .await;
            let page = page.expect("the store answers");
            documents.extend(page.documents);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let all = OperationList {
            filter: OperationFilter::All,
            before: None,
            limit: 100_000,
        };
        let mut operations = Vec::new();
        for row in self
            .store
            .operations(&all)
            .await
            .expect("the store answers")
        {
            operations.extend(
                self.store
                    .operation(row.id)
                    .await
                    .expect("the store answers"),
            );
        }
        Dump {
            documents,
            operations,
        }
    }
}

/// B-031, B-040: a JSON object with a description, and the content type of JSON.
fn has_description(subject: &str, answer: &Response<Bytes>) {
    let content_type = answer
        .headers()
        .get("content-type")
        .map(HeaderValue::as_bytes);
    assert_eq!(
        content_type,
        Some(b"application/json".as_slice()),
        "{subject}"
    );
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    assert!(body.is_object(), "{subject}: {:?}", answer.body());
    let description = body["description"].as_str().unwrap_or_default();
    assert!(description.split(' ').count() > 2, "{subject}: {body}");
    assert!(
        description.len() < 2000,
        "{subject}: {} bytes",
        description.len()
    );
    assert!(!description.contains("hush"), "{subject}: {description}");
}

fn request(method: Method, path: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("a path");
    set(&mut request, "authorization", AUTHORIZATION);
    set(&mut request, VERSION, "2.17");
    request
}

fn set(request: &mut Request<Body>, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
    let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
    request.headers_mut().insert(name, value);
}

fn with_body(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    let mut request = request(method, path);
    set(&mut request, "content-type", "application/json");
    *request.body_mut() = body.into();
    request
}

fn put(path: &str, body: Value) -> Request<Body> {
    with_body(Method::PUT, path, body.to_string())
}

fn provision_body() -> Value {
    json!({
        "service_id": DB, "plan_id": SMALL, "organization_guid": "o", "space_guid": "s",
    })
}

/// One request for each endpoint that reads a body, about existing and new resources.
fn writers(body: &[u8]) -> Vec<Request<Body>> {
    let to = |method, path| with_body(method, path, Bytes::copy_from_slice(body));
    vec![
        to(Method::PUT, "/v2/service_instances/new"),
        to(Method::PUT, INSTANCE),
        to(Method::PATCH, INSTANCE),
        to(
            Method::PUT,
            "/v2/service_instances/there/service_bindings/new",
        ),
        to(Method::PUT, BINDING),
    ]
}

/// One request for each of the ten endpoints; deletes and reads name unknown resources.
fn ten(body: &[u8]) -> Vec<Request<Body>> {
    let to = |method, path: &str| with_body(method, path, Bytes::copy_from_slice(body));
    let (instance, binding) = (
        "/v2/service_instances/unknown",
        "/v2/service_instances/unknown/service_bindings/unknown",
    );
    let query = "service_id=db-id&plan_id=small-id";
    vec![
        to(Method::GET, "/v2/catalog"),
        to(Method::PUT, instance),
        to(Method::GET, instance),
        to(Method::PATCH, instance),
        to(Method::DELETE, &format!("{instance}?{query}")),
        to(Method::GET, &format!("{instance}/last_operation")),
        to(Method::PUT, binding),
        to(Method::GET, binding),
        to(Method::DELETE, &format!("{binding}?{query}")),
        to(Method::GET, &format!("{binding}/last_operation")),
    ]
}
