//! Whole requests to the API of the platform, through its routes to the store and back.
//!
//! A platform with a namespace `app`, a broker, an instance `db` and a binding `key` gets arbitrary requests of somebody
//! who may do everything. Never a 5xx; a refusal is a problem with a title and a sentence. All clocks are stopped, so
//! waiting takes no time.

use super::requests::parsed_request;
use super::{Check, Verdict};
use crate::properties::{kind_of, same};
use async_trait::async_trait;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use sutler_client::wire::{
    Answer, InvalidConnectionError, Method as BrokerMethod, Request as BrokerRequest,
    TransportError,
};
use sutler_journal::{KeyRing, MemoryStore};
use sutler_platform::api::{AccessSettings, ApiSettings, PlatformServer};
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::platform::{Platform, PlatformParts, PlatformSettings};
use sutler_platform::records::BrokerRegistration;
use sutler_server::{Auth, BodyLimits, ServerSettings};
use tokio::runtime::Runtime;

pub(super) const WORDS: &[&str] = &[
    "PUT ",
    "GET ",
    "PATCH ",
    "DELETE ",
    "POST ",
    "/api/v1/namespaces/app",
    "/instances",
    "/bindings",
    "/brokers",
    "/secrets",
    "/orphans",
    "/intents/1",
    "/db",
    "/key",
    ":undelete",
    ":rollback",
    ":abandon",
    ":rotate",
    ":sync",
    "?",
    "&",
    "wait=1s",
    "dryRun=true",
    "limit=1",
    "after=",
    "cascade=true",
    "if-match: \"1\"",
    "if-none-match: *",
    "idempotency-key: k",
    "content-type: application/json",
    "\n\n",
    "\"class\":\"pg\"",
    "\"plan\":\"small\"",
    "\"parameters\":{",
    "\"parametersFrom\":[",
    "\"labels\":{",
    "\"reason\":\"r\"",
    "\"instance\":\"db\"",
    "\"transforms\":[",
    "\"rotation\":{",
    "null",
];

/// Longest body, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Requests after which a new platform is created: successful ones fill the store.
const REQUESTS_MAX: u32 = 1_000;
/// Credentials of the only user.
const AUTHORIZATION: &str = "Basic dTpw";

const CATALOG: &str = r#"{"services": [{
    "id": "pg", "name": "pg", "description": "d", "bindable": true, "plan_updateable": true,
    "plans": [{"id": "small", "name": "small", "description": "d"},
              {"id": "large", "name": "large", "description": "d"}]}]}"#;

/// A broker that does everything at once.
struct AcceptingBroker;

#[async_trait]
impl BrokerTransport for AcceptingBroker {
    async fn send(&self, request: &BrokerRequest) -> Result<Answer, TransportError> {
        let body = match (request.method, request.path.len()) {
            (BrokerMethod::Get, 2) => CATALOG,
            (BrokerMethod::Put, 5) => r#"{"credentials":{"password":"hush"}}"#,
            _ => "{}",
        };
        Ok(Answer::new(200, &[], body))
    }
}

/// Connects every broker to that one.
struct AcceptingBrokers;

impl ConnectBroker for AcceptingBrokers {
    fn connect(
        &self,
        _registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        Ok(Arc::new(AcceptingBroker))
    }
}

/// A platform under test.
struct PlatformRequests {
    runtime: Runtime,
    server: PlatformServer,
    requests: u32,
}

pub(super) fn whole() -> Box<dyn Check> {
    Box::new(PlatformRequests::new())
}

impl PlatformRequests {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.expect("a runtime can be made");
        let server = runtime.block_on(started());
        Self {
            runtime,
            server,
            requests: 0,
        }
    }
}

async fn started() -> PlatformServer {
    let platform = Platform::start(PlatformParts {
        store: Arc::new(MemoryStore::new()),
        keys: Arc::new(KeyRing::ephemeral()),
        connector: Arc::new(AcceptingBrokers),
        settings: PlatformSettings::of_cluster("here".try_into().expect("a text")),
    });
    let platform = platform.await.expect("the platform starts");
    let names = || vec!["u".to_owned()];
    let server = PlatformServer::new(
        platform,
        ApiSettings {
            auth: Auth::basic("u", &"p".into()).expect("a user"),
            access: AccessSettings {
                operators: names(),
                abandon: names(),
                credentials: names(),
                impersonators: names(),
            },
            server: unlimited(),
            body: BodyLimits {
                bytes_max: BODY_BYTES_MAX,
                within: Duration::from_secs(5),
            },
            tls: None,
            metrics: None,
            public_metrics: false,
        },
    );
    let instance = json!({ "name": "db", "class": "pg", "plan": "small" });
    for (method, path, body) in [
        (Method::PUT, "/namespaces/app", json!({})),
        (
            Method::PUT,
            "/brokers/broker",
            json!({ "url": "http://broker.test" }),
        ),
        (Method::POST, "/namespaces/app/instances?wait=30s", instance),
        (
            Method::POST,
            "/namespaces/app/bindings?wait=30s",
            json!({ "name": "key", "instance": "db" }),
        ),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("authorization", AUTHORIZATION)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()));
        let (status, body) = answered(&server, request.expect("a request")).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        // Its catalog is read meanwhile.
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    server
}

/// The limits of a server whose callers may ask as often as they like.
fn unlimited() -> ServerSettings {
    let mut settings = ServerSettings::default();
    settings.limits.rate_per_caller = None;
    settings
}

async fn answered(server: &PlatformServer, request: Request<Body>) -> (StatusCode, String) {
    let (parts, body) = server.answer(request).await.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let body = body.unwrap_or_default();
    (parts.status, String::from_utf8_lossy(&body).into_owned())
}

impl Check for PlatformRequests {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let Some(mut request) = parsed_request(input) else {
            return Ok("no request".to_owned());
        };
        if !request.uri().path().starts_with("/api/v1/") {
            return Ok("elsewhere".to_owned());
        }
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            *self = Self::new();
        }
        let headers = request.headers_mut();
        headers.insert("authorization", HeaderValue::from_static(AUTHORIZATION));
        let is_head = request.method() == Method::HEAD;
        let method = request.method().clone();
        let Self {
            runtime, server, ..
        } = self;
        let (status, body) = runtime.block_on(answered(server, request));
        if status.is_server_error() {
            return Err(format!("answers {status}: {body}"));
        }
        if status.is_client_error() && !is_head {
            return problem(status, &body);
        }
        Ok(format!("{method} {status}"))
    }
}

/// A refusal is a problem of its status with a title and a sentence.
fn problem(status: StatusCode, body: &str) -> Verdict {
    let problem: Value =
        serde_json::from_str(body).map_err(|error| format!("{body} is not JSON ({error})"))?;
    same(
        &problem["status"],
        &json!(status.as_u16()),
        "has another status",
    )?;
    let title = problem["title"].as_str().unwrap_or_default();
    let kind = problem["type"].as_str().unwrap_or_default();
    if title.is_empty() || !kind.starts_with("urn:sutler:") {
        return Err(format!("is not a problem: {body}"));
    }
    Ok(format!("{status} {}", kind_of(kind)))
}
