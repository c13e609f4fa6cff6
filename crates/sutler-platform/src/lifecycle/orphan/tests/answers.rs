//! The answers of a broker, by the names that `tests/transitions/orphan.txt` has for them.

use super::fixtures::{message, retried};
use sutler_client::{
    AcceptedOperation, CleanupDuty, Meaning, NextQuestion, PollUpdate, RejectionReason, RetryCause,
    Success,
};
use sutler_osb::DeleteResponse;

/// Names of all answers.
pub(super) const ANSWERS: [&str; 14] = [
    "gone",
    "accepted",
    "in progress",
    "busy",
    "overloaded",
    "not sent",
    "unauthorized",
    "broker error",
    "incomplete",
    "half deleted",
    "rejected",
    "no answer",
    "still there",
    "another success",
];

/// The answers that an event of the table stands for.
pub(super) fn answers(event: &str) -> Vec<Meaning<DeleteResponse>> {
    let polling = |update| Meaning::Polling {
        update,
        after: None,
    };
    match event {
        "gone" => vec![Meaning::Succeeded(Success::Gone)],
        "another success" => {
            let failed = [
                CleanupDuty::Mitigate,
                CleanupDuty::DeleteBeforeForgetting,
                CleanupDuty::Uncertain,
            ];
            let successes = [
                Success::Now(DeleteResponse::default()),
                Success::Polled,
                Success::FetchBinding,
            ];
            let successes = successes.into_iter().map(Meaning::Succeeded);
            successes.chain(failed.map(failed_with)).collect()
        }
        "still there" => vec![failed_with(CleanupDuty::StillThere)],
        "accepted" => {
            let accepted = AcceptedOperation::default();
            vec![polling(PollUpdate::Accepted(accepted))]
        }
        "in progress" => vec![
            polling(PollUpdate::InProgress(None)),
            polling(PollUpdate::Nothing(message(Some(401)))),
        ],
        "busy" => vec![retried(RetryCause::Busy, None)],
        "overloaded" => vec![retried(RetryCause::Overloaded, None)],
        "not sent" => vec![retried(RetryCause::NotSent, None)],
        "unauthorized" => vec![retried(RetryCause::Unauthorized, None)],
        "broker error" => vec![retried(RetryCause::BrokerError, None)],
        "incomplete" => vec![retried(RetryCause::AcceptIncomplete, None)],
        "half deleted" => vec![retried(RetryCause::HalfDeleted, None)],
        "rejected" => rejections(),
        "no answer" => [NextQuestion::SendAgain, NextQuestion::LookFirst]
            .map(|question| Meaning::Unknown {
                question,
                message: message(None),
            })
            .to_vec(),
        _ => panic!("no such answer: {event}"),
    }
}

fn failed_with(cleanup: CleanupDuty) -> Meaning<DeleteResponse> {
    Meaning::Failed {
        cleanup,
        message: message(None),
    }
}

fn rejections() -> Vec<Meaning<DeleteResponse>> {
    let reasons = [
        RejectionReason::Refused,
        RejectionReason::Conflict,
        RejectionReason::AsyncRequired,
        RejectionReason::MaintenanceInfoConflict,
        RejectionReason::RequiresApp,
        RejectionReason::Redirected,
        RejectionReason::NotApplied,
    ];
    let rejected = |reason| Meaning::Rejected {
        reason,
        message: message(Some(400)),
        update_repeatable: true,
    };
    reasons.map(rejected).to_vec()
}
