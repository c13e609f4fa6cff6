//! The typed reply to one request.
//!
//! Types only: status and body cannot contradict each other here. `decode.rs` decodes bytes into replies;
//! `classify.rs` interprets them for the platform.

use crate::retry_after::RetryAfter;
use std::time::Duration;
use sutler_osb::{
    AsyncBindResponse, DeleteResponse, ErrorBody, InstanceMetadata, LastOperationResponse,
    OperationToken, ProvisionResponse, UpdateResponse,
};

/// The reply to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<B> {
    /// A complete answer.
    Answer {
        /// Status and body.
        answer: Answer<B>,
        /// `Retry-After` of the broker, if present.
        retry_after: Option<RetryAfter>,
    },
    /// No complete answer.
    NoAnswer(NoReplyError),
}

/// Status and body of a complete answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<B> {
    /// 200, or 201 where that is defined, with a well-formed body.
    Done(SuccessStatus, B),
    /// 202 to a request that may be asynchronous, with a well-formed body.
    Accepted(AcceptedOperation),
    /// One of these statuses, with an invalid body.
    Malformed(ExpectedStatus, ReplyBodyError),
    /// Any other status.
    Other(OtherStatus, ErrorBody),
}

/// Status of a completed success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessStatus {
    /// 200.
    Ok,
    /// 201; only of a provision or a bind.
    Created,
}

/// A status that requires a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedStatus {
    /// 200.
    Ok,
    /// 201; only of a provision or a bind.
    Created,
    /// 202; never of a read or a poll.
    Accepted,
}

impl ExpectedStatus {
    /// The number.
    pub fn status(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::Created => 201,
            Self::Accepted => 202,
        }
    }
}

/// A body that is not valid; the text does not contain its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplyBodyError(pub(crate) String);

/// A status without a success body: any but those of [`ExpectedStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherStatus(u16);

/// Statuses by their first digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusClass {
    /// A success status that is not defined for the verb.
    Success,
    /// A redirect.
    Redirection,
    /// The request is refused.
    Refusal,
    /// The broker failed, or the status is not defined by HTTP.
    Failure,
}

impl OtherStatus {
    /// A status that is not one of the verb's own.
    pub(crate) fn new(status: u16) -> Self {
        Self(status)
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// Class by its first digit; a status outside of HTTP's range counts as a failure (RFC 9110, 15).
    pub(crate) fn class(self) -> StatusClass {
        match self.0 {
            200..=299 => StatusClass::Success,
            300..=399 => StatusClass::Redirection,
            400..=499 => StatusClass::Refusal,
            _ => StatusClass::Failure,
        }
    }
}

/// Body of a 202, for every kind of request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedOperation {
    /// Operation token for polls.
    pub operation: Option<OperationToken>,
    /// Of an instance: where the user manages it.
    pub dashboard_url: Option<String>,
    /// Of an instance: labels and attributes.
    pub metadata: Option<InstanceMetadata>,
}

impl From<ProvisionResponse> for AcceptedOperation {
    fn from(body: ProvisionResponse) -> Self {
        Self {
            operation: body.operation,
            dashboard_url: body.dashboard_url,
            metadata: body.metadata,
        }
    }
}

impl From<UpdateResponse> for AcceptedOperation {
    fn from(body: UpdateResponse) -> Self {
        Self {
            operation: body.operation,
            dashboard_url: body.dashboard_url,
            metadata: body.metadata,
        }
    }
}

impl From<AsyncBindResponse> for AcceptedOperation {
    fn from(body: AsyncBindResponse) -> Self {
        Self {
            operation: body.operation,
            ..Self::default()
        }
    }
}

impl From<DeleteResponse> for AcceptedOperation {
    fn from(body: DeleteResponse) -> Self {
        Self {
            operation: body.operation,
            ..Self::default()
        }
    }
}

/// A missing answer, classified by the possible effect of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReplyError {
    /// The broker has not received the request.
    #[error("nothing was sent: {0}")]
    NotSent(String),
    /// The broker was not even asked: there was no place for the request in this process.
    #[error("nothing was sent yet: {0}")]
    NoPlace(String),
    /// Sent, but no complete answer in time.
    #[error("no whole answer came within {0:?}")]
    TimedOut(Duration),
    /// Sent, but the answer was truncated, not HTTP, or too long.
    #[error("no answer that could be read: {0}")]
    Broken(String),
}

/// Input of `classify`: the reply to a request or a poll, or a timeout of polling.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationEvent<B> {
    /// Reply to the request itself.
    Reply(Reply<B>),
    /// Reply to a poll after a 202.
    Poll(Reply<LastOperationResponse>),
    /// The time limit of polling is reached (P-058).
    Overdue,
}

impl<B> Answer<B> {
    /// The status, unless it is one of a success.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Other(status, _) => Some(status.get()),
            Self::Done(..) | Self::Accepted(_) | Self::Malformed(..) => None,
        }
    }
}
