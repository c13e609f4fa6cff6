//! What an answer to a DELETE, or to a poll of it, is for the ledger: a proof, a try, a wait, or nothing.
//!
//! Total over what `sutler_client::classify` can say, also over what it never says of a DELETE: that is no proof.

use crate::lifecycle::intent::BrokerStatement;
use crate::lifecycle::orphan::AttemptOutcome;
use sutler_client::{CleanupDuty, Meaning, PollUpdate, RetryAfter, RetryCause, Success};

/// What an answer is for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeleteAnswer {
    /// The broker says that nothing is there.
    Gone,
    /// The broker accepted the DELETE.
    Accepted(Option<RetryAfter>),
    /// A poll without an end.
    InProgress(Option<RetryAfter>),
    /// Not done.
    Failed(FailedDelete),
}

/// A DELETE that was not done, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedDelete {
    /// What is counted.
    pub(super) counts_as: FailureCount,
    /// What is shown.
    pub(super) outcome: AttemptOutcome,
    /// Wish of the broker.
    pub(super) after: Option<RetryAfter>,
    /// Words of the broker.
    pub(super) statement: Option<BrokerStatement>,
}

/// What a DELETE that was not done uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureCount {
    /// A try.
    Try,
    /// A try, and it may have been done.
    TryInDoubt,
    /// A wait.
    Wait,
    /// Nothing.
    Nothing,
}

/// Reads an answer.
pub(super) fn read_answer<B>(meaning: &Meaning<B>) -> DeleteAnswer {
    let failed = |counts_as, outcome, after, statement| {
        DeleteAnswer::Failed(FailedDelete {
            counts_as,
            outcome,
            after,
            statement,
        })
    };
    match meaning {
        Meaning::Succeeded(success) => match success {
            Success::Gone => DeleteAnswer::Gone,
            Success::Now(_) | Success::Polled | Success::FetchBinding => {
                failed(FailureCount::Try, AttemptOutcome::NoProof, None, None)
            }
        },
        Meaning::Polling { update, after } => match update {
            PollUpdate::Accepted(_) => DeleteAnswer::Accepted(*after),
            PollUpdate::InProgress(_) | PollUpdate::Nothing(_) => DeleteAnswer::InProgress(*after),
        },
        Meaning::Rejected { message, .. } => failed(
            FailureCount::Try,
            AttemptOutcome::Rejected,
            None,
            Some(message.into()),
        ),
        Meaning::Retry {
            cause,
            after,
            message,
        } => {
            let (counts_as, outcome) = retried(*cause);
            failed(counts_as, outcome, *after, Some(message.into()))
        }
        Meaning::Unknown { message, .. } => failed(
            FailureCount::TryInDoubt,
            AttemptOutcome::Unknown,
            None,
            Some(message.into()),
        ),
        Meaning::Failed { cleanup, message } => {
            let outcome = match cleanup {
                CleanupDuty::StillThere => AttemptOutcome::StillThere,
                CleanupDuty::Mitigate
                | CleanupDuty::DeleteBeforeForgetting
                | CleanupDuty::Uncertain => AttemptOutcome::NoProof,
            };
            failed(FailureCount::Try, outcome, None, Some(message.into()))
        }
    }
}

/// Busy and overloaded brokers ask to come later (P-153, D-38). One that is not reached, or refuses the credentials, is
/// watched by the breaker, and an open breaker ends nothing (I-11).
fn retried(cause: RetryCause) -> (FailureCount, AttemptOutcome) {
    match cause {
        RetryCause::Busy | RetryCause::Overloaded => (FailureCount::Wait, AttemptOutcome::Later),
        RetryCause::NotSent => (FailureCount::Nothing, AttemptOutcome::NotSent),
        RetryCause::Unauthorized => (FailureCount::Nothing, AttemptOutcome::Unauthorized),
        RetryCause::BrokerError | RetryCause::HalfDeleted => {
            (FailureCount::Try, AttemptOutcome::BrokerError)
        }
        RetryCause::AcceptIncomplete => (FailureCount::Try, AttemptOutcome::Rejected),
    }
}
