//! Refusals and problems become statuses here, and nowhere else.
//!
//! A 5xx never carries the inner text: the caller reads a sentence, the operator's log has the cause.

use super::Reply;
use crate::auth::{Rejection, scope_challenge};
use crate::content::Content;
use crate::desk::Problem;
use crate::error::{Error, Kind};
use crate::lifecycle::Verb;
use crate::records::Detail;
use crate::refusal::Refusal;
use crate::server::{Full as Crowded, TooMuch};
use crate::settings::MissingVersion;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::time::Duration;
use sutler_osb::{ApiVersion, ErrorBody, ErrorCode};

/// What callers read when something is wrong that is not theirs to mend.
const INTERNAL: &str = "The service broker could not do this. Its operator can see why.";

/// Any answer that is not a success.
pub(super) struct Answer(Box<Parts>);

struct Parts {
    status: StatusCode,
    body: ErrorBody,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    fn new(status: StatusCode, body: ErrorBody) -> Self {
        Self(Box::new(Parts {
            status,
            body,
            headers: Vec::new(),
        }))
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    fn challenging(mut self, challenges: impl IntoIterator<Item = HeaderValue>) -> Self {
        let challenges = challenges.into_iter().map(|it| (WWW_AUTHENTICATE, it));
        self.0.headers.extend(challenges);
        self
    }

    /// Rounded up: whoever comes back then is not sent away again.
    fn again_after(mut self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let value = HeaderValue::from(seconds.max(1));
        self.0.headers.push((RETRY_AFTER, value));
        self
    }

    pub(super) fn invalid(sentence: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorBody::described(sentence))
    }

    pub(super) fn no_such_path() -> Self {
        let sentence = "There is nothing at this path; the Open Service Broker API begins at /v2/.";
        Self::new(StatusCode::NOT_FOUND, ErrorBody::described(sentence))
    }

    pub(super) fn absent(sentence: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorBody::described(sentence))
    }

    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let sentence = format!("This path takes {allowed}.");
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            ErrorBody::described(sentence),
        )
        .with(ALLOW, allowed)
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
        Self::new(status, ErrorBody::described(sentence))
    }

    pub(super) fn version_not_served() -> Self {
        let sentence = format!(
            "This service broker serves version {} of the Open Service Broker API; send that, or another 2.x, as X-Broker-API-Version.",
            ApiVersion::CURRENT
        );
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            ErrorBody::described(sentence),
        )
    }

    /// A 408 says that the request was not received, so nothing needs to be cleaned up (P-143).
    pub(super) fn body_too_slow() -> Self {
        let sentence = "The body did not arrive in time; repeat the request.";
        Self::new(StatusCode::REQUEST_TIMEOUT, ErrorBody::described(sentence))
    }

    pub(super) fn uri_too_long(limit: usize) -> Self {
        let sentence = format!("The path and query are longer than {limit} bytes; send less.");
        Self::new(StatusCode::URI_TOO_LONG, ErrorBody::described(sentence))
    }

    pub(super) fn too_many_headers(limit: usize) -> Self {
        let sentence = format!("There are more than {limit} headers; send fewer.");
        Self::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ErrorBody::described(sentence),
        )
    }

    /// An operator has said so; what is there can still be read and polled.
    pub(super) fn draining() -> Self {
        let sentence = "This service broker takes no changes at present; repeat the request later.";
        let body = ErrorBody::described(sentence);
        Self::new(StatusCode::SERVICE_UNAVAILABLE, body).with(RETRY_AFTER, "30")
    }

    pub(super) fn body_too_large(limit: usize) -> Self {
        let sentence = format!("The body is larger than {limit} bytes.");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorBody::described(sentence),
        )
    }
}

impl From<Rejection> for Answer {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Unproven(ways, token) => {
                let body = ErrorBody::described(ways.sentence());
                Self::new(StatusCode::UNAUTHORIZED, body).challenging(ways.challenges(token))
            }
            Rejection::LacksScope(scopes) => {
                let sentence = format!("The token must grant: {scopes}. Ask its issuer for that.");
                let answer = Self::new(StatusCode::FORBIDDEN, ErrorBody::described(sentence));
                answer.challenging(scope_challenge(&scopes))
            }
            Rejection::IssuerUnavailable => {
                let sentence = "The issuer of the token cannot be asked for its keys now; repeat the request later.";
                let body = ErrorBody::described(sentence);
                Self::new(StatusCode::SERVICE_UNAVAILABLE, body).with(RETRY_AFTER, "5")
            }
            Rejection::TooManyGuesses { again } => {
                let sentence = "Too many wrong passwords were sent for this user; wait as long as Retry-After says, then send the right one.";
                let body = ErrorBody::described(sentence);
                Self::new(StatusCode::TOO_MANY_REQUESTS, body).again_after(again)
            }
            Rejection::Busy => {
                let sentence = "Too many passwords wait to be checked; repeat the request later.";
                let body = ErrorBody::described(sentence);
                Self::new(StatusCode::SERVICE_UNAVAILABLE, body).with(RETRY_AFTER, "1")
            }
        }
    }
}

impl From<Crowded> for Answer {
    fn from(_: Crowded) -> Self {
        let sentence = "The service broker has too much to do now; repeat the request later.";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorBody::described(sentence),
        )
        .with(RETRY_AFTER, "1")
    }
}

impl From<TooMuch> for Answer {
    fn from(much: TooMuch) -> Self {
        let sentence = match much {
            TooMuch::AtATime => {
                "You have too many requests under way; wait for answers, then repeat the request."
            }
            TooMuch::ASecond(_) => "You send too many requests; repeat this one a little later.",
        };
        // Whatever the rate, one request may come a second later.
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorBody::described(sentence),
        )
        .with(RETRY_AFTER, "1")
    }
}

impl From<Refusal> for Answer {
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
        Self::new(status, body)
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Refused(refusal) => refusal.into(),
            Problem::Failed { verb, detail } => failed(verb, detail),
            Problem::Overdue { verb } => {
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
                Self::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ErrorBody::described(sentence),
                )
            }
            Problem::Unavailable(cause) => {
                tracing::error!(error = %chain(cause.as_ref()), "a request could not be served");
                let sentence =
                    "The service broker cannot reach its records now; repeat the request later.";
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    ErrorBody::described(sentence),
                )
                .with(RETRY_AFTER, "5")
            }
        }
    }
}

/// Of a path beside those of the specification.
impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        match &error.kind {
            Kind::Refused(refusal) => refusal.clone().into(),
            Kind::Transient => {
                tracing::warn!(?error, "a request could not be served for now");
                let body = ErrorBody::described(error.message);
                Self::new(StatusCode::SERVICE_UNAVAILABLE, body).with(RETRY_AFTER, "5")
            }
            Kind::Failed | Kind::Lost => {
                tracing::error!(?error, "a request could not be served");
                let body = ErrorBody::described(error.message);
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, body)
            }
        }
    }
}

/// B-033, B-034: only an update or a deprovision may say more.
fn failed(verb: Verb, detail: Detail) -> Answer {
    let mut body = ErrorBody::described(detail.description.unwrap_or_else(|| INTERNAL.to_owned()));
    body.instance_usable = detail.instance_usable;
    body.update_repeatable = detail.update_repeatable;
    Answer::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        body.scoped_to(Some(verb)),
    )
}

/// An error with its causes, once.
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

pub(super) fn panicked() -> Reply {
    tracing::error!("a request handler panicked; the message is on standard error");
    let body = ErrorBody::described(INTERNAL);
    Answer::new(StatusCode::INTERNAL_SERVER_ERROR, body).into()
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        let mut reply = json(answer.0.status, &answer.0.body);
        for (name, value) in answer.0.headers {
            reply.headers_mut().append(name, value);
        }
        reply
    }
}

/// B-040: every body is JSON and says so.
pub(super) fn json<T: Serialize>(status: StatusCode, body: &T) -> Reply {
    let bytes = serde_json::to_vec(body).expect("our own bodies serialise");
    let mut reply = Response::new(Content::of(bytes));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
