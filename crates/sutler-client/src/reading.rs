//! What an answer to a read means: catalog, fetched instance, fetched binding. Pure.
//!
//! Reads change nothing, so there is nothing to be unsure of and nothing to clean up: what was not
//! read is read again, or is said to be unreadable, and the platform keeps what it knows (P-081,
//! P-124). Answers to what changes something are in `classify.rs`.

use crate::meaning::{BrokerEvent, Cause, Said};
use crate::reply::{Answer, Class, Reply, Silence};
use crate::retry_after::RetryAfter;
use sutler_osb::ErrorCode;

/// What came of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<B> {
    /// It is this.
    Read(B),
    /// It does not exist, or not yet (B-152, B-232).
    Absent,
    /// Not now: ask again later.
    Retry {
        /// What is in the way.
        cause: Cause,
        /// When the broker wants to be asked.
        after: Option<RetryAfter>,
        /// What the broker said.
        said: Said,
    },
    /// The answer is of no use; what the platform knows stays as it is.
    Failed(Said),
}

impl<B> Reading<B> {
    /// What the platform should learn about the broker from it, if anything.
    pub fn event(&self) -> Option<BrokerEvent> {
        match self {
            Self::Retry { cause, .. } => cause.event(),
            Self::Read(_) | Self::Absent | Self::Failed(_) => None,
        }
    }
}

/// Says what came of a read means for the platform.
pub fn classify_read<B>(reply: Reply<B>) -> Reading<B> {
    let (answer, after) = match reply {
        Reply::Answer {
            answer,
            retry_after,
        } => (answer, retry_after),
        Reply::Silence(silence) => {
            let cause = match silence {
                Silence::NotSent(_) => Cause::NotSent,
                Silence::TimedOut(_) | Silence::Broken(_) => Cause::BrokerError,
            };
            let said = Said::silence(&silence);
            return Reading::Retry {
                cause,
                after: None,
                said,
            };
        }
    };
    let (status, body) = match answer {
        Answer::Done(_, body) => return Reading::Read(body),
        Answer::Malformed(expected, fault) => {
            return Reading::Failed(Said::malformed(expected.status(), &fault));
        }
        Answer::Accepted(_) => {
            return Reading::Failed(Said::sentence("a read cannot be accepted".to_owned()));
        }
        Answer::Other(status, body) => (status, body),
    };
    let said = Said::error(status, body, None);
    let cause = match (status.class(), status.get()) {
        (Class::Refusal, 404) => return Reading::Absent,
        (Class::Refusal, 401) => Cause::Unauthorized,
        (Class::Refusal, 408 | 429) => Cause::Overloaded,
        (Class::Refusal, 422) if said.error == Some(ErrorCode::ConcurrencyError) => Cause::Busy,
        (Class::Failure, 503) if after.is_some() => Cause::Overloaded,
        (Class::Failure, _) => Cause::BrokerError,
        (Class::Success | Class::Redirection | Class::Refusal, _) => {
            return Reading::Failed(said);
        }
    };
    Reading::Retry { cause, after, said }
}

#[cfg(test)]
mod tests {
    use super::{Reading, classify_read};
    use crate::hear;
    use crate::meaning::{BrokerEvent, Cause};
    use crate::wire::{Answer, Unanswered};
    use std::time::Duration;

    fn read(status: u16, body: &str) -> String {
        words(Ok(Answer::new(status, &[], body.to_owned())))
    }

    fn words(outcome: hear::Outcome) -> String {
        match classify_read(hear::fetched_instance(outcome)) {
            Reading::Read(_) => "read".to_owned(),
            Reading::Absent => "absent".to_owned(),
            Reading::Retry { cause, .. } => format!("retry, {cause:?}"),
            Reading::Failed(_) => "failed".to_owned(),
        }
    }

    /// P-081, P-124.
    #[test]
    fn only_200_404_and_what_passes_are_no_failure_of_a_read() {
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
    fn silence_is_asked_again() {
        let timed_out = Unanswered::TimedOut(Duration::from_secs(1));
        assert_eq!(words(Err(timed_out)), "retry, BrokerError");
        let refused = Unanswered::NotSent("refused".to_owned());
        assert_eq!(words(Err(refused)), "retry, NotSent");
    }

    #[test]
    fn wrong_credentials_are_the_operators_matter() {
        let reading = classify_read(hear::catalog(Ok(Answer::new(401, &[], "{}"))));
        assert_eq!(reading.event(), Some(BrokerEvent::Unauthorized));
        assert!(matches!(
            reading,
            Reading::Retry {
                cause: Cause::Unauthorized,
                ..
            }
        ));
    }
}
