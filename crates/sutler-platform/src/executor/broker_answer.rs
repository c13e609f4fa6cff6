//! What the answer to a sent request means: the same for instances and bindings.

use super::exchange::BrokerImpression;
use crate::lifecycle::intent::BrokerStatement;
use jiff::Timestamp;
use sutler_client::{
    Answer, BrokerMessage, Meaning, OperationEvent, Reply, ReplyContext, Success, classify,
};
use sutler_osb::OperationKind;

/// Longest description of a moment that is kept, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Reads a reply: what it means for the resource, and what it says of the broker.
pub(super) fn meaning_of<B>(
    kind: OperationKind,
    begun: Timestamp,
    reply: Reply<B>,
    context: &ReplyContext,
) -> (Meaning<B>, BrokerImpression) {
    let impression = BrokerImpression::of(begun, &reply);
    let meaning = classify(kind, OperationEvent::Reply(reply), context);
    let event = meaning.event();
    (meaning, impression.with_event(event))
}

/// The same reply with another form of its body.
pub(super) fn with_body<A, B>(reply: Reply<A>, convert: impl FnOnce(A) -> B) -> Reply<B> {
    match reply {
        Reply::NoAnswer(error) => Reply::NoAnswer(error),
        Reply::Answer {
            answer,
            retry_after,
        } => Reply::Answer {
            answer: match answer {
                Answer::Done(status, body) => Answer::Done(status, convert(body)),
                Answer::Accepted(accepted) => Answer::Accepted(accepted),
                Answer::Malformed(status, error) => Answer::Malformed(status, error),
                Answer::Other(status, body) => Answer::Other(status, body),
            },
            retry_after,
        },
    }
}

/// What the broker said, for the journal that people read.
pub(super) fn statement_of<B>(meaning: &Meaning<B>) -> BrokerStatement {
    let word = |text: &str| BrokerStatement {
        status: None,
        error: None,
        description: Some(text.to_owned()),
    };
    match meaning {
        Meaning::Succeeded(Success::Gone) => word("the broker confirmed that nothing is left"),
        Meaning::Succeeded(_) => word("the broker confirmed it"),
        Meaning::Polling { .. } => word("the broker accepted it and works on it"),
        Meaning::Rejected { message, .. }
        | Meaning::Retry { message, .. }
        | Meaning::Unknown { message, .. }
        | Meaning::Failed { message, .. } => BrokerStatement::from(message),
    }
}

/// The message of a broker, if the meaning has one.
pub(super) fn message_mut<B>(meaning: &mut Meaning<B>) -> Option<&mut BrokerMessage> {
    match meaning {
        Meaning::Rejected { message, .. }
        | Meaning::Retry { message, .. }
        | Meaning::Unknown { message, .. }
        | Meaning::Failed { message, .. } => Some(message),
        Meaning::Succeeded(_) | Meaning::Polling { .. } => None,
    }
}

/// A text of the broker, as far as it is shown.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(DESCRIPTION_CHARS_MAX).collect()
}
