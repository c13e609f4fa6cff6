//! The one place that says what an answer means. Pure: no clock, no memory, no I/O.
//!
//! Held to `tests/meanings/answers.txt` and `tests/meanings/polls.txt`, which were written by hand
//! from the specification (P-130 to P-153) and from the project's own decisions, D-35 on, which win
//! where the two differ. Answers to reads are in `reading.rs`.

use crate::call::Incomplete;
use crate::meaning::{Aftermath, Cause, Inquiry, Meaning, News, Said, Success, Why, bounded};
use crate::reply::{Answer, BodyFault, Class, Done, Expected, Heard, OtherStatus, Reply, Silence};
use crate::retry_after::RetryAfter;
use sutler_osb::{ErrorBody, ErrorCode, LastOperationResponse, OperationKind, OperationState};

/// What else must be known to understand an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// Whether the same was sent before.
    pub sending: Sending,
    /// Whether `accepts_incomplete=true` was sent.
    pub incomplete: Incomplete,
    /// Whether the offering's bindings can be fetched.
    pub bindings_retrievable: bool,
    /// For brokers that answer 404 where they mean 410: what is not found is gone.
    pub missing_is_gone: bool,
}

/// Whether a request was sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sending {
    /// It is the first, or all before it are known to have changed nothing.
    #[default]
    First,
    /// The same was sent before, and nobody knows what became of it.
    AfterUnknown,
}

impl Default for Circumstances {
    fn default() -> Self {
        Self {
            sending: Sending::First,
            incomplete: Incomplete::Accepted,
            bindings_retrievable: true,
            missing_is_gone: false,
        }
    }
}

/// What kinds have in common.
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

/// Says what was heard of an operation means for the platform.
///
/// # Guarantees
/// Total: there is a meaning for everything. `Aftermath::Mitigate` only ever comes of a provision or
/// a bind, and a create that may have been done is never called rejected.
pub fn classify<B>(
    kind: OperationKind,
    heard: Heard<B>,
    circumstances: &Circumstances,
) -> Meaning<B> {
    let meaning = match heard {
        Heard::Reply(Reply::Answer {
            answer,
            retry_after,
        }) => answered(kind, answer, retry_after, circumstances),
        Heard::Reply(Reply::Silence(silence)) => unanswered(kind, &silence, circumstances),
        Heard::Poll(reply) => return polled(kind, reply, circumstances),
        Heard::Overdue => return overdue(kind),
    };
    match (family(kind), circumstances.sending) {
        (Family::Create, Sending::AfterUnknown) => doubted(meaning),
        (Family::Create, Sending::First) | (Family::Update | Family::Delete, _) => meaning,
    }
}

/// A refusal says nothing of what an earlier sending of the same has made.
fn doubted<B>(meaning: Meaning<B>) -> Meaning<B> {
    match meaning {
        Meaning::Rejected {
            why: Why::Conflict,
            said,
            ..
        } => Meaning::Unknown {
            inquiry: Inquiry::LookFirst,
            said,
        },
        Meaning::Rejected { said, .. } => failed(Aftermath::Mitigate, said),
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
    circumstances: &Circumstances,
) -> Meaning<B> {
    match answer {
        Answer::Done(done, body) => succeeded(kind, done, body),
        Answer::Accepted(accepted) => Meaning::Polling {
            news: News::Accepted(accepted),
            after,
        },
        Answer::Malformed(expected, fault) => malformed(kind, expected, &fault),
        Answer::Other(status, body) => other(kind, status, body, after, circumstances),
    }
}

fn succeeded<B>(kind: OperationKind, done: Done, body: B) -> Meaning<B> {
    match (family(kind), done) {
        (Family::Create, Done::Ok | Done::Created) | (Family::Update, Done::Ok) => {
            Meaning::Succeeded(Success::Now(body))
        }
        (Family::Delete, Done::Ok) => Meaning::Succeeded(Success::Gone),
        (Family::Update | Family::Delete, Done::Created) => {
            let fault = BodyFault("nothing can be created by this request".to_owned());
            malformed(kind, Expected::Created, &fault)
        }
    }
}

/// A success that says nothing: what it was about may have been done.
fn malformed<B>(kind: OperationKind, expected: Expected, fault: &BodyFault) -> Meaning<B> {
    let said = Said::malformed(expected.status(), fault);
    match (family(kind), expected) {
        (Family::Create, Expected::Ok) => failed(Aftermath::DeleteBeforeForgetting, said),
        (Family::Create, Expected::Created | Expected::Accepted) => {
            failed(Aftermath::Mitigate, said)
        }
        (Family::Update, Expected::Ok) | (Family::Delete, _) => unknown(said),
        (Family::Update, Expected::Created | Expected::Accepted) => {
            failed(Aftermath::Uncertain, said)
        }
    }
}

fn other<B>(
    kind: OperationKind,
    status: OtherStatus,
    body: ErrorBody,
    after: Option<RetryAfter>,
    circumstances: &Circumstances,
) -> Meaning<B> {
    let update_repeatable = body
        .clone()
        .scoped_to(Some(kind))
        .leaves_update_repeatable();
    let said = Said::error(status, body, Some(kind));
    let rejected = |why, said| Meaning::Rejected {
        why,
        said,
        update_repeatable,
    };
    let retry = |cause, said| Meaning::Retry { cause, after, said };
    match (status.class(), status.get()) {
        (Class::Success, _) => strange_success(kind, said),
        (Class::Redirection, _) => rejected(Why::Redirected, said),
        (Class::Refusal, 401) => retry(Cause::Unauthorized, said),
        (Class::Refusal, 408 | 429) => retry(Cause::Overloaded, said),
        (Class::Refusal, 409) => rejected(Why::Conflict, said),
        (Class::Refusal, 404) if is_gone(kind, circumstances) => Meaning::Succeeded(Success::Gone),
        (Class::Refusal, 410) if family(kind) == Family::Delete => {
            Meaning::Succeeded(Success::Gone)
        }
        (Class::Refusal, 422) => match unprocessable(kind, said.error.as_ref(), circumstances) {
            Unprocessable::Rejected(why) => rejected(why, said),
            Unprocessable::Retry(cause) => retry(cause, said),
        },
        (Class::Refusal, _) => rejected(Why::Refused, said),
        (Class::Failure, 503) if after.is_some() => retry(Cause::Overloaded, said),
        (Class::Failure, _) => match family(kind) {
            Family::Create => failed(Aftermath::Mitigate, said),
            Family::Update if !update_repeatable => rejected(Why::NotApplied, said),
            Family::Update | Family::Delete => retry(Cause::BrokerError, said),
        },
    }
}

/// A 2xx that the verb does not know.
fn strange_success<B>(kind: OperationKind, said: Said) -> Meaning<B> {
    match family(kind) {
        Family::Create => failed(Aftermath::Mitigate, said),
        Family::Update => failed(Aftermath::Uncertain, said),
        Family::Delete => unknown(said),
    }
}

enum Unprocessable {
    Rejected(Why),
    Retry(Cause),
}

/// The four words of the specification, where they have a meaning.
fn unprocessable(
    kind: OperationKind,
    error: Option<&ErrorCode>,
    circumstances: &Circumstances,
) -> Unprocessable {
    use Unprocessable::{Rejected, Retry};
    let of_instance = matches!(kind, OperationKind::Provision | OperationKind::Update);
    match error {
        Some(ErrorCode::ConcurrencyError) => Retry(Cause::Busy),
        Some(ErrorCode::AsyncRequired) => match circumstances.incomplete {
            Incomplete::Accepted => Rejected(Why::AsyncRequired),
            // What a bind made asynchronously could never be fetched.
            Incomplete::Unwanted
                if kind == OperationKind::Bind && !circumstances.bindings_retrievable =>
            {
                Rejected(Why::AsyncRequired)
            }
            Incomplete::Unwanted => Retry(Cause::AcceptIncomplete),
        },
        Some(ErrorCode::MaintenanceInfoConflict) if of_instance => {
            Rejected(Why::MaintenanceInfoConflict)
        }
        Some(ErrorCode::RequiresApp) if kind == OperationKind::Bind => Rejected(Why::RequiresApp),
        Some(ErrorCode::MaintenanceInfoConflict | ErrorCode::RequiresApp | ErrorCode::Other(_))
        | None => Rejected(Why::Refused),
    }
}

fn is_gone(kind: OperationKind, circumstances: &Circumstances) -> bool {
    family(kind) == Family::Delete && circumstances.missing_is_gone
}

fn unanswered<B>(
    kind: OperationKind,
    silence: &Silence,
    circumstances: &Circumstances,
) -> Meaning<B> {
    let said = Said::silence(silence);
    match (silence, family(kind), circumstances.sending) {
        (Silence::NotSent(_), _, _) => Meaning::Retry {
            cause: Cause::NotSent,
            after: None,
            said,
        },
        (Silence::TimedOut(_) | Silence::Broken(_), Family::Create, Sending::AfterUnknown) => {
            failed(Aftermath::Mitigate, said)
        }
        (Silence::TimedOut(_) | Silence::Broken(_), _, _) => unknown(said),
    }
}

fn polled<B>(
    kind: OperationKind,
    reply: Reply<LastOperationResponse>,
    circumstances: &Circumstances,
) -> Meaning<B> {
    let (answer, after) = match reply {
        Reply::Answer {
            answer,
            retry_after,
        } => (answer, retry_after),
        Reply::Silence(silence) => return go_on(Said::silence(&silence), None),
    };
    match answer {
        Answer::Done(_, poll) => match poll.state {
            OperationState::InProgress => Meaning::Polling {
                news: News::InProgress(poll.description.map(bounded)),
                after,
            },
            OperationState::Succeeded => Meaning::Succeeded(polled_success(kind)),
            OperationState::Failed => poll_failed(kind, poll, after),
        },
        Answer::Malformed(expected, fault) => {
            go_on(Said::malformed(expected.status(), &fault), after)
        }
        Answer::Accepted(_) => {
            let fault = BodyFault("a poll cannot be accepted".to_owned());
            go_on(Said::malformed(Expected::Accepted.status(), &fault), after)
        }
        Answer::Other(status, body) => match status.get() {
            410 if family(kind) == Family::Delete => Meaning::Succeeded(Success::Gone),
            404 if is_gone(kind, circumstances) => Meaning::Succeeded(Success::Gone),
            _ => go_on(Said::error(status, body, None), after),
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
    let said = Said::failed(poll);
    match family(kind) {
        Family::Create => failed(Aftermath::Mitigate, said),
        Family::Update => Meaning::Rejected {
            why: Why::NotApplied,
            said,
            update_repeatable,
        },
        Family::Delete if said.usable => failed(Aftermath::StillThere, said),
        Family::Delete => Meaning::Retry {
            cause: Cause::HalfDeleted,
            after,
            said,
        },
    }
}

fn overdue<B>(kind: OperationKind) -> Meaning<B> {
    let said = Said::sentence("it was polled for as long as it may take, and did not end".into());
    match family(kind) {
        Family::Create => failed(Aftermath::Mitigate, said),
        Family::Update => failed(Aftermath::Uncertain, said),
        Family::Delete => failed(Aftermath::StillThere, said),
    }
}

fn go_on<B>(said: Said, after: Option<RetryAfter>) -> Meaning<B> {
    Meaning::Polling {
        news: News::Nothing(said),
        after,
    }
}

fn failed<B>(aftermath: Aftermath, said: Said) -> Meaning<B> {
    Meaning::Failed { aftermath, said }
}

fn unknown<B>(said: Said) -> Meaning<B> {
    Meaning::Unknown {
        inquiry: Inquiry::SendAgain,
        said,
    }
}
