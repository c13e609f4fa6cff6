//! Interpretation of an answer: the next step of the platform.
//!
//! Types only; `classify.rs` chooses among them. Invalid combinations cannot be expressed: only a failure
//! has a cleanup duty, only a rejection states whether an update may be repeated.

use crate::reply::{AcceptedOperation, NoReplyError, OtherStatus, ReplyBodyError};
use crate::retry_after::RetryAfter;
use sutler_osb::{ErrorBody, ErrorCode, LastOperationResponse, OperationKind};

/// Longest sentence of a broker that is kept, in characters.
const SENTENCE_CHARS_MAX: usize = 4_000;

/// Next step of the platform.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<B> {
    /// It is done.
    Succeeded(Success<B>),
    /// In progress: poll, or continue polling.
    Polling {
        /// Progress so far.
        update: PollUpdate,
        /// `Retry-After` of the broker, if present.
        after: Option<RetryAfter>,
    },
    /// The broker refuses, and nothing has changed.
    Rejected {
        /// Reason of the rejection.
        reason: RejectionReason,
        /// Message of the broker.
        message: BrokerMessage,
        /// Whether the same update may be sent again (P-097).
        update_repeatable: bool,
    },
    /// Not done this time: send the same request again later.
    Retry {
        /// Cause of the retry.
        cause: RetryCause,
        /// `Retry-After` of the broker, if present.
        after: Option<RetryAfter>,
        /// Message of the broker.
        message: BrokerMessage,
    },
    /// The outcome is unknown.
    Unknown {
        /// How to find out the outcome.
        question: NextQuestion,
        /// Message, if there is one.
        message: BrokerMessage,
    },
    /// It failed, and may have left something behind.
    Failed {
        /// Cleanup that the platform must do.
        cleanup: CleanupDuty,
        /// Message of the broker.
        message: BrokerMessage,
    },
}

/// How it was done.
#[derive(Clone, Debug, PartialEq)]
pub enum Success<B> {
    /// At once, with this answer.
    Now(B),
    /// Asynchronously; reported by a poll.
    Polled,
    /// A bind is done, reported by a poll: fetch the binding (P-059).
    FetchBinding,
    /// The resource to delete no longer exists.
    Gone,
}

/// Progress of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum PollUpdate {
    /// It has begun; the fields to poll with.
    Accepted(AcceptedOperation),
    /// In progress, with the description of the poll.
    InProgress(Option<String>),
    /// The poll contained no progress (P-056).
    Nothing(BrokerMessage),
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionReason {
    /// The broker refuses the request or its sender.
    Refused,
    /// Another resource has this id.
    Conflict,
    /// It must be asynchronous, which is not possible.
    AsyncRequired,
    /// `maintenance_info` is not the catalog's.
    MaintenanceInfoConflict,
    /// A bind needs an application (P-105).
    RequiresApp,
    /// Redirection, which is not followed (P-154).
    Redirected,
    /// The broker tried, and failed without applying anything.
    NotApplied,
}

/// Reason to send the same request again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// Another operation is in progress (P-060).
    Busy,
    /// The broker is overloaded: 408, 429, or 503 with `Retry-After`.
    Overloaded,
    /// The broker failed.
    BrokerError,
    /// The broker has not received it.
    NotSent,
    /// The broker refuses the credentials: an error of the operator, not of the user.
    Unauthorized,
    /// It must be asynchronous: send it with `accepts_incomplete=true` (P-050).
    AcceptIncomplete,
    /// A delete failed and left an unusable resource.
    HalfDeleted,
}

/// How to find out the outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextQuestion {
    /// Send the same request again, byte for byte: the answer of the broker shows whether it was done.
    SendAgain,
    /// A resource exists: poll `last_operation` or fetch it, to find out whether this request created it.
    LookFirst,
}

/// Cleanup that a failure requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanupDuty {
    /// A resource may have been created: delete it until the broker confirms that it is gone (2.14).
    Mitigate,
    /// A resource may have been created. It need not be deleted now, but before its record is removed.
    DeleteBeforeForgetting,
    /// The update may have been applied or not: fetch the instance, or treat its state as unknown until
    /// the next update is acknowledged.
    Uncertain,
    /// The resource to delete still exists.
    StillThere,
}

/// Event about the broker for the operator or for the platform itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerEvent {
    /// Credentials are wrong: stop sending until they are replaced.
    Unauthorized,
    /// The broker takes one operation at a time: serialise the requests about one instance (P-061).
    Serialize,
    /// The catalog has changed: read it again (P-047).
    RelistCatalog,
    /// The broker requires `accepts_incomplete=true` where it was sent, or where it has no effect.
    AsyncRequired,
}

/// Message of the broker, bounded and without secrets of the platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerMessage {
    /// The status; `None` if there was no answer, or if the message is from a poll's state.
    pub status: Option<u16>,
    /// The error code for programs.
    pub error: Option<ErrorCode>,
    /// The description for users.
    pub description: Option<String>,
    /// Whether the instance can still be used (P-096, P-123).
    pub usable: bool,
}

impl<B> Meaning<B> {
    /// The event about the broker that follows from it, if any.
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

    /// Whether a resource may have been created that must be deleted now.
    pub fn mitigates(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                cleanup: CleanupDuty::Mitigate,
                ..
            }
        )
    }

    /// Whether the instance can still be used, according to this answer.
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
    /// An error answer; `kind` determines which of its flags apply (B-033, B-034).
    pub(crate) fn error(status: OtherStatus, body: ErrorBody, kind: Option<OperationKind>) -> Self {
        let body = body.scoped_to(kind);
        Self {
            status: Some(status.get()),
            usable: body.leaves_instance_usable(),
            error: body.error.map(shown_code),
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

    /// An operation that a poll reports as failed.
    pub(crate) fn failed(poll: LastOperationResponse) -> Self {
        Self {
            usable: poll.instance_usable.unwrap_or(true),
            description: poll.description.map(bounded),
            ..Self::sentence(String::new())
        }
    }

    /// A message of this client.
    pub(crate) fn sentence(text: String) -> Self {
        Self {
            status: None,
            error: None,
            description: (!text.is_empty()).then(|| bounded(text)),
            usable: true,
        }
    }
}

/// A code of the broker's own as its other texts.
fn shown_code(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::Other(word) => ErrorCode::Other(bounded(word)),
        ErrorCode::AsyncRequired
        | ErrorCode::ConcurrencyError
        | ErrorCode::RequiresApp
        | ErrorCode::MaintenanceInfoConflict => code,
    }
}

/// Shortens a text of the broker, and replaces what is no text in it: characters that move the cursor of a terminal or change
/// the order of others.
pub(crate) fn bounded(text: String) -> String {
    let shown = |it: char| if is_shown(it) { it } else { ' ' };
    text.chars().take(SENTENCE_CHARS_MAX).map(shown).collect()
}

fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        // Marks and overrides of the direction of text.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        other => !other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::{SENTENCE_CHARS_MAX, bounded};

    #[test]
    fn texts_are_short_and_without_characters_that_do_something() {
        for (text, expected) in [
            ("<b>ä\n\t</b>", "<b>ä\n\t</b>"),
            ("a\u{1b}[2Jb\u{7}\r\u{9b}c", "a [2Jb   c"),
            ("a\u{202e}b\u{2066}", "a b "),
        ] {
            assert_eq!(bounded(text.to_owned()), expected);
        }
        let long = bounded("ä".repeat(2 * SENTENCE_CHARS_MAX));
        assert_eq!(long.chars().count(), SENTENCE_CHARS_MAX);
    }
}
