//! Options of one request besides its body: both identities, and whether a 202 is accepted.

use crate::wire::Request;
use sutler_osb::{
    API_VERSION_HEADER, ORIGINATING_IDENTITY_HEADER, OriginatingIdentity, REQUEST_IDENTITY_HEADER,
    RequestIdentity,
};
use uuid::Uuid;

/// Version of the API that requests use (P-001).
const VERSION: &str = "2.17";

/// Identities and mode of one request.
///
/// The same call with the same body sends the same request, byte for byte, if its request identity is
/// set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The user on whose behalf the request is sent (P-010); `None` if no user caused it.
    pub originating_identity: Option<OriginatingIdentity>,
    /// Request identity (P-020); generated if it is `None`.
    pub request_identity: Option<RequestIdentity>,
    /// Whether the broker may answer 202 and continue asynchronously (P-050).
    pub incomplete: Incomplete,
}

/// Whether an asynchronous answer is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Incomplete {
    /// `accepts_incomplete=true` is sent.
    #[default]
    Accepted,
    /// It is not sent: the answer must be final.
    Unwanted,
}

impl Call {
    /// A call that no user caused.
    pub fn new() -> Self {
        Self::default()
    }

    /// On behalf of a user.
    #[must_use]
    pub fn on_behalf_of(mut self, user: OriginatingIdentity) -> Self {
        self.originating_identity = Some(user);
        self
    }

    /// With a request identity, which the broker sends back and may write to its logs.
    #[must_use]
    pub fn named(mut self, name: RequestIdentity) -> Self {
        self.request_identity = Some(name);
        self
    }

    /// Without `accepts_incomplete`.
    #[must_use]
    pub fn synchronously(mut self) -> Self {
        self.incomplete = Incomplete::Unwanted;
        self
    }

    /// Adds the headers that every request has.
    pub(crate) fn with_headers(&self, request: Request) -> Request {
        let name = match &self.request_identity {
            Some(name) => name.as_str().to_owned(),
            None => Uuid::new_v4().to_string(),
        };
        let request = request
            .header(API_VERSION_HEADER, VERSION)
            .header(REQUEST_IDENTITY_HEADER, &name)
            .header("Accept", "application/json");
        let request = match &self.originating_identity {
            Some(user) => request.header(ORIGINATING_IDENTITY_HEADER, &user.to_header()),
            None => request,
        };
        match request.body {
            Some(_) => request.header("Content-Type", "application/json"),
            None => request,
        }
    }
}
