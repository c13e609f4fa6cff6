//! Brokers as fast as possible: one process plays any number of them, each below a path of its own.
//!
//! The path says how a broker behaves and how often it wants to be polled: `/prompt/10/17/v2/…`. Whether a provision is
//! synchronous is up to the plan. `GET /counts` shows how many requests there were.

use crate::load::BoxError;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutler_servers::http::HttpConnection;
use tokio::net::TcpListener;

/// The offering of every broker.
pub(super) const CLASS: &str = "bench";
/// The plan whose provisions are synchronous.
pub(super) const QUICK_PLAN: &str = "quick";
/// The plan whose provisions never end.
pub(super) const SLOW_PLAN: &str = "slow";
/// Tag of every catalog.
const TAG: &str = "\"1\"";

/// What a broker does with a provision. Catalogs are answered at once, except by those that refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// It answers at once.
    Prompt,
    /// It never answers.
    Hanging,
    /// It answers a byte a second, without end.
    Dripping,
    /// It refuses the credentials, so its breaker opens.
    Refusing,
}

impl Behaviour {
    /// Its part of the path.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Hanging => "hanging",
            Self::Dripping => "dripping",
            Self::Refusing => "refusing",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let all = [Self::Prompt, Self::Hanging, Self::Dripping, Self::Refusing];
        all.into_iter().find(|it| it.word() == word)
    }
}

/// Requests so far.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, u64>>);

impl Counts {
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, what: String) {
        *self.table().entry(what).or_default() += 1;
    }
}

/// Requests that a stub has got.
pub(super) struct StubCounts(BTreeMap<String, u64>);

impl StubCounts {
    /// Asks the stub on a port.
    pub(super) async fn read(port: u16) -> Result<Self, BoxError> {
        let mut connection = HttpConnection::connect(("127.0.0.1", port)).await?;
        let request = b"GET /counts HTTP/1.1\r\nHost: bench\r\n\r\n";
        let response = connection.send(request).await?;
        Ok(Self(serde_json::from_slice(response.body)?))
    }

    /// Polls of the brokers that want to be polled so often.
    pub(super) fn polls(&self, seconds: u64) -> u64 {
        self.get(&format!("poll/{seconds}"))
    }

    /// Connections that were made for these polls.
    pub(super) fn connections(&self, seconds: u64) -> u64 {
        self.get(&format!("connection/{seconds}"))
    }

    /// Provisions that brokers of a behaviour got.
    pub(super) fn provisions(&self, behaviour: Behaviour) -> u64 {
        self.get(&format!("provision/{}", behaviour.word()))
    }

    fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

type StubBody = BoxBody<Bytes, Infallible>;

/// Serves all brokers.
pub(crate) async fn serve(port: u16) -> Result<(), BoxError> {
    sutler_server::raise_descriptor_limit();
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let counts = Arc::new(Counts::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let counts = counts.clone();
        tokio::spawn(async move {
            let is_new = Arc::new(AtomicBool::new(true));
            let service = service_fn(move |request| {
                let is_first = is_new.swap(false, Ordering::Relaxed);
                let counts = counts.clone();
                async move { Ok::<_, Infallible>(answer(request, is_first, &counts).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
        });
    }
}

/// Answers a request; `is_first`: of its connection.
async fn answer(request: Request<Incoming>, is_first: bool, counts: &Counts) -> Response<StubBody> {
    let path = request.uri().path().to_owned();
    if path == "/counts" {
        return json_answer(StatusCode::OK, &json!(*counts.table()));
    }
    let mut parts = path.trim_start_matches('/').splitn(4, '/');
    let behaviour = parts.next().and_then(Behaviour::of);
    let (seconds, _number, endpoint) = (parts.next(), parts.next(), parts.next());
    let (Some(behaviour), Some(seconds), Some(endpoint)) = (behaviour, seconds, endpoint) else {
        return json_answer(StatusCode::NOT_FOUND, &json!({}));
    };
    if endpoint == "v2/catalog" {
        counts.add(format!("catalog/{}", behaviour.word()));
        return match behaviour {
            Behaviour::Refusing => json_answer(StatusCode::UNAUTHORIZED, &json!({})),
            _ if request.headers().contains_key(IF_NONE_MATCH) => {
                json_answer(StatusCode::NOT_MODIFIED, &json!({}))
            }
            _ => catalog_answer(),
        };
    }
    if endpoint.ends_with("/last_operation") {
        counts.add(format!("poll/{seconds}"));
        if is_first {
            counts.add(format!("connection/{seconds}"));
        }
        let mut response = json_answer(StatusCode::OK, &json!({"state": "in progress"}));
        if let Ok(wait) = HeaderValue::from_str(seconds) {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        return response;
    }
    if request.method() != Method::PUT {
        return json_answer(StatusCode::OK, &json!({}));
    }
    counts.add(format!("provision/{}", behaviour.word()));
    let body = request.into_body().collect().await;
    let body = body.map(|it| it.to_bytes()).unwrap_or_default();
    provision_answer(behaviour, &body).await
}

async fn provision_answer(behaviour: Behaviour, body: &[u8]) -> Response<StubBody> {
    match behaviour {
        Behaviour::Prompt if is_slow(body) => json_answer(StatusCode::ACCEPTED, &json!({})),
        Behaviour::Prompt => json_answer(StatusCode::CREATED, &json!({})),
        Behaviour::Hanging => std::future::pending().await,
        Behaviour::Dripping => dripping_answer(),
        Behaviour::Refusing => json_answer(StatusCode::UNAUTHORIZED, &json!({})),
    }
}

/// Whether a provision is for the plan whose provisions never end.
pub(super) fn is_slow(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["plan_id"] == SLOW_PLAN
}

fn dripping_answer() -> Response<StubBody> {
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let frame = Frame::data(Bytes::from_static(b" "));
        Some((Ok::<_, Infallible>(frame), ()))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(drops)));
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn json_answer(status: StatusCode, body: &Value) -> Response<StubBody> {
    let body = match status {
        StatusCode::NOT_MODIFIED => Bytes::new(),
        _ => Bytes::from(body.to_string()),
    };
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn catalog_answer() -> Response<StubBody> {
    let mut response = json_answer(StatusCode::OK, &catalog());
    let tag = HeaderValue::from_static(TAG);
    response.headers_mut().insert(ETAG, tag);
    response
}

/// The catalog of every broker.
pub(super) fn catalog() -> Value {
    let plan = |id: &str| json!({"id": id, "name": id, "description": "A plan."});
    json!({"services": [{
        "id": CLASS, "name": CLASS, "description": "Does nothing, quickly.", "bindable": true,
        "instances_retrievable": true, "bindings_retrievable": true,
        "plans": [plan(QUICK_PLAN), plan(SLOW_PLAN)],
    }]})
}
