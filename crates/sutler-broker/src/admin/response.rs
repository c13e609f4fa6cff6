//! Responses of the administration API: JSON, and for each error a status, a code and a sentence.
//!
//! Only this module chooses statuses of the API. A 5xx never contains the cause.

use crate::refusal::Refusal;
use crate::requests::RequestError;
use axum::body::Body;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;
use sutler_journal::StoreError;
use sutler_records::RecordError;

/// Error response of the administration API.
#[derive(Debug)]
pub(crate) struct AdminError {
    status: StatusCode,
    /// Code for programs.
    error: &'static str,
    /// Sentence for operators.
    description: String,
    header: Option<(HeaderName, &'static str)>,
}

#[derive(Serialize)]
struct AdminErrorBody<'a> {
    error: &'a str,
    description: &'a str,
}

impl AdminError {
    fn new(status: StatusCode, error: &'static str, description: impl Into<String>) -> Self {
        Self {
            status,
            error,
            description: description.into(),
            header: None,
        }
    }

    /// The sentence for operators.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    pub(crate) fn invalid(description: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", description)
    }

    pub(crate) fn not_found(description: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", description)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::not_found(
            "There is nothing at this path; administration has v1/instances, v1/bindings, v1/operations, v1/audit and v1/stats.",
        )
    }

    pub(crate) fn method_not_allowed(allowed: &'static str) -> Self {
        let sentence = format!("This path takes {allowed}.");
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            sentence,
        )
        .with(ALLOW, allowed)
    }

    /// The stored document differs from the one sent.
    pub(crate) fn conflict(fault: Self) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", fault.description)
    }

    pub(crate) fn no_backup() -> Self {
        let sentence = "This broker's store cannot be copied while it runs; use export, or the store's own tools.";
        Self::new(StatusCode::CONFLICT, "no_backup", sentence)
    }

    /// Internal error: the cause is logged and not sent to the caller.
    pub(crate) fn internal(cause: &str) -> Self {
        tracing::error!(cause, "an administration request failed");
        let sentence = "The service broker could not do this; its log says why.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", sentence)
    }

    fn unavailable(cause: &(dyn std::error::Error + Send + Sync)) -> Self {
        let chain = std::iter::successors(cause.source(), |it| it.source())
            .fold(cause.to_string(), |text, it| format!("{text}: {it}"));
        tracing::error!(error = %chain, "administration cannot reach the store");
        let sentence = "The store does not answer now; wait a little, then repeat.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", sentence).with(RETRY_AFTER, "5")
    }
}

impl From<Refusal> for AdminError {
    fn from(refusal: Refusal) -> Self {
        let sentence = refusal.to_string();
        match refusal {
            Refusal::NotFound(_) | Refusal::Gone(_) => Self::not_found(sentence),
            Refusal::Invalid(_) => Self::invalid(sentence),
            Refusal::Busy(_) => Self::new(StatusCode::CONFLICT, "busy", sentence),
            Refusal::Unsupported(_)
            | Refusal::Conflict(_)
            | Refusal::AsyncRequired
            | Refusal::RequiresApp
            | Refusal::MaintenanceConflict => {
                Self::new(StatusCode::CONFLICT, "not_in_this_state", sentence)
            }
        }
    }
}

impl From<RequestError> for AdminError {
    fn from(problem: RequestError) -> Self {
        match problem {
            RequestError::Refused(refusal) => refusal.into(),
            RequestError::Unavailable(error) => Self::unavailable(error.as_ref()),
            RequestError::Failed { .. } | RequestError::Overdue { .. } => {
                Self::internal("an order does not wait for operations")
            }
        }
    }
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<RecordError> for AdminError {
    fn from(error: RecordError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<AdminError> for Response<Body> {
    fn from(fault: AdminError) -> Self {
        let body = AdminErrorBody {
            error: fault.error,
            description: &fault.description,
        };
        let mut response = written(fault.status, &body);
        if let Some((name, value)) = fault.header {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// A JSON response.
pub(crate) fn json(
    status: StatusCode,
    body: &impl Serialize,
) -> Result<Response<Body>, AdminError> {
    Ok(written(status, body))
}

fn written(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_vec(body).expect("our own types serialise");
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
