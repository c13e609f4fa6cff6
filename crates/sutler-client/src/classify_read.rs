//! Interprets the answer to a read: catalog, fetched instance, fetched binding. Pure.
//!
//! Reads change nothing, so no outcome is unknown and there is nothing to clean up: a failed read is
//! repeated or reported, and the platform keeps the state it knows (P-081, P-124). Answers to changes are
//! in `classify.rs`.

use crate::meaning::{BrokerEvent, BrokerMessage, RetryCause};
use crate::reply::{Answer, NoReplyError, Reply, StatusClass};
use crate::retry_after::RetryAfter;
use sutler_osb::ErrorCode;

/// Interpretation of the answer to a read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<B> {
    /// The resource that was read.
    Read(B),
    /// It does not exist, or not yet (B-152, B-232).
    Absent,
    /// Not available now: read again later.
    Retry {
        /// Cause of the retry.
        cause: RetryCause,
        /// `Retry-After` of the broker, if present.
        after: Option<RetryAfter>,
        /// Message of the broker.
        message: BrokerMessage,
    },
    /// The answer cannot be used; the platform keeps the state it knows.
    Failed(BrokerMessage),
}

impl<B> Reading<B> {
    /// The event about the broker that follows from it, if any.
    pub fn event(&self) -> Option<BrokerEvent> {
        match self {
            Self::Retry { cause, .. } => cause.event(),
            Self::Read(_) | Self::Absent | Self::Failed(_) => None,
        }
    }
}

/// Interprets the reply to a read for the platform.
pub fn classify_read<B>(reply: Reply<B>) -> Reading<B> {
    let (answer, after) = match reply {
        Reply::Answer {
            answer,
            retry_after,
        } => (answer, retry_after),
        Reply::NoAnswer(error) => {
            let cause = match error {
                NoReplyError::NotSent(_) | NoReplyError::NoPlace(_) => RetryCause::NotSent,
                NoReplyError::TimedOut(_) | NoReplyError::Broken(_) => RetryCause::BrokerError,
            };
            let message = BrokerMessage::no_reply(&error);
            return Reading::Retry {
                cause,
                after: None,
                message,
            };
        }
    };
    let (status, body) = match answer {
        Answer::Done(_, body) => return Reading::Read(body),
        Answer::Malformed(expected, fault) => {
            return Reading::Failed(BrokerMessage::malformed(expected.status(), &fault));
        }
        Answer::Accepted(_) => {
            return Reading::Failed(BrokerMessage::sentence(
                "a read cannot be accepted".to_owned(),
            ));
        }
        Answer::Other(status, body) => (status, body),
    };
    let message = BrokerMessage::error(status, body, None);
    let cause = match (status.class(), status.get()) {
        (StatusClass::Refusal, 404) => return Reading::Absent,
        (StatusClass::Refusal, 401) => RetryCause::Unauthorized,
        (StatusClass::Refusal, 408 | 429) => RetryCause::Overloaded,
        (StatusClass::Refusal, 422) if message.error == Some(ErrorCode::ConcurrencyError) => {
            RetryCause::Busy
        }
        (StatusClass::Failure, 503) if after.is_some() => RetryCause::Overloaded,
        (StatusClass::Failure, _) => RetryCause::BrokerError,
        (StatusClass::Success | StatusClass::Redirection | StatusClass::Refusal, _) => {
            return Reading::Failed(message);
        }
    };
    Reading::Retry {
        cause,
        after,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::{Reading, classify_read};
    use crate::decode;
    use crate::meaning::{BrokerEvent, RetryCause};
    use crate::wire::{Answer, TransportError};
    use std::time::Duration;

    fn read(status: u16, body: &str) -> String {
        words(Ok(Answer::new(status, &[], body.to_owned())))
    }

    fn words(outcome: decode::WireResult) -> String {
        match classify_read(decode::fetched_instance(outcome)) {
            Reading::Read(_) => "read".to_owned(),
            Reading::Absent => "absent".to_owned(),
            Reading::Retry { cause, .. } => format!("retry, {cause:?}"),
            Reading::Failed(_) => "failed".to_owned(),
        }
    }

    /// Holds: P-081, P-124.
    #[test]
    fn only_200_404_and_transient_statuses_are_not_failures_of_a_read() {
        assert_eq!(read(200, "{}"), "read");
        assert_eq!(read(404, "{}"), "absent");
        let busy = r#"{"error":"ConcurrencyError"}"#;
        assert_eq!(read(422, busy), "retry, Busy");
        assert_eq!(read(401, "{}"), "retry, Unauthorized");
        assert_eq!(read(429, "{}"), "retry, Overloaded");
        assert_eq!(read(500, "<html>"), "retry, BrokerError");
        for (status, body) in [
            (200, "[]"),
            (201, "{}"),
            (204, ""),
            (302, ""),
            (400, "{}"),
            (410, "{}"),
            (422, "{}"),
        ] {
            assert_eq!(read(status, body), "failed", "{status}");
        }
    }

    #[test]
    fn a_read_without_a_reply_is_retried() {
        let timed_out = TransportError::TimedOut(Duration::from_secs(1));
        assert_eq!(words(Err(timed_out)), "retry, BrokerError");
        let refused = TransportError::NotSent("refused".to_owned());
        assert_eq!(words(Err(refused)), "retry, NotSent");
    }

    #[test]
    fn wrong_credentials_are_an_event_for_the_operator() {
        let reading = classify_read(decode::catalog(Ok(Answer::new(401, &[], "{}"))));
        assert_eq!(reading.event(), Some(BrokerEvent::Unauthorized));
        assert!(matches!(
            reading,
            Reading::Retry {
                cause: RetryCause::Unauthorized,
                ..
            }
        ));
    }
}
