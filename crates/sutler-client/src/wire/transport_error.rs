//! Classifies errors of reqwest: either nothing was sent, or the outcome is unknown.
//!
//! Sends nothing itself; `connection.rs` does.

use super::exchange::TransportError;
use super::host_lookup::LookupLimitError;
use std::error::Error;
use std::io;
use std::time::Duration;

/// Texts of TLS alerts by which a server refuses a client during the handshake. With TLS 1.3 they may
/// arrive after the client has begun to send, but a server that refuses has not read the request.
const REFUSED_HANDSHAKE: [&str; 6] = [
    "certificate",
    "unknownca",
    "accessdenied",
    "handshakefailure",
    "decrypterror",
    "protocolversion",
];

/// Texts of errors about a connection that ended too early.
const CLOSED: [&str; 7] = [
    "closed",
    "incomplete",
    "eof",
    "reset",
    "cancel",
    // HTTP/2: the server ends one stream, or the whole connection without an error.
    "refused stream",
    "not a result of an error",
];

/// Classifies an error of reqwest.
pub(super) fn classify_error(error: &reqwest::Error, answer_within: Duration) -> TransportError {
    if error.is_builder() {
        // URL and headers were checked before; only the credentials are left.
        let words = "the user, password or token holds what no header may hold; replace it";
        return TransportError::NotSent(words.to_owned());
    }
    if has_cause::<LookupLimitError>(error) {
        return TransportError::NoPlace(LookupLimitError.to_string());
    }
    if error.is_connect() {
        return TransportError::NotSent(unreachable(error));
    }
    if error.is_timeout() {
        return TransportError::TimedOut(answer_within);
    }
    let words = innermost(error);
    if is_refused_handshake(&words) {
        return TransportError::NotSent(format!("the server refused the TLS connection: {words}"));
    }
    match io_kind(error) {
        Some(io::ErrorKind::TimedOut) => TransportError::TimedOut(answer_within),
        Some(_) => TransportError::Closed,
        None if contains_any(&words, &CLOSED) => TransportError::Closed,
        None => TransportError::Garbage(words),
    }
}

/// Classifies an error of reqwest after the head of an answer has arrived: whatever its words, the request was sent.
pub(super) fn classify_answer_error(
    error: &reqwest::Error,
    answer_within: Duration,
) -> TransportError {
    once_answered(classify_error(error, answer_within))
}

fn once_answered(error: TransportError) -> TransportError {
    match error {
        TransportError::NotSent(_) | TransportError::NoPlace(_) => TransportError::Closed,
        TransportError::TimedOut(_)
        | TransportError::Closed
        | TransportError::Garbage(_)
        | TransportError::TooLong(_) => error,
    }
}

fn unreachable(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it could not be set up in time; is the address right, and no firewall in the way?"
            .to_owned();
    }
    innermost(error)
}

fn is_refused_handshake(words: &str) -> bool {
    let alert = "received fatal alert";
    words.contains(alert) && contains_any(words, &REFUSED_HANDSHAKE)
}

fn contains_any(words: &str, parts: &[&str]) -> bool {
    let words = words.to_lowercase();
    parts.iter().any(|it| words.contains(it))
}

/// Whether an error has a cause of this type; causes inside of I/O errors count.
fn has_cause<E: Error + 'static>(error: &dyn Error) -> bool {
    let mut cause = error.source();
    while let Some(inner) = cause {
        let wrapped = inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if inner.is::<E>() || wrapped.is_some_and(|it| it.is::<E>()) {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn io_kind(error: &dyn Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = inner.source();
    }
    None
}

/// The innermost cause; the outer ones only repeat the URL.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::{LookupLimitError, TransportError, has_cause, once_answered};
    use std::io;
    use std::time::Duration;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct OuterError(#[source] io::Error);

    #[test]
    fn a_cause_is_found_inside_of_io_errors() {
        let limit = OuterError(io::Error::other(LookupLimitError));
        assert!(has_cause::<LookupLimitError>(&limit));
        let other = OuterError(io::ErrorKind::NotFound.into());
        assert!(!has_cause::<LookupLimitError>(&other));
    }

    #[test]
    fn a_request_whose_answer_began_was_sent() {
        let words = || "received fatal alert: AccessDenied".to_owned();
        let error = once_answered(TransportError::NotSent(words()));
        assert_eq!(error, TransportError::Closed);
        for error in [
            TransportError::TimedOut(Duration::from_secs(1)),
            TransportError::Closed,
            TransportError::Garbage(words()),
            TransportError::TooLong(1),
        ] {
            assert_eq!(once_answered(error.clone()), error);
        }
    }
}
