//! Values of the metric labels: closed sets, so that no input from outside makes a new series.

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
