//! Maps refusals and errors to statuses; no other module does.
//!
//! A 5xx never contains the cause: the caller gets a sentence, the log of the operator has the cause.

use super::HttpReply;
use crate::error::{Error, ErrorKind};
use crate::lifecycle::Verb;
use crate::refusal::Refusal;
use crate::requests::RequestError;
use crate::resources::Detail;
use crate::settings::MissingVersion;
use hyper::StatusCode;
use std::time::Duration;
use sutler_osb::{ApiVersion, ErrorBody, ErrorCode};
use sutler_server::{BodyError, CallerLimitExceeded, ErrorResponse, QueueFull, Rejection};

pub(super) use sutler_server::json_response as json;

/// Description of an internal error.
const INTERNAL: &str = "The service broker could not do this. Its operator can see why.";

/// The noun that names this server in error responses.
const SERVER: &str = "service broker";

/// Response other than a success.
pub(super) struct ErrorReply(ErrorResponse);

impl ErrorReply {
    fn new(status: StatusCode, body: &ErrorBody) -> Self {
        Self(ErrorResponse::new(status, body))
    }

    fn described(status: StatusCode, sentence: &str) -> Self {
        Self::new(status, &ErrorBody::described(sentence))
    }

    fn retry_after(self, seconds: u64) -> Self {
        Self(self.0.retry_after(Duration::from_secs(seconds)))
    }

    pub(super) fn invalid(sentence: String) -> Self {
        Self::described(StatusCode::BAD_REQUEST, &sentence)
    }

    pub(super) fn no_such_path() -> Self {
        let sentence = "There is nothing at this path; the Open Service Broker API begins at /v2/.";
        Self::described(StatusCode::NOT_FOUND, sentence)
    }

    pub(super) fn absent(sentence: String) -> Self {
        Self::described(StatusCode::NOT_FOUND, &sentence)
    }

    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        Self(ErrorResponse::method_not_allowed(allowed))
    }

    pub(super) fn uri_too_long(limit: usize) -> Self {
        Self(ErrorResponse::uri_too_long(limit))
    }

    pub(super) fn too_many_headers(limit: usize) -> Self {
        Self(ErrorResponse::too_many_headers(limit))
    }

    pub(super) fn version_missing(setting: MissingVersion) -> Self {
        let sentence = format!(
            "The header X-Broker-API-Version is required, such as {}.",
            ApiVersion::CURRENT
        );
        let status = match setting {
            MissingVersion::BadRequest => StatusCode::BAD_REQUEST,
            MissingVersion::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        };
        Self::described(status, &sentence)
    }

    pub(super) fn version_not_served() -> Self {
        let sentence = format!(
            "This service broker serves version {} of the Open Service Broker API; send that, or another 2.x, as X-Broker-API-Version.",
            ApiVersion::CURRENT
        );
        Self::described(StatusCode::PRECONDITION_FAILED, &sentence)
    }

    /// The broker drains: it accepts no changes, but still answers reads and polls.
    pub(super) fn draining() -> Self {
        let sentence = "This service broker takes no changes at present; repeat the request later.";
        let body = ErrorBody::described(sentence);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, &body).retry_after(30)
    }
}

impl From<Rejection> for ErrorReply {
    fn from(rejection: Rejection) -> Self {
        Self(ErrorResponse::rejected(rejection, SERVER))
    }
}

impl From<QueueFull> for ErrorReply {
    fn from(_: QueueFull) -> Self {
        Self(ErrorResponse::overloaded(SERVER))
    }
}

impl From<CallerLimitExceeded> for ErrorReply {
    fn from(exceeded: CallerLimitExceeded) -> Self {
        Self(ErrorResponse::caller_limited(exceeded))
    }
}

impl From<BodyError> for ErrorReply {
    fn from(error: BodyError) -> Self {
        Self(ErrorResponse::body(error, SERVER))
    }
}

impl From<Refusal> for ErrorReply {
    fn from(refusal: Refusal) -> Self {
        let (status, code) = match &refusal {
            Refusal::Invalid(_) => (StatusCode::BAD_REQUEST, None),
            Refusal::NotFound(_) => (StatusCode::NOT_FOUND, None),
            Refusal::Gone(_) => (StatusCode::GONE, None),
            Refusal::Conflict(_) => (StatusCode::CONFLICT, None),
            Refusal::Unsupported(_) => (StatusCode::UNPROCESSABLE_ENTITY, None),
            Refusal::AsyncRequired => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Some(ErrorCode::AsyncRequired),
            ),
            Refusal::Busy(_) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Some(ErrorCode::ConcurrencyError),
            ),
            Refusal::RequiresApp => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Some(ErrorCode::RequiresApp),
            ),
            Refusal::MaintenanceConflict => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Some(ErrorCode::MaintenanceInfoConflict),
            ),
        };
        let sentence = refusal.to_string();
        let body = match code {
            Some(code) => ErrorBody::coded(code, sentence),
            None => ErrorBody::described(sentence),
        };
        Self::new(status, &body)
    }
}

impl From<RequestError> for ErrorReply {
    fn from(problem: RequestError) -> Self {
        match problem {
            RequestError::Refused(refusal) => refusal.into(),
            RequestError::Failed { verb, detail } => failed(verb, detail),
            RequestError::Overdue { verb } => {
                let sentence = match verb {
                    Verb::Provision | Verb::Bind => {
                        "It did not end in time; it was cancelled and is being cleaned up. Use accepts_incomplete=true."
                    }
                    Verb::Update => {
                        "It did not end in time and was cancelled; nothing of it is applied. Use accepts_incomplete=true."
                    }
                    Verb::Deprovision | Verb::Unbind => {
                        "It did not end in time and goes on; repeat the request to learn its result."
                    }
                };
                Self::described(StatusCode::INTERNAL_SERVER_ERROR, sentence)
            }
            RequestError::Unavailable(cause) => {
                tracing::error!(error = %chain(cause.as_ref()), "a request could not be served");
                let sentence =
                    "The service broker cannot reach its records now; repeat the request later.";
                Self::described(StatusCode::SERVICE_UNAVAILABLE, sentence).retry_after(5)
            }
        }
    }
}

/// Error of a route of an extension.
impl From<Error> for ErrorReply {
    fn from(error: Error) -> Self {
        match &error.kind {
            ErrorKind::Refused(refusal) => refusal.clone().into(),
            ErrorKind::Transient => {
                tracing::warn!(?error, "a request could not be served for now");
                let body = ErrorBody::described(error.message);
                Self::new(StatusCode::SERVICE_UNAVAILABLE, &body).retry_after(5)
            }
            ErrorKind::Failed | ErrorKind::Lost => {
                tracing::error!(?error, "a request could not be served");
                let body = ErrorBody::described(error.message);
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, &body)
            }
        }
    }
}

/// B-033, B-034: only an update or a deprovision has the fields besides the description.
fn failed(verb: Verb, detail: Detail) -> ErrorReply {
    let mut body = ErrorBody::described(detail.description.unwrap_or_else(|| INTERNAL.to_owned()));
    body.instance_usable = detail.instance_usable;
    body.update_repeatable = detail.update_repeatable;
    ErrorReply::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        &body.scoped_to(Some(verb)),
    )
}

/// An error followed by its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

pub(super) fn panicked() -> HttpReply {
    tracing::error!("a request handler panicked; the message is on standard error");
    let body = ErrorBody::described(INTERNAL);
    ErrorReply::new(StatusCode::INTERNAL_SERVER_ERROR, &body).into()
}

impl From<ErrorReply> for HttpReply {
    fn from(answer: ErrorReply) -> Self {
        answer.0.into()
    }
}
