//! What an exchange with a broker says about the broker, whatever it says about its instance. Pure.

use sutler_client::{Answer, NoReplyError, Reply};

/// What an exchange says about a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeOutcome {
    /// It answers, with success or not.
    Answered,
    /// It answers that too much is asked: 429, or 503 with `Retry-After` (D-38).
    Overloaded,
    /// It refuses the credentials.
    Unauthorized,
    /// This process had no place for the exchange, which says nothing of the broker.
    NotTried,
    /// It was not reached, or gave no whole answer in time.
    Unanswered,
}

impl ExchangeOutcome {
    /// Reads a reply.
    pub fn of<B>(reply: &Reply<B>) -> Self {
        let (answer, retry_after) = match reply {
            Reply::NoAnswer(NoReplyError::NoPlace(_)) => return Self::NotTried,
            Reply::NoAnswer(_) => return Self::Unanswered,
            Reply::Answer {
                answer,
                retry_after,
            } => (answer, retry_after),
        };
        match answer {
            Answer::Done(..) | Answer::Accepted(_) | Answer::Malformed(..) => Self::Answered,
            Answer::Other(status, _) => match (status.get(), retry_after) {
                (401, _) => Self::Unauthorized,
                (429, _) | (503, Some(_)) => Self::Overloaded,
                _ => Self::Answered,
            },
        }
    }
}
