//! Reads the catalog of a broker: with the entity tag of the known one, without an originating identity (P-010, P-040).

use super::transport::BrokerTransport;
use crate::lifecycle::breaker::{ExchangeOutcome, ProbeResult};
use crate::lifecycle::intent::BrokerStatement;
use bytes::Bytes;
use sutler_client::wire::{Answer, TransportError};
use sutler_client::{
    BrokerMessage, EntityTag, Reading, RequestBuilder, RetryAfter, classify_read, decode,
};
use sutler_journal::OperationId;
use sutler_osb::Catalog;

/// Longest sentence about a failed read, in characters.
const SENTENCE_CHARS_MAX: usize = 1_000;

/// The answer to a read of the catalog.
pub(super) enum CatalogAnswer {
    /// A catalog, not interpreted yet.
    Whole {
        /// Its text.
        body: Bytes,
        /// Its entity tag.
        entity_tag: Option<EntityTag>,
    },
    /// It is the one with the tag that was sent.
    NotModified,
    /// Anything else.
    Other(Box<Reading<Catalog>>),
}

/// The answer, and what the exchange says of the broker.
pub(super) struct CatalogExchange {
    /// The answer.
    pub(super) answer: CatalogAnswer,
    /// What it says of the broker.
    pub(super) outcome: ExchangeOutcome,
}

impl CatalogExchange {
    /// Sends the request of an operation.
    pub(super) async fn send(
        transport: &dyn BrokerTransport,
        operation: OperationId,
        known: Option<&EntityTag>,
    ) -> Self {
        let request = RequestBuilder::from_uuid(operation.0).catalog(known);
        Self::of(transport.send(&request).await, known.is_some())
    }

    fn of(result: Result<Answer, TransportError>, has_tag: bool) -> Self {
        match result {
            Ok(answer) if answer.status == 200 => Self {
                outcome: ExchangeOutcome::Answered,
                answer: CatalogAnswer::Whole {
                    entity_tag: EntityTag::of(&answer),
                    body: answer.body,
                },
            },
            Ok(answer) if answer.status == 304 && has_tag => Self {
                outcome: ExchangeOutcome::Answered,
                answer: CatalogAnswer::NotModified,
            },
            other => {
                let reply = decode::catalog(other);
                Self {
                    outcome: ExchangeOutcome::of(&reply),
                    answer: CatalogAnswer::Other(Box::new(classify_read(reply))),
                }
            }
        }
    }
}

impl CatalogAnswer {
    /// What the answer means for an open breaker.
    pub(super) fn probe_result(&self) -> ProbeResult {
        match self {
            Self::Whole { .. } | Self::NotModified => ProbeResult::Answered,
            Self::Other(reading) => ProbeResult::of(reading),
        }
    }
}

/// Why there is no catalog, as a sentence for operators, and when the broker wants to be asked again.
pub(super) fn failure(reading: &Reading<Catalog>) -> (String, Option<RetryAfter>) {
    let (message, after) = match reading {
        Reading::Read(_) => return ("the catalog was not expected".to_owned(), None),
        Reading::Absent => {
            let sentence = "the broker answers the request for its catalog with 404";
            return (sentence.to_owned(), None);
        }
        Reading::Retry { message, after, .. } => (message, *after),
        Reading::Failed(message) => (message, None),
    };
    (bounded(&sentence(message)), after)
}

fn sentence(message: &BrokerMessage) -> String {
    let BrokerStatement {
        status,
        error,
        description,
    } = message.into();
    let mut text = match status {
        Some(status) => format!("the broker answers the request for its catalog with {status}"),
        None => "the broker gives no answer to the request for its catalog".to_owned(),
    };
    for part in [error, description].into_iter().flatten() {
        text.push_str(": ");
        text.push_str(&part);
    }
    text
}

/// A text of a broker, shortened.
pub(super) fn bounded(text: &str) -> String {
    text.chars().take(SENTENCE_CHARS_MAX).collect()
}

/// The result of a probe that could not even be sent.
pub(super) fn not_sent(sentence: String) -> ProbeResult {
    ProbeResult::Unanswered(BrokerStatement {
        status: None,
        error: None,
        description: Some(bounded(&sentence)),
    })
}

#[cfg(test)]
mod tests {
    use super::{CatalogAnswer, CatalogExchange, failure};
    use crate::lifecycle::breaker::ExchangeOutcome;
    use std::time::Duration;
    use sutler_client::wire::{Answer, TransportError};

    fn exchange(status: u16, body: &str, has_tag: bool) -> CatalogExchange {
        CatalogExchange::of(Ok(Answer::new(status, &[], body.to_owned())), has_tag)
    }

    fn sentence(exchange: &CatalogExchange) -> String {
        match &exchange.answer {
            CatalogAnswer::Whole { .. } => "whole".to_owned(),
            CatalogAnswer::NotModified => "not modified".to_owned(),
            CatalogAnswer::Other(reading) => failure(reading).0,
        }
    }

    #[test]
    fn a_304_counts_only_if_a_tag_was_sent() {
        assert_eq!(sentence(&exchange(304, "", true)), "not modified");
        let unasked = exchange(304, "", false);
        assert!(sentence(&unasked).ends_with("with 304"));
    }

    #[test]
    fn a_failed_read_has_a_sentence_with_the_words_of_the_broker_and_no_more_of_them_than_fit() {
        let failed = exchange(500, r#"{"description": "no disk"}"#, false);
        assert_eq!(
            sentence(&failed),
            "the broker answers the request for its catalog with 500: no disk"
        );
        let long = format!(r#"{{"description": "{}"}}"#, "ä".repeat(3_000));
        assert_eq!(
            sentence(&exchange(500, &long, false)).chars().count(),
            1_000
        );
        let silent = TransportError::TimedOut(Duration::from_secs(7));
        let silent = CatalogExchange::of(Err(silent), false);
        assert_eq!(
            sentence(&silent),
            "the broker gives no answer to the request for its catalog: no whole answer came within 7s"
        );
        assert_eq!(silent.outcome, ExchangeOutcome::Unanswered);
    }

    #[test]
    fn a_401_to_a_read_of_the_catalog_says_that_the_credentials_are_refused() {
        let refused = exchange(401, "{}", true);
        assert_eq!(refused.outcome, ExchangeOutcome::Unauthorized);
    }
}
