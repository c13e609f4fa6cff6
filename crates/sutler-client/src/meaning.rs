//! What an answer means for the platform that asked: what it must do next.
//!
//! Types only; `classify.rs` chooses. None of them can hold what does not go together: only what
//! failed has an aftermath, only what was rejected says whether it may be repeated.

use crate::reply::{AcceptedOperation, NoReplyError, OtherStatus, ReplyBodyError};
use crate::retry_after::RetryAfter;
use sutler_osb::{ErrorBody, ErrorCode, LastOperationResponse, OperationKind};

/// Longest sentence of a broker that is kept, in characters.
const SENTENCE_CHARS_MAX: usize = 4_000;

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<B> {
    /// It is done.
    Succeeded(Success<B>),
    /// It is under way: poll, or go on polling.
    Polling {
        /// What was learned.
        update: PollUpdate,
        /// When the broker wants to be asked.
        after: Option<RetryAfter>,
    },
    /// The broker will not do it, and nothing has changed.
    Rejected {
        /// On what ground.
        reason: RejectionReason,
        /// What the broker said.
        message: BrokerMessage,
        /// Whether the same update may be sent again (P-097).
        update_repeatable: bool,
    },
    /// It was not done this time: send the same again later.
    Retry {
        /// What is in the way.
        cause: RetryCause,
        /// When the broker wants to be asked.
        after: Option<RetryAfter>,
        /// What the broker said.
        message: BrokerMessage,
    },
    /// Nobody knows whether it was done.
    Unknown {
        /// How to find out.
        question: NextQuestion,
        /// What is known.
        message: BrokerMessage,
    },
    /// It is over, without success and not simply undone.
    Failed {
        /// What is left behind.
        cleanup: CleanupDuty,
        /// What the broker said.
        message: BrokerMessage,
    },
}

/// How it was done.
#[derive(Clone, Debug, PartialEq)]
pub enum Success<B> {
    /// At once, with this answer.
    Now(B),
    /// By and by, as a poll said.
    Polled,
    /// A bind is done, as a poll said: fetch the binding (P-059).
    FetchBinding,
    /// What was to be deleted is there no more.
    Gone,
}

/// What is learned of an operation that goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum PollUpdate {
    /// It has begun: what to poll with.
    Accepted(AcceptedOperation),
    /// It goes on, and this is how far it is.
    InProgress(Option<String>),
    /// The poll told nothing of it (P-056).
    Nothing(BrokerMessage),
}

/// On what ground something is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// The request, or whoever sent it, is not to the broker's liking.
    Refused,
    /// There is something else under this id.
    Conflict,
    /// It must be asynchronous, and cannot be.
    AsyncRequired,
    /// `maintenance_info` is not the catalog's.
    MaintenanceInfoConflict,
    /// A bind needs an application (P-105).
    RequiresApp,
    /// The broker points elsewhere, and nobody goes there (P-154).
    Redirected,
    /// The broker tried, and failed without applying anything.
    NotApplied,
}

/// Why the same is sent again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// Another operation is in the way (P-060).
    Busy,
    /// The broker has no time now: 408, 429, or 503 that says when.
    Overloaded,
    /// The broker failed.
    BrokerError,
    /// The broker has seen nothing of it.
    NotSent,
    /// The broker does not believe who asks: the operator's fault, not the user's.
    Unauthorized,
    /// It must be asynchronous: send it with `accepts_incomplete=true` (P-050).
    AcceptIncomplete,
    /// A delete failed, and left something that cannot be used.
    HalfDeleted,
}

/// How to find out what became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextQuestion {
    /// Send the same again, byte for byte: whoever did it says so.
    SendAgain,
    /// Something is there: poll `last_operation` or fetch it, to see whether it is ours.
    LookFirst,
}

/// What a failure leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupDuty {
    /// Something may have been made: delete it until the broker says it is gone (2.14).
    Mitigate,
    /// Something may have been made, and need not be deleted now: but who forgets it must delete
    /// it first.
    DeleteBeforeForgetting,
    /// The update may have been applied or not: fetch the instance, or call it unknown until the
    /// next update is acknowledged.
    Uncertain,
    /// What was to be deleted is still there.
    StillThere,
}

/// What the operator of the platform should hear of, or the platform itself should learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerEvent {
    /// Credentials are wrong: stop sending until they are replaced.
    Unauthorized,
    /// The broker takes one operation at a time: serialise what goes to one instance (P-061).
    Serialize,
    /// The catalog has changed: read it again (P-047).
    RelistCatalog,
    /// The broker asks for `accepts_incomplete=true` where it has it, or where it is of no use.
    AsyncRequired,
}

/// What the broker said, bounded and without secrets of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerMessage {
    /// The status; none if there was no answer, or if it was a poll's state.
    pub status: Option<u16>,
    /// The word for programs.
    pub error: Option<ErrorCode>,
    /// The sentence for people.
    pub description: Option<String>,
    /// Whether the instance can still be used (P-096, P-123).
    pub usable: bool,
}

impl<B> Meaning<B> {
    /// What the platform should learn about the broker from it, if anything.
    pub fn event(&self) -> Option<BrokerEvent> {
        match self {
            Self::Rejected { reason, .. } => match reason {
                RejectionReason::AsyncRequired => Some(BrokerEvent::AsyncRequired),
                RejectionReason::MaintenanceInfoConflict => Some(BrokerEvent::RelistCatalog),
                RejectionReason::Refused
                | RejectionReason::Conflict
                | RejectionReason::RequiresApp
                | RejectionReason::Redirected
                | RejectionReason::NotApplied => None,
            },
            Self::Retry { cause, .. } => cause.event(),
            Self::Polling {
                update: PollUpdate::Nothing(message),
                ..
            } => (message.status == Some(401)).then_some(BrokerEvent::Unauthorized),
            Self::Succeeded(_)
            | Self::Polling { .. }
            | Self::Unknown { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Whether something may have been made that must be deleted now.
    pub fn mitigates(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                cleanup: CleanupDuty::Mitigate,
                ..
            }
        )
    }

    /// Whether the instance can still be used, as far as this answer tells.
    pub fn leaves_usable(&self) -> bool {
        match self {
            Self::Succeeded(_) => true,
            Self::Polling { update, .. } => match update {
                PollUpdate::Accepted(_) | PollUpdate::InProgress(_) => true,
                PollUpdate::Nothing(message) => message.usable,
            },
            Self::Rejected { message, .. }
            | Self::Retry { message, .. }
            | Self::Unknown { message, .. }
            | Self::Failed { message, .. } => message.usable,
        }
    }
}

impl RetryCause {
    pub(crate) fn event(self) -> Option<BrokerEvent> {
        match self {
            Self::Unauthorized => Some(BrokerEvent::Unauthorized),
            Self::Busy => Some(BrokerEvent::Serialize),
            Self::Overloaded
            | Self::BrokerError
            | Self::NotSent
            | Self::AcceptIncomplete
            | Self::HalfDeleted => None,
        }
    }
}

impl BrokerMessage {
    /// An answer that is no success; `kind` says what its flags count for (B-033, B-034).
    pub(crate) fn error(status: OtherStatus, body: ErrorBody, kind: Option<OperationKind>) -> Self {
        let body = body.scoped_to(kind);
        Self {
            status: Some(status.get()),
            usable: body.leaves_instance_usable(),
            error: body.error,
            description: body.description.map(bounded),
        }
    }

    /// A success whose body cannot be read.
    pub(crate) fn malformed(status: u16, fault: &ReplyBodyError) -> Self {
        Self {
            status: Some(status),
            ..Self::sentence(fault.to_string())
        }
    }

    /// No answer.
    pub(crate) fn no_reply(error: &NoReplyError) -> Self {
        Self::sentence(error.to_string())
    }

    /// An operation that a poll calls failed.
    pub(crate) fn failed(poll: LastOperationResponse) -> Self {
        Self {
            usable: poll.instance_usable.unwrap_or(true),
            description: poll.description.map(bounded),
            ..Self::sentence(String::new())
        }
    }

    /// A sentence of our own.
    pub(crate) fn sentence(text: String) -> Self {
        Self {
            status: None,
            error: None,
            description: (!text.is_empty()).then(|| bounded(text)),
            usable: true,
        }
    }
}

/// A text from outside, short enough to be kept.
pub(crate) fn bounded(text: String) -> String {
    match text.char_indices().nth(SENTENCE_CHARS_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}
