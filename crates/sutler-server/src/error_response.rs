//! Error responses: a status, a JSON body with a `description`, and headers.
//!
//! Chooses the statuses of refusals by the server itself (authentication, limits, bodies). Those of an API
//! are chosen by the crate that serves it. The descriptions name the server by a noun that the caller
//! passes, such as "service broker".

use crate::auth::{Rejection, scope_challenge};
use crate::body::BodyError;
use crate::chunked_body::ChunkedBody;
use crate::server::{CallerLimitExceeded, LongRequestError};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::time::Duration;

/// A response that is not a success.
#[derive(Debug)]
pub struct ErrorResponse(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    status: StatusCode,
    description: String,
    body: Vec<u8>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What an error response says, for an API whose error bodies have another form.
#[derive(Debug)]
pub struct ErrorResponseParts {
    /// Status.
    pub status: StatusCode,
    /// The sentence for the caller; empty if the response has a body that its creator gave.
    pub description: String,
    /// Headers, without the media type.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Serialize)]
struct DescriptionBody<'a> {
    description: &'a str,
}

impl ErrorResponse {
    /// A response with this body.
    ///
    /// # Panics
    /// The body does not serialise.
    #[must_use]
    pub fn new(status: StatusCode, body: &impl Serialize) -> Self {
        Self(Box::new(ErrorParts {
            status,
            description: String::new(),
            body: serde_json::to_vec(body).expect("our own bodies serialise"),
            headers: Vec::new(),
        }))
    }

    /// A response whose body is `{"description": …}`.
    #[must_use]
    pub fn described(status: StatusCode, description: &str) -> Self {
        let mut response = Self::new(status, &DescriptionBody { description });
        description.clone_into(&mut response.0.description);
        response
    }

    /// Status, description and headers.
    #[must_use]
    pub fn into_parts(self) -> ErrorResponseParts {
        let ErrorParts {
            status,
            description,
            headers,
            body: _,
        } = *self.0;
        ErrorResponseParts {
            status,
            description,
            headers,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Adds a `Retry-After`, rounded up to whole seconds, so that a repetition then is not refused again.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }

    fn with_challenges(mut self, challenges: impl IntoIterator<Item = HeaderValue>) -> Self {
        let challenges = challenges.into_iter().map(|it| (WWW_AUTHENTICATE, it));
        self.0.headers.extend(challenges);
        self
    }

    /// 405, with the methods that the path accepts.
    #[must_use]
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        let sentence = format!("This path takes {allowed}.");
        Self::described(StatusCode::METHOD_NOT_ALLOWED, &sentence)
            .with_header(ALLOW, HeaderValue::from_static(allowed))
    }

    /// 414: the path and query have more bytes than this limit.
    #[must_use]
    pub fn uri_too_long(limit: usize) -> Self {
        let sentence = format!("The path and query are longer than {limit} bytes; send less.");
        Self::described(StatusCode::URI_TOO_LONG, &sentence)
    }

    /// 431: there are more headers than this limit.
    #[must_use]
    pub fn too_many_headers(limit: usize) -> Self {
        let sentence = format!("There are more than {limit} headers; send fewer.");
        Self::described(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &sentence)
    }

    /// 503: all slots are taken. `server`: the noun that names the server.
    #[must_use]
    pub fn overloaded(server: &str) -> Self {
        let sentence = format!("The {server} has too much to do now; repeat the request later.");
        Self::described(StatusCode::SERVICE_UNAVAILABLE, &sentence)
            .retry_after(Duration::from_secs(1))
    }

    /// 429: a caller exceeds its limits.
    #[must_use]
    pub fn caller_limited(much: CallerLimitExceeded) -> Self {
        let sentence = match much {
            CallerLimitExceeded::Concurrency => {
                "You have too many requests under way; wait for answers, then repeat the request."
            }
            CallerLimitExceeded::Rate(_) => {
                "You send too many requests; repeat this one a little later."
            }
        };
        // Whatever the rate, one request is allowed a second later.
        Self::described(StatusCode::TOO_MANY_REQUESTS, sentence).retry_after(Duration::from_secs(1))
    }

    /// A long request that is refused. `server`: the noun that names the server.
    #[must_use]
    pub fn long_request(error: LongRequestError, server: &str) -> Self {
        match error {
            LongRequestError::Draining => {
                let sentence = format!("This {server} is stopping; repeat the request elsewhere.");
                Self::described(StatusCode::SERVICE_UNAVAILABLE, &sentence)
                    .retry_after(Duration::from_secs(1))
            }
            LongRequestError::QueueFull(_) => Self::overloaded(server),
            LongRequestError::Caller(much) => Self::caller_limited(much),
        }
    }

    /// A body that could not be read. `server`: the noun that names the server.
    #[must_use]
    pub fn body(error: BodyError, server: &str) -> Self {
        match error {
            BodyError::TooLarge(limit) => {
                let sentence = format!("The body is larger than {limit} bytes.");
                Self::described(StatusCode::PAYLOAD_TOO_LARGE, &sentence)
            }
            // A 408 means that the request was not received, so nothing needs to be cleaned up.
            BodyError::TooSlow => {
                let sentence = "The body did not arrive in time; repeat the request.";
                Self::described(StatusCode::REQUEST_TIMEOUT, sentence)
            }
            BodyError::Broken => {
                let sentence = "The body could not be read to its end; repeat the request.";
                Self::described(StatusCode::BAD_REQUEST, sentence)
            }
            BodyError::NoRoom(_) => Self::overloaded(server),
        }
    }

    /// A request that is not authenticated. `server`: the noun that names the server.
    #[must_use]
    pub fn rejected(rejection: Rejection, server: &str) -> Self {
        match rejection {
            Rejection::Unproven(challenges, token) => {
                let sentence = challenges.sentence(server);
                Self::described(StatusCode::UNAUTHORIZED, &sentence)
                    .with_challenges(challenges.headers(token, server))
            }
            Rejection::LacksScope(scopes) => {
                let sentence = format!("The token must grant: {scopes}. Ask its issuer for that.");
                Self::described(StatusCode::FORBIDDEN, &sentence)
                    .with_challenges(scope_challenge(&scopes, server))
            }
            Rejection::IssuerUnavailable => {
                let sentence = "The issuer of the token cannot be asked for its keys now; repeat the request later.";
                Self::described(StatusCode::SERVICE_UNAVAILABLE, sentence)
                    .retry_after(Duration::from_secs(5))
            }
            Rejection::TooManyGuesses { again } => {
                let sentence = "Too many wrong passwords were sent for this user; wait as long as Retry-After says, then send the right one.";
                Self::described(StatusCode::TOO_MANY_REQUESTS, sentence).retry_after(again)
            }
            Rejection::Busy => {
                let sentence = "Too many passwords wait to be checked; repeat the request later.";
                Self::described(StatusCode::SERVICE_UNAVAILABLE, sentence)
                    .retry_after(Duration::from_secs(1))
            }
        }
    }
}

impl From<ErrorResponse> for Response<ChunkedBody> {
    fn from(error: ErrorResponse) -> Self {
        let mut reply = json_bytes(error.0.status, error.0.body);
        for (name, value) in error.0.headers {
            reply.headers_mut().append(name, value);
        }
        reply
    }
}

/// A response with a JSON body.
///
/// # Panics
/// The body does not serialise.
pub fn json_response<T: Serialize>(status: StatusCode, body: &T) -> Response<ChunkedBody> {
    let bytes = serde_json::to_vec(body).expect("our own bodies serialise");
    json_bytes(status, bytes)
}

fn json_bytes(status: StatusCode, bytes: Vec<u8>) -> Response<ChunkedBody> {
    let mut reply = Response::new(ChunkedBody::of(bytes));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
