//! Values of the metric labels: closed sets, so that no external input creates a new series.

/// Statuses with a series of their own, and the label of each. Others are counted as `other`; the last entry is for
/// callers that disconnected before the response.
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

/// Index of a status in [`STATUSES`].
pub(crate) fn status_index(status: u16) -> usize {
    STATUSES
        .iter()
        .position(|(known, _)| *known == status)
        .unwrap_or(DISCONNECTED - 1)
}

/// Why a caller was not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthFailure {
    /// No `Authorization` header and no certificate.
    Missing,
    /// Malformed header.
    Malformed,
    /// Unknown user or wrong password.
    Credentials,
    /// Token that is invalid, expired, or for another audience.
    Token,
    /// Valid token without a required scope.
    Scope,
    /// Client certificate that is not accepted.
    Certificate,
    /// Too many failures of this user: not checked.
    Throttled,
    /// Keys for the check are unavailable.
    Unavailable,
}

impl AuthFailure {
    pub(crate) const COUNT: usize = Self::Unavailable as usize + 1;

    /// The label.
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

/// Limit that refused a request or a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// Rate of one caller.
    Rate,
    /// Requests of one caller at a time.
    CallerConcurrency,
    /// Requests of all callers at a time.
    Concurrency,
    /// Connections.
    Connections,
    /// Memory for bodies.
    Overload,
    /// The server drains.
    Draining,
    /// Size of the body.
    BodySize,
    /// Time of the body.
    BodySlow,
    /// Size of the headers.
    HeaderSize,
    /// Time of the headers.
    HeaderSlow,
    /// TLS handshake that failed or took too long.
    Handshake,
}

impl LimitKind {
    pub(crate) const COUNT: usize = Self::Handshake as usize + 1;

    /// The label.
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

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// Success.
    Ok,
    /// Failure.
    Failed,
}

impl Success {
    /// The label.
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
