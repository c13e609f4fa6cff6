//! Answers of a broker, as `sutler-client` classifies them.

use crate::lifecycle::instance::ResourceDetails;
use sutler_client::{BrokerMessage, CleanupDuty, Meaning, RejectionReason, RetryCause, Success};

pub(super) fn message(status: u16, usable: bool) -> BrokerMessage {
    BrokerMessage {
        status: Some(status),
        error: None,
        description: None,
        usable,
    }
}

pub(super) fn succeeded() -> Meaning<ResourceDetails> {
    Meaning::Succeeded(Success::Now(ResourceDetails::default()))
}

pub(super) fn failed(cleanup: CleanupDuty) -> Meaning<ResourceDetails> {
    Meaning::Failed {
        cleanup,
        message: message(500, true),
    }
}

/// Rejected with this status; the instance is usable.
pub(super) fn rejected(status: u16) -> Meaning<ResourceDetails> {
    Meaning::Rejected {
        reason: RejectionReason::Refused,
        message: message(status, true),
        update_repeatable: true,
    }
}

pub(super) fn retry(cause: RetryCause) -> Meaning<ResourceDetails> {
    Meaning::Retry {
        cause,
        after: None,
        message: message(429, true),
    }
}
