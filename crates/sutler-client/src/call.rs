//! Options of one request of the [`Client`](crate::Client) besides its body: both identities, and whether a 202 is
//! accepted. `request_builder.rs` turns them into headers and a query.

use crate::request_builder::RequestBuilder;
use sutler_osb::{OriginatingIdentity, RequestIdentity};
use uuid::Uuid;

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

    /// Builds requests with these identities; each call generates a request identity if it has none.
    pub(crate) fn builder(&self) -> RequestBuilder {
        let builder = match &self.request_identity {
            Some(name) => RequestBuilder::new(name),
            None => RequestBuilder::from_uuid(Uuid::new_v4()),
        };
        let builder = builder.incomplete(self.incomplete);
        match &self.originating_identity {
            Some(user) => builder.on_behalf_of(user.clone()),
            None => builder,
        }
    }
}
