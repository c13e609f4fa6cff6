//! Requests as sentences, and raw answers: `kit.provision("i1").plan(LARGE).send().await`.
//!
//! Bodies, headers and paths are made by hand here, never by the types under test.

use super::PATIENCE;
use super::fixture::service_of;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body as JSON; null if there is none.
    pub json: Value,
    pub text: String,
}

impl Reply {
    /// Fails the test unless the status is this one.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// Fails the test unless it is a 422 with this word.
    #[track_caller]
    pub(crate) fn refused_as(self, word: &str) -> Self {
        let reply = self.is(422);
        assert_eq!(reply.json["error"], word, "{}", reply.text);
        reply
    }

    /// The operation of a 202.
    #[track_caller]
    pub(crate) fn operation(&self) -> String {
        assert_eq!(self.status, 202, "{}", self.text);
        self.json["operation"]
            .as_str()
            .expect("a 202 names its operation")
            .to_owned()
    }

    /// A header as text; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap_or("?"))
    }

    /// The sentence of an error, or of a poll.
    pub(crate) fn description(&self) -> &str {
        self.json["description"].as_str().unwrap_or_default()
    }
}

/// A request that can still be changed. Clone it to send it twice.
#[derive(Clone)]
pub(crate) struct Ask {
    router: Router,
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Payload,
}

#[derive(Clone)]
enum Payload {
    None,
    Fields(Map<String, Value>),
    Raw(Vec<u8>),
}

impl Ask {
    pub(super) fn new(router: &Router, method: &'static str, path: String) -> Self {
        Self {
            router: router.clone(),
            method,
            path,
            query: Vec::new(),
            headers: Vec::new(),
            body: Payload::None,
        }
    }

    /// Sends these fields as the body.
    pub(crate) fn fields(mut self, fields: Value) -> Self {
        match fields {
            Value::Object(fields) => self.body = Payload::Fields(fields),
            other => panic!("a body is an object, not {other}"),
        }
        self
    }

    /// Sends these bytes as the body.
    pub(crate) fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = Payload::Raw(bytes.into());
        self
    }

    /// Sets a field of the body.
    pub(crate) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        match &mut self.body {
            Payload::Fields(fields) => {
                fields.insert(field.to_owned(), value.into());
            }
            Payload::None | Payload::Raw(_) => panic!("this request has no fields"),
        }
        self
    }

    /// Leaves out a field of the body, or a query parameter.
    pub(crate) fn without(mut self, name: &str) -> Self {
        if let Payload::Fields(fields) = &mut self.body {
            fields.remove(name);
        }
        self.query.retain(|(key, _)| key != name);
        self
    }

    /// Of this plan and its offering, wherever the request says so.
    pub(crate) fn plan(self, plan_id: &str) -> Self {
        let service_id = service_of(plan_id);
        self.service(&service_id).only_plan(plan_id)
    }

    /// Names a plan and leaves the service as it is.
    pub(crate) fn only_plan(self, plan_id: &str) -> Self {
        self.name("plan_id", plan_id)
    }

    /// Names a service and leaves the plan as it is.
    pub(crate) fn service(self, service_id: &str) -> Self {
        self.name("service_id", service_id)
    }

    fn name(mut self, key: &str, id: &str) -> Self {
        if let Payload::Fields(_) = &self.body {
            return self.with(key, id);
        }
        self.query.retain(|(known, _)| known != key);
        self.query(key, id)
    }

    /// With these parameters.
    pub(crate) fn parameters(self, parameters: Value) -> Self {
        self.with("parameters", parameters)
    }

    /// Adds a query parameter; encoded here.
    pub(crate) fn query(mut self, key: &str, value: &str) -> Self {
        self.query.push((key.to_owned(), encoded(value)));
        self
    }

    /// Adds a query parameter as it stands.
    pub(crate) fn raw_query(mut self, key: &str, value: &str) -> Self {
        self.query.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Asynchronous answers are welcome.
    pub(crate) fn accepts_incomplete(self) -> Self {
        self.query("accepts_incomplete", "true")
    }

    /// Polls this operation.
    pub(crate) fn operation(self, operation: &str) -> Self {
        self.query("operation", operation)
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves out a header.
    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Goes through another router: nested, or with layers.
    pub(crate) fn through(mut self, router: &Router, prefix: &str) -> Self {
        self.router = router.clone();
        self.path = format!("{prefix}{}", self.path);
        self
    }

    /// Sends it and waits for the answer.
    pub(crate) async fn send(self) -> Reply {
        let router = self.router.clone();
        let answered = tokio::time::timeout(PATIENCE, router.oneshot(self.request())).await;
        let answered = answered
            .expect("no answer in time")
            .expect("a router never fails");
        let (parts, body) = answered.into_parts();
        let bytes = body.collect().await.expect("a body in memory").to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            json,
            text,
        }
    }

    /// Sends it and goes on; the answer can be awaited later.
    pub(crate) fn start(self) -> JoinHandle<Reply> {
        tokio::spawn(self.send())
    }

    fn request(self) -> Request<Body> {
        let query: Vec<String> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let query = if query.is_empty() {
            String::new()
        } else {
            format!("?{}", query.join("&"))
        };
        let body = match self.body {
            Payload::None => Body::empty(),
            Payload::Fields(fields) => Body::from(Value::Object(fields).to_string()),
            Payload::Raw(bytes) => Body::from(bytes),
        };
        let request = Request::builder()
            .method(self.method)
            .uri(format!("{}{query}", self.path));
        let mut request = request.body(body).expect("a well-formed request");
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            let value = HeaderValue::from_str(value).expect("a header value");
            request.headers_mut().append(name, value);
        }
        request
    }
}

/// A path segment or query value, with everything but letters and digits encoded.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
