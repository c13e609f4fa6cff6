//! A parsed request: decoded path and query, headers, and the body as a JSON object.

use super::answers::{RefusalAnswer, malformed};
use axum::http::{HeaderMap, Method, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// Resource of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestTarget {
    Catalog,
    Instance(String),
    InstanceOperation(String),
    Binding(String, String),
    BindingOperation(String, String),
    Nowhere,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct BrokerRequest {
    pub method: Method,
    pub place: RequestTarget,
    /// Names and values, decoded; a name may occur twice.
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl BrokerRequest {
    pub(crate) fn new(method: Method, uri: &Uri, headers: HeaderMap, body: Vec<u8>) -> Self {
        let query = uri.query().unwrap_or_default();
        Self {
            method,
            place: place(uri.path()),
            query: query
                .split('&')
                .filter(|it| !it.is_empty())
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(name), decoded(value))
                })
                .collect(),
            headers,
            body,
        }
    }

    /// The first value of a query parameter.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, value) = self.query.iter().find(|(known, _)| known == name)?;
        Some(value)
    }

    /// A required query parameter.
    pub(crate) fn required_query(&self, name: &str) -> Result<&str, RefusalAnswer> {
        match self.query(name) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(malformed(&format!("The query lacks {name}."))),
        }
    }

    /// Whether the platform accepts a 202.
    pub(crate) fn accepts_incomplete(&self) -> bool {
        self.query("accepts_incomplete") == Some("true")
    }

    /// A header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, which must be a JSON object.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, RefusalAnswer> {
        if let Some(kind) = self.header("content-type") {
            let essence = kind.split(';').next().unwrap_or_default().trim();
            if !essence.eq_ignore_ascii_case("application/json") {
                return Err(malformed("The content type must be application/json."));
            }
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(body)) => Ok(body),
            Ok(_) => Err(malformed("The body must be a JSON object.")),
            Err(_) => Err(malformed("The body is not JSON.")),
        }
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn place(path: &str) -> RequestTarget {
    let segments: Vec<String> = path.split('/').skip(1).map(decoded).collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["v2", "catalog"] => RequestTarget::Catalog,
        ["v2", "service_instances", id] => RequestTarget::Instance((*id).to_owned()),
        ["v2", "service_instances", id, "last_operation"] => {
            RequestTarget::InstanceOperation((*id).to_owned())
        }
        ["v2", "service_instances", id, "service_bindings", binding] => {
            RequestTarget::Binding((*id).to_owned(), (*binding).to_owned())
        }
        [
            "v2",
            "service_instances",
            id,
            "service_bindings",
            binding,
            "last_operation",
        ] => RequestTarget::BindingOperation((*id).to_owned(), (*binding).to_owned()),
        _ => RequestTarget::Nowhere,
    }
}

/// A required non-empty string.
pub(crate) fn required<'a>(
    body: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, RefusalAnswer> {
    match body.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(Value::String(_)) => Err(malformed(&format!("{name} must not be empty."))),
        Some(_) => Err(malformed(&format!("{name} must be a string."))),
        None => Err(malformed(&format!("{name} is missing."))),
    }
}

/// An optional non-empty string.
pub(crate) fn optional<'a>(
    body: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, RefusalAnswer> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => required(body, name).map(Some),
    }
}

/// An optional object.
pub(crate) fn object(
    body: &Map<String, Value>,
    name: &str,
) -> Result<Option<Value>, RefusalAnswer> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(Value::Object(object.clone()))),
        Some(_) => Err(malformed(&format!("{name} must be an object."))),
    }
}
