//! Answers of the broker: plain data that flaws may still change, and the common refusals.

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};

/// An outgoing answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The body; `None` for an empty one.
    pub body: Option<Value>,
    /// Sent instead of the body, if present: bytes that are not JSON.
    pub raw: Option<Vec<u8>>,
}

/// A refusal is an answer; the alias marks the error path of a decision.
pub(crate) type RefusalAnswer = Answer;

impl Answer {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: Some(body),
            raw: None,
        }
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes over the status and body of another answer; the headers stay.
    pub(crate) fn become_like(&mut self, other: Self) {
        self.status = other.status;
        self.body = other.body;
    }

    /// Sets a field of the body, if that is an object.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        if let Some(Value::Object(body)) = &mut self.body {
            body.insert(name.to_owned(), value);
        }
    }

    /// Removes a field of the body.
    pub(crate) fn unset(&mut self, name: &str) {
        if let Some(Value::Object(body)) = &mut self.body {
            body.remove(name);
        }
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value);
        }
        let bytes = match (self.raw, self.body) {
            (Some(raw), _) => raw,
            (None, Some(body)) => body.to_string().into_bytes(),
            (None, None) => Vec::new(),
        };
        response.body(Body::from(bytes)).unwrap()
    }
}

/// A refusal without a code.
pub(crate) fn refuse(status: u16, description: &str) -> RefusalAnswer {
    Answer::new(status, json!({ "description": description }))
}

/// 400: the request cannot be read, or is incomplete.
pub(crate) fn malformed(description: &str) -> RefusalAnswer {
    refuse(400, description)
}

/// 422 with one of the codes of the specification.
pub(crate) fn coded(error: &str, description: &str) -> RefusalAnswer {
    Answer::new(422, json!({ "error": error, "description": description }))
}

pub(crate) fn async_required() -> RefusalAnswer {
    coded("AsyncRequired", "Ask again with accepts_incomplete=true.")
}

pub(crate) fn busy() -> RefusalAnswer {
    coded(
        "ConcurrencyError",
        "Another operation is running; ask again when it has ended.",
    )
}

/// 202 with the operation's id.
pub(crate) fn accepted(operation: &str) -> Answer {
    Answer::new(202, json!({ "operation": operation }))
}

/// 410 for an absent resource.
pub(crate) fn gone() -> Answer {
    Answer::new(410, json!({}))
}
