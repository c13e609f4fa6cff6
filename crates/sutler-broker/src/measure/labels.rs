//! The values that labels can have: closed sets, so that nothing from outside makes a new series.

use crate::http::Endpoint;
use crate::lifecycle::Verb;
use sutler_journal::Outcome;

/// Where a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// `GET /v2/catalog`
    Catalog,
    /// `PUT` of an instance
    Provision,
    /// `GET` of an instance
    FetchInstance,
    /// `PATCH` of an instance
    Update,
    /// `DELETE` of an instance
    Deprovision,
    /// The last operation of an instance
    PollInstance,
    /// `PUT` of a binding
    Bind,
    /// `GET` of a binding
    FetchBinding,
    /// `DELETE` of a binding
    Unbind,
    /// The last operation of a binding
    PollBinding,
    /// Paths beside those of the specification
    More,
    /// Anything of the administration
    Admin,
    /// `/healthz` and `/readyz`
    Health,
    /// `/metrics`
    Metrics,
    /// Nowhere: no such path, or none for this method
    Nowhere,
}

impl Route {
    pub(crate) const COUNT: usize = Self::Nowhere as usize + 1;

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Provision => "provision",
            Self::FetchInstance => "fetch_instance",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::PollInstance => "poll_instance",
            Self::Bind => "bind",
            Self::FetchBinding => "fetch_binding",
            Self::Unbind => "unbind",
            Self::PollBinding => "poll_binding",
            Self::More => "more",
            Self::Admin => "admin",
            Self::Health => "health",
            Self::Metrics => "metrics",
            Self::Nowhere => "nowhere",
        }
    }

    /// The path with its ids left out, for logs.
    pub fn template(self) -> &'static str {
        match self {
            Self::Catalog => "/v2/catalog",
            Self::Provision | Self::FetchInstance | Self::Update | Self::Deprovision => {
                "/v2/service_instances/{instance_id}"
            }
            Self::PollInstance => "/v2/service_instances/{instance_id}/last_operation",
            Self::Bind | Self::FetchBinding | Self::Unbind => {
                "/v2/service_instances/{instance_id}/service_bindings/{binding_id}"
            }
            Self::PollBinding => {
                "/v2/service_instances/{instance_id}/service_bindings/{binding_id}/last_operation"
            }
            Self::More => "/v2/{…}",
            Self::Admin => "/admin/{…}",
            Self::Health => "/healthz, /readyz",
            Self::Metrics => "/metrics",
            Self::Nowhere => "{…}",
        }
    }
}

impl From<Endpoint> for Route {
    fn from(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::Catalog => Self::Catalog,
            Endpoint::Provision => Self::Provision,
            Endpoint::FetchInstance => Self::FetchInstance,
            Endpoint::Update => Self::Update,
            Endpoint::Deprovision => Self::Deprovision,
            Endpoint::PollInstance => Self::PollInstance,
            Endpoint::Bind => Self::Bind,
            Endpoint::FetchBinding => Self::FetchBinding,
            Endpoint::Unbind => Self::Unbind,
            Endpoint::PollBinding => Self::PollBinding,
        }
    }
}

/// The statuses with a series of their own, and the word of each. Whatever a replaced endpoint
/// answers beyond these is `other`; the last is for callers that went before the answer.
pub(crate) const STATUSES: [(u16, &str); 25] = [
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (412, "412"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (431, "431"),
    (500, "500"),
    (501, "501"),
    (503, "503"),
    (504, "504"),
    (0, "other"),
    (0, "disconnected"),
];

pub(crate) const DISCONNECTED: usize = STATUSES.len() - 1;

/// The place of a status in [`STATUSES`].
pub(crate) fn status_index(status: u16) -> usize {
    STATUSES
        .iter()
        .position(|(known, _)| *known == status)
        .unwrap_or(DISCONNECTED - 1)
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationLabel {
    /// Makes an instance.
    Provision,
    /// Changes one.
    Update,
    /// Removes one.
    Deprovision,
    /// Makes a binding.
    Bind,
    /// Removes one.
    Unbind,
}

impl OperationLabel {
    pub(crate) const COUNT: usize = Self::Unbind as usize + 1;

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
        }
    }
}

impl From<Verb> for OperationLabel {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Provision => Self::Provision,
            Verb::Update => Self::Update,
            Verb::Deprovision => Self::Deprovision,
            Verb::Bind => Self::Bind,
            Verb::Unbind => Self::Unbind,
        }
    }
}

pub(crate) fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
}

/// Why a caller was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// There was no `Authorization`, and no certificate.
    Missing,
    /// It could not be read.
    Malformed,
    /// An unknown user, or another password.
    Credentials,
    /// A token that is not genuine, not for here, or ran out.
    Token,
    /// A genuine token without a scope that is needed.
    Scope,
    /// The client certificate is not accepted.
    Certificate,
    /// Too many failures from there: not even looked at.
    Throttled,
    /// Keys to check it with cannot be had now.
    Unavailable,
}

impl AuthFailure {
    pub(crate) const COUNT: usize = Self::Unavailable as usize + 1;

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Credentials => "credentials",
            Self::Token => "token",
            Self::Scope => "scope",
            Self::Certificate => "certificate",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Why a request or a connection was turned away before it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// This caller asks too often.
    Rate,
    /// This caller has too many requests at a time.
    CallerConcurrency,
    /// All callers together have.
    Concurrency,
    /// Too many connections.
    Connections,
    /// The queue or the store is too far behind.
    Overload,
    /// The broker stops.
    Draining,
    /// The body is too large.
    BodySize,
    /// The body comes too slowly.
    BodySlow,
    /// The headers are too large.
    HeaderSize,
    /// The headers come too slowly.
    HeaderSlow,
    /// The TLS handshake failed or took too long.
    Handshake,
}

impl Limited {
    pub(crate) const COUNT: usize = Self::Handshake as usize + 1;

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::CallerConcurrency => "caller_concurrency",
            Self::Concurrency => "concurrency",
            Self::Connections => "connections",
            Self::Overload => "overload",
            Self::Draining => "draining",
            Self::BodySize => "body_size",
            Self::BodySlow => "body_slow",
            Self::HeaderSize => "header_size",
            Self::HeaderSlow => "header_slow",
            Self::Handshake => "handshake",
        }
    }
}

/// What is replaced while the broker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The configuration file as a whole.
    Configuration,
    /// The catalog.
    Catalog,
    /// Who may come in.
    Users,
    /// Certificate and key.
    Tls,
    /// What is logged.
    LogLevel,
}

impl Reloaded {
    pub(crate) const COUNT: usize = Self::LogLevel as usize + 1;

    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Catalog => "catalog",
            Self::Users => "users",
            Self::Tls => "tls",
            Self::LogLevel => "log_level",
        }
    }
}

/// Whether something worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// It did.
    Ok,
    /// It did not.
    Failed,
}

impl Success {
    /// As a label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
        }
    }
}

impl<T, E> From<&Result<T, E>> for Success {
    fn from(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(_) => Self::Failed,
        }
    }
}
