//! Interprets answers for the platform. Pure: no clock, no memory, no I/O.
//!
//! Tested against `tests/meanings/answers.txt` and `tests/meanings/polls.txt`, which were written by hand
//! from the specification (P-130 to P-153) and from the project's own decisions, D-35 on, which take
//! precedence where the two differ. A failed create may leave an orphan, a resource that only the broker knows:
//! `CleanupDuty::Mitigate` asks for its deletion. Answers to reads are in `classify_read.rs`.

use crate::call::Incomplete;
use crate::meaning::{
    BrokerMessage, CleanupDuty, Meaning, NextQuestion, PollUpdate, RejectionReason, RetryCause,
    Success, bounded,
};
use crate::reply::{
    Answer, ExpectedStatus, NoReplyError, OperationEvent, OtherStatus, Reply, ReplyBodyError,
    StatusClass, SuccessStatus,
};
use crate::retry_after::RetryAfter;
use sutler_osb::{ErrorBody, ErrorCode, LastOperationResponse, OperationKind, OperationState};

/// Context of the request that an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyContext {
    /// Whether the same request was sent before.
    pub sending: Sending,
    /// Whether `accepts_incomplete=true` was sent.
    pub incomplete: Incomplete,
    /// Whether the offering's bindings can be fetched.
    pub bindings_retrievable: bool,
    /// For brokers that answer 404 instead of 410: a resource that is not found counts as deleted.
    pub missing_is_gone: bool,
}

/// Whether a request was sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sending {
    /// The first request, or all earlier ones are known to have changed nothing.
    #[default]
    First,
    /// The same request was sent before, with an unknown outcome.
    AfterUnknown,
}

impl Default for ReplyContext {
    fn default() -> Self {
        Self {
            sending: Sending::First,
            incomplete: Incomplete::Accepted,
            bindings_retrievable: true,
            missing_is_gone: false,
        }
    }
}

/// Family of operation kinds with the same rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Create,
    Update,
    Delete,
}

fn family(kind: OperationKind) -> Family {
    match kind {
        OperationKind::Provision | OperationKind::Bind => Family::Create,
        OperationKind::Update => Family::Update,
        OperationKind::Deprovision | OperationKind::Unbind => Family::Delete,
    }
}

/// Interprets an event of an operation for the platform.
///
/// # Guarantees
/// Total: every event has a meaning. `CleanupDuty::Mitigate` results only from a provision or a bind,
/// and a create that may have been done is never rejected.
pub fn classify<B>(
    kind: OperationKind,
    event: OperationEvent<B>,
    context: &ReplyContext,
) -> Meaning<B> {
    let meaning = match event {
        OperationEvent::Reply(Reply::Answer {
            answer,
            retry_after,
        }) => answered(kind, answer, retry_after, context),
        OperationEvent::Reply(Reply::NoAnswer(error)) => unanswered(kind, &error, context),
        OperationEvent::Poll(reply) => return polled(kind, reply, context),
        OperationEvent::Overdue => return overdue(kind),
    };
    match (family(kind), context.sending) {
        (Family::Create, Sending::AfterUnknown) => doubted(meaning),
        (Family::Create, Sending::First) | (Family::Update | Family::Delete, _) => meaning,
    }
}

/// A refusal does not rule out that an earlier attempt of the same request created something.
fn doubted<B>(meaning: Meaning<B>) -> Meaning<B> {
    match meaning {
        Meaning::Rejected {
            reason: RejectionReason::Conflict,
            message,
            ..
        } => Meaning::Unknown {
            question: NextQuestion::LookFirst,
            message,
        },
        Meaning::Rejected { message, .. } => failed(CleanupDuty::Mitigate, message),
        Meaning::Succeeded(_)
        | Meaning::Polling { .. }
        | Meaning::Retry { .. }
        | Meaning::Unknown { .. }
        | Meaning::Failed { .. } => meaning,
    }
}

fn answered<B>(
    kind: OperationKind,
    answer: Answer<B>,
    after: Option<RetryAfter>,
    context: &ReplyContext,
) -> Meaning<B> {
    match answer {
        Answer::Done(done, body) => succeeded(kind, done, body),
        Answer::Accepted(accepted) => Meaning::Polling {
            update: PollUpdate::Accepted(accepted),
            after,
        },
        Answer::Malformed(expected, fault) => malformed(kind, expected, &fault),
        Answer::Other(status, body) => other(kind, status, body, after, context),
    }
}

fn succeeded<B>(kind: OperationKind, done: SuccessStatus, body: B) -> Meaning<B> {
    match (family(kind), done) {
        (Family::Create, SuccessStatus::Ok | SuccessStatus::Created)
        | (Family::Update, SuccessStatus::Ok) => Meaning::Succeeded(Success::Now(body)),
        (Family::Delete, SuccessStatus::Ok) => Meaning::Succeeded(Success::Gone),
        (Family::Update | Family::Delete, SuccessStatus::Created) => {
            let fault = ReplyBodyError("nothing can be created by this request".to_owned());
            malformed(kind, ExpectedStatus::Created, &fault)
        }
    }
}

/// A success without a valid body: the operation may have been done.
fn malformed<B>(
    kind: OperationKind,
    expected: ExpectedStatus,
    fault: &ReplyBodyError,
) -> Meaning<B> {
    let message = BrokerMessage::malformed(expected.status(), fault);
    match (family(kind), expected) {
        (Family::Create, ExpectedStatus::Ok) => {
            failed(CleanupDuty::DeleteBeforeForgetting, message)
        }
        (Family::Create, ExpectedStatus::Created | ExpectedStatus::Accepted) => {
            failed(CleanupDuty::Mitigate, message)
        }
        (Family::Update, ExpectedStatus::Ok) | (Family::Delete, _) => unknown(message),
        (Family::Update, ExpectedStatus::Created | ExpectedStatus::Accepted) => {
            failed(CleanupDuty::Uncertain, message)
        }
    }
}

fn other<B>(
    kind: OperationKind,
    status: OtherStatus,
    body: ErrorBody,
    after: Option<RetryAfter>,
    context: &ReplyContext,
) -> Meaning<B> {
    let update_repeatable = body
        .clone()
        .scoped_to(Some(kind))
        .leaves_update_repeatable();
    let message = BrokerMessage::error(status, body, Some(kind));
    let rejected = |reason, message| Meaning::Rejected {
        reason,
        message,
        update_repeatable,
    };
    let retry = |cause, message| Meaning::Retry {
        cause,
        after,
        message,
    };
    match (status.class(), status.get()) {
        (StatusClass::Success, _) => strange_success(kind, message),
        (StatusClass::Redirection, _) => rejected(RejectionReason::Redirected, message),
        (StatusClass::Refusal, 401) => retry(RetryCause::Unauthorized, message),
        (StatusClass::Refusal, 408 | 429) => retry(RetryCause::Overloaded, message),
        (StatusClass::Refusal, 409) => rejected(RejectionReason::Conflict, message),
        (StatusClass::Refusal, 404) if is_gone(kind, context) => Meaning::Succeeded(Success::Gone),
        (StatusClass::Refusal, 410) if family(kind) == Family::Delete => {
            Meaning::Succeeded(Success::Gone)
        }
        (StatusClass::Refusal, 422) => match unprocessable(kind, message.error.as_ref(), context) {
            Unprocessable::Rejected(reason) => rejected(reason, message),
            Unprocessable::Retry(cause) => retry(cause, message),
        },
        (StatusClass::Refusal, _) => rejected(RejectionReason::Refused, message),
        (StatusClass::Failure, 503) if after.is_some() => retry(RetryCause::Overloaded, message),
        (StatusClass::Failure, _) => match family(kind) {
            Family::Create => failed(CleanupDuty::Mitigate, message),
            Family::Update if !update_repeatable => rejected(RejectionReason::NotApplied, message),
            Family::Update | Family::Delete => retry(RetryCause::BrokerError, message),
        },
    }
}

/// A 2xx that is not defined for the verb.
fn strange_success<B>(kind: OperationKind, message: BrokerMessage) -> Meaning<B> {
    match family(kind) {
        Family::Create => failed(CleanupDuty::Mitigate, message),
        Family::Update => failed(CleanupDuty::Uncertain, message),
        Family::Delete => unknown(message),
    }
}

enum Unprocessable {
    Rejected(RejectionReason),
    Retry(RetryCause),
}

/// The four error codes of the specification, where they apply.
fn unprocessable(
    kind: OperationKind,
    error: Option<&ErrorCode>,
    context: &ReplyContext,
) -> Unprocessable {
    use Unprocessable::{Rejected, Retry};
    let of_instance = matches!(kind, OperationKind::Provision | OperationKind::Update);
    match error {
        Some(ErrorCode::ConcurrencyError) => Retry(RetryCause::Busy),
        Some(ErrorCode::AsyncRequired) => match context.incomplete {
            Incomplete::Accepted => Rejected(RejectionReason::AsyncRequired),
            // A binding created asynchronously could never be fetched.
            Incomplete::Unwanted
                if kind == OperationKind::Bind && !context.bindings_retrievable =>
            {
                Rejected(RejectionReason::AsyncRequired)
            }
            Incomplete::Unwanted => Retry(RetryCause::AcceptIncomplete),
        },
        Some(ErrorCode::MaintenanceInfoConflict) if of_instance => {
            Rejected(RejectionReason::MaintenanceInfoConflict)
        }
        Some(ErrorCode::RequiresApp) if kind == OperationKind::Bind => {
            Rejected(RejectionReason::RequiresApp)
        }
        Some(ErrorCode::MaintenanceInfoConflict | ErrorCode::RequiresApp | ErrorCode::Other(_))
        | None => Rejected(RejectionReason::Refused),
    }
}

fn is_gone(kind: OperationKind, context: &ReplyContext) -> bool {
    family(kind) == Family::Delete && context.missing_is_gone
}

fn unanswered<B>(kind: OperationKind, error: &NoReplyError, context: &ReplyContext) -> Meaning<B> {
    let message = BrokerMessage::no_reply(error);
    match (error, family(kind), context.sending) {
        (NoReplyError::NotSent(_) | NoReplyError::NoPlace(_), _, _) => Meaning::Retry {
            cause: RetryCause::NotSent,
            after: None,
            message,
        },
        (
            NoReplyError::TimedOut(_) | NoReplyError::Broken(_),
            Family::Create,
            Sending::AfterUnknown,
        ) => failed(CleanupDuty::Mitigate, message),
        (NoReplyError::TimedOut(_) | NoReplyError::Broken(_), _, _) => unknown(message),
    }
}

fn polled<B>(
    kind: OperationKind,
    reply: Reply<LastOperationResponse>,
    context: &ReplyContext,
) -> Meaning<B> {
    let (answer, after) = match reply {
        Reply::Answer {
            answer,
            retry_after,
        } => (answer, retry_after),
        Reply::NoAnswer(error) => return go_on(BrokerMessage::no_reply(&error), None),
    };
    match answer {
        Answer::Done(_, poll) => match poll.state {
            OperationState::InProgress => Meaning::Polling {
                update: PollUpdate::InProgress(poll.description.map(bounded)),
                after,
            },
            OperationState::Succeeded => Meaning::Succeeded(polled_success(kind)),
            OperationState::Failed => poll_failed(kind, poll, after),
        },
        Answer::Malformed(expected, fault) => {
            go_on(BrokerMessage::malformed(expected.status(), &fault), after)
        }
        Answer::Accepted(_) => {
            let fault = ReplyBodyError("a poll cannot be accepted".to_owned());
            go_on(
                BrokerMessage::malformed(ExpectedStatus::Accepted.status(), &fault),
                after,
            )
        }
        Answer::Other(status, body) => match status.get() {
            410 if family(kind) == Family::Delete => Meaning::Succeeded(Success::Gone),
            404 if is_gone(kind, context) => Meaning::Succeeded(Success::Gone),
            _ => go_on(BrokerMessage::error(status, body, None), after),
        },
    }
}

fn polled_success<B>(kind: OperationKind) -> Success<B> {
    match kind {
        OperationKind::Provision | OperationKind::Update => Success::Polled,
        OperationKind::Bind => Success::FetchBinding,
        OperationKind::Deprovision | OperationKind::Unbind => Success::Gone,
    }
}

fn poll_failed<B>(
    kind: OperationKind,
    poll: LastOperationResponse,
    after: Option<RetryAfter>,
) -> Meaning<B> {
    let poll = poll.scoped_to(kind);
    let update_repeatable = poll.update_repeatable.unwrap_or(true);
    let message = BrokerMessage::failed(poll);
    match family(kind) {
        Family::Create => failed(CleanupDuty::Mitigate, message),
        Family::Update => Meaning::Rejected {
            reason: RejectionReason::NotApplied,
            message,
            update_repeatable,
        },
        Family::Delete if message.usable => failed(CleanupDuty::StillThere, message),
        Family::Delete => Meaning::Retry {
            cause: RetryCause::HalfDeleted,
            after,
            message,
        },
    }
}

fn overdue<B>(kind: OperationKind) -> Meaning<B> {
    let message =
        BrokerMessage::sentence("it was polled for as long as it may take, and did not end".into());
    match family(kind) {
        Family::Create => failed(CleanupDuty::Mitigate, message),
        Family::Update => failed(CleanupDuty::Uncertain, message),
        Family::Delete => failed(CleanupDuty::StillThere, message),
    }
}

fn go_on<B>(message: BrokerMessage, after: Option<RetryAfter>) -> Meaning<B> {
    Meaning::Polling {
        update: PollUpdate::Nothing(message),
        after,
    }
}

fn failed<B>(cleanup: CleanupDuty, message: BrokerMessage) -> Meaning<B> {
    Meaning::Failed { cleanup, message }
}

fn unknown<B>(message: BrokerMessage) -> Meaning<B> {
    Meaning::Unknown {
        question: NextQuestion::SendAgain,
        message,
    }
}
