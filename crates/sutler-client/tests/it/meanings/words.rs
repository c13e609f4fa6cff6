//! A meaning in the tables' words.

use sutler_client::{Aftermath, BrokerEvent, Cause, Inquiry, Meaning, News, Success, Why};

pub(super) fn of<B>(meaning: &Meaning<B>) -> String {
    let mut words = match meaning {
        Meaning::Succeeded(success) => success_words(success).to_owned(),
        Meaning::Polling { news, .. } => match news {
            News::Accepted(_) => "poll".to_owned(),
            News::InProgress(_) => "poll on".to_owned(),
            News::Nothing(_) => "nothing, poll on".to_owned(),
        },
        Meaning::Rejected { why, .. } => format!("rejected{}", why_words(*why)),
        Meaning::Retry { cause, .. } => format!("retry, {}", cause_words(*cause)),
        Meaning::Unknown { inquiry, .. } => match inquiry {
            Inquiry::SendAgain => "unknown, send again".to_owned(),
            Inquiry::LookFirst => "unknown, look first".to_owned(),
        },
        Meaning::Failed { aftermath, .. } => format!("failed, {}", aftermath_words(*aftermath)),
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

fn why_words(why: Why) -> &'static str {
    match why {
        Why::Refused => "",
        Why::Conflict => ", conflict",
        Why::AsyncRequired => ", async",
        Why::MaintenanceInfoConflict => ", maintenance",
        Why::RequiresApp => ", app",
        Why::Redirected => ", redirected",
        Why::NotApplied => ", not applied",
    }
}

fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Busy => "busy",
        Cause::Overloaded => "overloaded",
        Cause::BrokerError => "broker error",
        Cause::NotSent => "not sent",
        Cause::Unauthorized => "unauthorized",
        Cause::AcceptIncomplete => "incomplete",
        Cause::HalfDeleted => "half deleted",
    }
}

fn aftermath_words(aftermath: Aftermath) -> &'static str {
    match aftermath {
        Aftermath::Mitigate => "mitigate",
        Aftermath::DeleteBeforeForgetting => "delete before forgetting",
        Aftermath::Uncertain => "uncertain",
        Aftermath::StillThere => "still there",
    }
}
