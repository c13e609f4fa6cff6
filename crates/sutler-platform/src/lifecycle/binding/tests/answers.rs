//! Answers of brokers by name.

use super::fixtures::details;
use crate::lifecycle::binding::BindingBody;
use sutler_client::{
    AcceptedOperation, BrokerMessage, CleanupDuty, Meaning, NextQuestion, PollUpdate,
    RejectionReason, RetryCause, Success,
};

fn message(status: u16) -> BrokerMessage {
    BrokerMessage {
        status: Some(status),
        error: None,
        description: None,
        usable: true,
    }
}

pub(super) fn retry(cause: RetryCause) -> Meaning<BindingBody> {
    Meaning::Retry {
        cause,
        after: None,
        message: message(429),
    }
}

pub(super) fn rejected(reason: RejectionReason) -> Meaning<BindingBody> {
    Meaning::Rejected {
        reason,
        message: message(400),
        update_repeatable: true,
    }
}

pub(super) fn failed(cleanup: CleanupDuty) -> Meaning<BindingBody> {
    Meaning::Failed {
        cleanup,
        message: message(500),
    }
}

pub(super) fn unknown(question: NextQuestion) -> Meaning<BindingBody> {
    Meaning::Unknown {
        question,
        message: message(200),
    }
}

pub(super) fn accepted() -> Meaning<BindingBody> {
    Meaning::Polling {
        update: PollUpdate::Accepted(AcceptedOperation::default()),
        after: None,
    }
}

pub(super) fn in_progress() -> Meaning<BindingBody> {
    Meaning::Polling {
        update: PollUpdate::InProgress(None),
        after: None,
    }
}

pub(super) fn bound(mark: &str) -> Meaning<BindingBody> {
    Meaning::Succeeded(Success::Now(BindingBody::Fit(details(mark))))
}

pub(super) fn unfit() -> BindingBody {
    BindingBody::Unfit("the credentials are too long".to_owned())
}

/// The answer of an event of the table.
pub(super) fn answer(name: &str) -> Meaning<BindingBody> {
    match name {
        "succeeded" => bound("new"),
        "unfit" => Meaning::Succeeded(Success::Now(unfit())),
        "fetch" => Meaning::Succeeded(Success::FetchBinding),
        "polled" => Meaning::Succeeded(Success::Polled),
        "gone" => Meaning::Succeeded(Success::Gone),
        "accepted" => accepted(),
        "in progress" => in_progress(),
        "rejected" => rejected(RejectionReason::Refused),
        "requires app" | "requires app, not allowed" => rejected(RejectionReason::RequiresApp),
        "busy" => retry(RetryCause::Busy),
        "overloaded" | "too late" => retry(RetryCause::Overloaded),
        "unauthorized too late" => retry(RetryCause::Unauthorized),
        "half deleted" => retry(RetryCause::HalfDeleted),
        "unknown" | "unknown, too late" => unknown(NextQuestion::SendAgain),
        "unknown, look first" | "unknown, look first, too late" => unknown(NextQuestion::LookFirst),
        "failed, mitigate" => failed(CleanupDuty::Mitigate),
        "failed, delete first" => failed(CleanupDuty::DeleteBeforeForgetting),
        "failed, uncertain" => failed(CleanupDuty::Uncertain),
        "failed, still there" => failed(CleanupDuty::StillThere),
        other => panic!("no such answer: {other}"),
    }
}
