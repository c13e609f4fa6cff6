//! Formats a meaning in the words of the tables.

use sutler_client::{
    BrokerEvent, CleanupDuty, Meaning, NextQuestion, PollUpdate, RejectionReason, RetryCause,
    Success,
};

pub(super) fn of<B>(meaning: &Meaning<B>) -> String {
    let mut words = match meaning {
        Meaning::Succeeded(success) => success_words(success).to_owned(),
        Meaning::Polling { update, .. } => match update {
            PollUpdate::Accepted(_) => "poll".to_owned(),
            PollUpdate::InProgress(_) => "poll on".to_owned(),
            PollUpdate::Nothing(_) => "nothing, poll on".to_owned(),
        },
        Meaning::Rejected { reason, .. } => format!("rejected{}", why_words(*reason)),
        Meaning::Retry { cause, .. } => format!("retry, {}", cause_words(*cause)),
        Meaning::Unknown { question, .. } => match question {
            NextQuestion::SendAgain => "unknown, send again".to_owned(),
            NextQuestion::LookFirst => "unknown, look first".to_owned(),
        },
        Meaning::Failed { cleanup, .. } => format!("failed, {}", aftermath_words(*cleanup)),
    };
    if !meaning.leaves_usable() {
        words.push_str(", unusable");
    }
    if let Meaning::Rejected {
        update_repeatable: false,
        ..
    } = meaning
    {
        words.push_str(", not repeatable");
    }
    if let Some(event) = meaning.event() {
        words.push_str(match event {
            BrokerEvent::Unauthorized => " ! breaker",
            BrokerEvent::Serialize => " ! serialize",
            BrokerEvent::RelistCatalog => " ! relist",
            BrokerEvent::AsyncRequired => " ! async",
        });
    }
    words
}

fn success_words<B>(success: &Success<B>) -> &'static str {
    match success {
        Success::Now(_) => "succeeded",
        Success::Polled => "polled",
        Success::FetchBinding => "fetch",
        Success::Gone => "gone",
    }
}

fn why_words(reason: RejectionReason) -> &'static str {
    match reason {
        RejectionReason::Refused => "",
        RejectionReason::Conflict => ", conflict",
        RejectionReason::AsyncRequired => ", async",
        RejectionReason::MaintenanceInfoConflict => ", maintenance",
        RejectionReason::RequiresApp => ", app",
        RejectionReason::Redirected => ", redirected",
        RejectionReason::NotApplied => ", not applied",
    }
}

fn cause_words(cause: RetryCause) -> &'static str {
    match cause {
        RetryCause::Busy => "busy",
        RetryCause::Overloaded => "overloaded",
        RetryCause::BrokerError => "broker error",
        RetryCause::NotSent => "not sent",
        RetryCause::Unauthorized => "unauthorized",
        RetryCause::AcceptIncomplete => "incomplete",
        RetryCause::HalfDeleted => "half deleted",
    }
}

fn aftermath_words(cleanup: CleanupDuty) -> &'static str {
    match cleanup {
        CleanupDuty::Mitigate => "mitigate",
        CleanupDuty::DeleteBeforeForgetting => "delete before forgetting",
        CleanupDuty::Uncertain => "uncertain",
        CleanupDuty::StillThere => "still there",
    }
}
