//! Whole requests, through the router to the store and back.
//!
//! A broker with an instance `i`, a binding `b` and a synchronous service gets
//! arbitrary requests. Never a 5xx; a refusal is a sentence in JSON and changes nothing: the end of the
//! store's feed of commits must not move.

use super::{Check, Verdict};
use crate::properties::{kind_of, refused, same};
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_broker::{
    AuthorState, Bound, Broker, Cx, Policy, Provisioned, Result as HookResult, UntypedService,
    Update, Updated,
};
use sutler_journal::{Cursor, KeyRing, MemoryStore, Store};
use sutler_osb::{Catalog, InstanceId, OperationKind, Parameters, PinnedPlan, from_json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

pub(super) const WORDS: &[&str] = &[
    "PUT ",
    "GET ",
    "PATCH ",
    "DELETE ",
    "POST ",
    "HEAD ",
    "OPTIONS ",
    "/v2/catalog",
    "/v2/service_instances/",
    "/service_bindings/",
    "/last_operation",
    "?",
    "&",
    "service_id=s",
    "plan_id=p",
    "plan_id=q",
    "accepts_incomplete=true",
    "operation=",
    "i",
    "b",
    "%2F",
    "..",
    "authorization: Basic dTpw",
    "x-broker-api-version: 2.17",
    "x-broker-api-version:",
    "content-type: application/json",
    "x-broker-api-originating-identity: cf e30=",
    "x-broker-api-request-identity: r",
    "if-none-match: *",
    "\n\n",
    "\"parameters\":{",
    "\"size\":1",
    "\"service_id\":\"s\"",
    "\"plan_id\":\"p\"",
    "\"organization_guid\":\"o\"",
    "\"space_guid\":\"x\"",
    "\"predecessor_binding_id\":\"b\"",
    "\"maintenance_info\":{}",
];

pub(super) const PATH_WORDS: &[&str] = &[
    "/v2/service_instances/",
    "/v2/catalog",
    "/service_bindings/",
    "/last_operation",
    "/",
    "//",
    "%2F",
    "%2e",
    "..",
    ".",
    "i",
    "b",
    "?",
    "#",
    "v2",
];

pub(super) const AUTH_WORDS: &[&str] = &["Basic ", "basic", "Bearer ", "dTpw", "=", " ", "\t"];

/// A longer header is not parsed.
const AUTHORIZATION_BYTES_MAX: usize = 4096;

/// Requests after which a new broker is created: successful ones fill the store.
const REQUESTS_MAX: u32 = 2_000;

pub(super) const CATALOG: &str = r##"{"services": [{
    "id": "s", "name": "s", "description": "d", "bindable": true, "plan_updateable": true,
    "instances_retrievable": true, "bindings_retrievable": true, "allow_context_updates": true,
    "plans": [
        {"id": "p", "name": "p", "description": "d", "binding_rotatable": true,
         "maintenance_info": {"version": "1.0.0"}, "schemas": {"service_instance": {"create":
            {"parameters": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
             "properties": {"size": {"type": "integer", "minimum": 1}}}}}}},
        {"id": "q", "name": "q", "description": "d"}
    ]}]}"##;

/// Does everything synchronously.
pub(super) struct AcceptingService;

#[async_trait]
impl UntypedService for AcceptingService {
    async fn provision(&self, _: &Cx, asked: Parameters) -> HookResult<Provisioned<AuthorState>> {
        Ok(Provisioned::new(AuthorState(Value::Object(asked.0))))
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> HookResult<()> {
        Ok(())
    }

    fn updates(&self) -> bool {
        true
    }

    async fn update(
        &self,
        _: &Cx,
        state: Option<AuthorState>,
        _: Update<Parameters>,
    ) -> HookResult<Updated<AuthorState>> {
        Ok(Updated::new(state.unwrap_or(AuthorState(Value::Null))))
    }

    async fn bind(&self, _: &Cx, state: Option<AuthorState>) -> HookResult<Bound> {
        Ok(Bound::credentials(json!({ "state": state.map(|it| it.0) })))
    }

    fn policy(&self, _: OperationKind, _: &PinnedPlan) -> Policy {
        Policy::default().sync()
    }
}

/// A broker under test.
struct RequestParts {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    router: Router,
    requests: u32,
}

/// A response as a client sees it.
struct ResponseParts {
    status: StatusCode,
    is_json: bool,
    body: Bytes,
}

impl RequestParts {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be made");
        let (store, router) = runtime.block_on(started());
        Self {
            runtime,
            store,
            router,
            requests: 0,
        }
    }

    /// Sends a request; checks the properties of every response.
    fn ask(&mut self, request: Request<Body>) -> Result<ResponseParts, String> {
        self.requests += 1;
        if self.requests > REQUESTS_MAX {
            *self = Self::new();
        }
        let Self {
            runtime,
            store,
            router,
            ..
        } = self;
        runtime.block_on(async {
            let head = request.method() == Method::HEAD;
            let before = feed_end(store).await?;
            let answer = router.clone().oneshot(request).await;
            let answer = received(answer.unwrap_or_else(|never| match never {})).await?;
            if answer.status.is_server_error() {
                let body = String::from_utf8_lossy(&answer.body);
                return Err(format!("answers {}: {body}", answer.status));
            }
            if answer.status.is_client_error() {
                same(
                    &feed_end(store).await?,
                    &before,
                    "changes something and refuses",
                )?;
                if !head {
                    helpful(&answer)?;
                }
            }
            Ok(answer)
        })
    }
}

async fn started() -> (Arc<MemoryStore>, Router) {
    let catalog: Catalog = from_json(CATALOG.as_bytes()).expect("the catalog is valid");
    let store = Arc::new(MemoryStore::new());
    let broker = Broker::new(catalog)
        .untyped_service("s", Arc::new(AcceptingService))
        .shared_store(store.clone(), KeyRing::ephemeral())
        .settings(|settings| settings.limits.rate_per_caller = None)
        .basic_auth("u", "p");
    let router = broker.into_router().await.expect("the broker starts");
    let body = r#"{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"x"}"#;
    for path in [
        "/v2/service_instances/i",
        "/v2/service_instances/i/service_bindings/b",
    ] {
        let request = asking(Method::PUT, path)
            .body(Body::from(body))
            .expect("a valid request");
        let Ok(answer) = router.clone().oneshot(request).await;
        assert_eq!(answer.status(), StatusCode::CREATED, "{path}");
    }
    (store, router)
}

fn asking(method: Method, path: &str) -> axum::http::request::Builder {
    let request = Request::builder().method(method).uri(path);
    request
        .header("authorization", "Basic dTpw")
        .header("x-broker-api-version", "2.17")
}

async fn received(answer: axum::response::Response) -> Result<ResponseParts, String> {
    let (parts, body) = answer.into_parts();
    let body = body
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    let content_type = parts.headers.get("content-type").map(HeaderValue::as_bytes);
    Ok(ResponseParts {
        status: parts.status,
        is_json: content_type == Some(b"application/json"),
        body,
    })
}

/// End of the feed of commits.
async fn feed_end(store: &MemoryStore) -> Result<Cursor, String> {
    let mut end = Cursor::default();
    loop {
        let changes = store
            .changes(&end, 100_000)
            .await
            .map_err(|error| error.to_string())?;
        if changes.changes.is_empty() {
            return Ok(end);
        }
        end = changes.next;
    }
}

/// B-031, B-040: a JSON object with a description.
fn helpful(answer: &ResponseParts) -> Result<String, String> {
    same(&answer.is_json, &true, "is not said to be JSON")?;
    let body: Value = serde_json::from_slice(&answer.body).map_err(|error| {
        format!(
            "{} is no JSON ({error})",
            String::from_utf8_lossy(&answer.body)
        )
    })?;
    let description = body.get("description").and_then(Value::as_str);
    let description = description.ok_or_else(|| format!("no description: {body}"))?;
    refused(description, b"")
}

fn summary(answer: &ResponseParts) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    if answer.status.is_success() {
        format!(
            "{} of {} bytes",
            answer.status,
            body.len().checked_ilog2().unwrap_or(0)
        )
    } else {
        format!("{} {}", answer.status, kind_of(&body))
    }
}

/// Paths: an invalid id is a 400, in agreement with the parser of ids; an unknown one is a 404.
struct Paths(RequestParts);

pub(super) fn paths() -> Box<dyn Check> {
    Box::new(Paths(RequestParts::new()))
}

impl Check for Paths {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let Ok(uri) = Uri::try_from(input) else {
            return Ok("no URI".to_owned());
        };
        if !uri.path().starts_with("/v2/") {
            return Ok("elsewhere".to_owned());
        }
        let mut all = String::new();
        for method in [
            Method::GET,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::POST,
        ] {
            let request = asking(method.clone(), "/")
                .body(Body::empty())
                .expect("a valid request");
            let (mut parts, body) = request.into_parts();
            parts.uri = uri.clone();
            let answer = self.0.ask(Request::from_parts(parts, body))?;
            let segment = uri.path().strip_prefix("/v2/service_instances/");
            if let Some(segment) = segment.filter(|it| !it.contains('/') && method == Method::GET) {
                let valid = InstanceId::from_path_segment(segment).is_ok();
                let refused = answer.status == StatusCode::BAD_REQUEST;
                let by_query = uri.query().is_some();
                same(
                    &(refused == valid && !by_query),
                    &false,
                    "judges the id otherwise",
                )?;
            }
            all.push_str(&summary(&answer));
        }
        Ok(all)
    }
}

/// Authorization: accepted only with the right user and password, in any spelling of the header.
struct Authorization(RequestParts);

pub(super) fn authorization() -> Box<dyn Check> {
    Box::new(Authorization(RequestParts::new()))
}

impl Check for Authorization {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let Ok(value) = HeaderValue::from_bytes(input) else {
            return Ok("no header".to_owned());
        };
        let request = asking(Method::GET, "/v2/catalog").body(Body::empty());
        let mut request = request.expect("a valid request");
        request.headers_mut().insert("authorization", value);
        let answer = self.0.ask(request)?;
        let right = input.split_at_checked(6).is_some_and(|(scheme, rest)| {
            input.len() <= AUTHORIZATION_BYTES_MAX
                && scheme.eq_ignore_ascii_case(b"basic ")
                && STANDARD
                    .decode(rest.trim_ascii())
                    .is_ok_and(|given| given == b"u:p")
        });
        let wanted = if right {
            StatusCode::OK
        } else {
            StatusCode::UNAUTHORIZED
        };
        same(
            &answer.status,
            &wanted,
            "admits whom it should not, or not whom it should",
        )?;
        Ok(summary(&answer))
    }
}

/// B-042: JSON with any parameters is accepted; anything else is a 400.
struct ContentType(RequestParts);

pub(super) fn content_type() -> Box<dyn Check> {
    Box::new(ContentType(RequestParts::new()))
}

impl Check for ContentType {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let Ok(value) = HeaderValue::from_bytes(input) else {
            return Ok("no header".to_owned());
        };
        let body = r#"{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"x"}"#;
        let request = asking(Method::PUT, "/v2/service_instances/i").body(Body::from(body));
        let mut request = request.expect("a valid request");
        request.headers_mut().insert("content-type", value);
        let answer = self.0.ask(request)?;
        let media = input.split(|byte| *byte == b';').next().unwrap_or_default();
        let right = input
            .iter()
            .all(|byte| *byte == b'\t' || (b' '..=b'~').contains(byte))
            && media.trim_ascii().eq_ignore_ascii_case(b"application/json");
        let wanted = if right {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        same(
            &answer.status,
            &wanted,
            "takes another type, or not its own",
        )?;
        Ok(summary(&answer))
    }
}

/// A whole request: `METHOD path`, headers, an empty line, the body.
struct WholeRequest(RequestParts);

pub(super) fn whole() -> Box<dyn Check> {
    Box::new(WholeRequest(RequestParts::new()))
}

impl Check for WholeRequest {
    fn check(&mut self, input: &[u8]) -> Verdict {
        let Some(request) = parsed_request(input) else {
            return Ok("no request".to_owned());
        };
        let ours = request.uri().path().starts_with("/v2/");
        if !ours {
            return Ok("elsewhere".to_owned());
        }
        let (method, identity) = (request.method().clone(), IDENTITY);
        let sent = request.headers().get(identity).cloned();
        let answer = self.0.ask(request)?;
        let is_change = method != Method::GET && answer.status.is_success();
        Ok(format!(
            "{method} {} {} {}",
            is_change,
            sent.is_some(),
            summary(&answer)
        ))
    }
}

const IDENTITY: &str = "x-broker-api-request-identity";

/// A request of its text: the method and the path, headers, an empty line, the body.
pub(super) fn parsed_request(input: &[u8]) -> Option<Request<Body>> {
    let mut rest = input;
    let mut line = || {
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    };
    let first = line();
    let space = first.iter().position(|byte| *byte == b' ')?;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::from_bytes(&first[..space]).ok()?;
    *request.uri_mut() = Uri::try_from(&first[space + 1..]).ok()?;
    loop {
        let header = line();
        if header.is_empty() {
            break;
        }
        let colon = header.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&header[..colon]).ok()?;
        let value = HeaderValue::from_bytes(header[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    *request.body_mut() = Body::from(rest.to_vec());
    Some(request)
}
