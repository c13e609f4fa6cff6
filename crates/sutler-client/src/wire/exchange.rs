//! One request and its answer, or the error in place of one. Plain data; `connection.rs` sends.

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Longest path and query that are sent, in bytes, encoded: more than servers read, whose limits are 8 KiB or so.
const TARGET_BYTES_MAX: usize = 16 * 1024;

/// The methods of the protocol, and `POST`, which a broker has to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
    /// Not part of the protocol.
    Post,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Post => "POST",
        })
    }
}

/// Credentials that a request carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// The connection's own.
    #[default]
    Right,
    /// None at all.
    Missing,
    /// Credentials of the same kind that are always wrong.
    Wrong,
}

/// An outgoing request. Ids are passed decoded; path and query are encoded here.
/// `Debug` shows neither header values nor the body: both may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// The path segments after the broker's URL, decoded.
    pub path: Vec<String>,
    /// Names and values, decoded, in order; a name may be repeated.
    pub query: Vec<(String, String)>,
    /// Names and values. Authentication is added by the connection.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Bytes>,
    /// Credentials to send.
    pub proof: Proof,
}

impl Request {
    /// A request to a path, with nothing else.
    pub fn new(method: Method, path: &[&str]) -> Self {
        Self {
            method,
            path: path.iter().map(|it| (*it).to_owned()).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            proof: Proof::Right,
        }
    }

    /// With one more query parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a header, which replaces others of the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self = self.without_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a header.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// With a body of bytes; its content type is a header like others.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// With other credentials.
    #[must_use]
    pub fn proof(mut self, proof: Proof) -> Self {
        self.proof = proof;
        self
    }

    /// The reason why this request cannot be sent unchanged, if any, with advice.
    pub(crate) fn unsendable(&self) -> Option<String> {
        // In any encoding, URL parsers resolve these segments to another path.
        let is_step = |segment: &&String| matches!(segment.as_str(), "." | "..");
        if let Some(segment) = self.path.iter().find(is_step) {
            return Some(format!(
                "{segment:?} cannot be sent as an id, because URLs read it as a step between folders; choose another id"
            ));
        }
        let length = self.target().len();
        if length > TARGET_BYTES_MAX {
            return Some(format!(
                "path and query have {length} bytes, and at most {TARGET_BYTES_MAX} are sent; use shorter ids"
            ));
        }
        let is_none = |(name, value): &&(String, String)| {
            HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err()
        };
        let (name, _) = self.headers.iter().find(is_none)?;
        Some(format!(
            "the header {name:?} holds what no header may hold, such as a line break; leave that out"
        ))
    }

    /// Path and query, encoded.
    pub fn target(&self) -> String {
        let mut text = String::new();
        for segment in &self.path {
            text.push('/');
            encode(segment, &mut text);
        }
        for (index, (name, value)) in self.query.iter().enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            encode(name, &mut text);
            text.push('=');
            encode(value, &mut text);
        }
        text
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("target", &self.target())
            .field("headers", &names)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("proof", &self.proof)
            .finish()
    }
}

/// Everything but RFC 3986's unreserved characters is encoded (P-006).
pub(super) fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// A complete answer. `Debug` shows neither header values nor the body, which may contain credentials.
#[derive(Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// Time from the first byte sent to the last one received.
    pub took: Duration,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("took", &self.took)
            .finish()
    }
}

impl Answer {
    /// Creates an answer without a connection, e.g. for tests. Invalid headers are left out.
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Self {
        let parsed = |(name, value): &(&str, &str)| {
            let name = HeaderName::try_from(*name).ok()?;
            Some((name, HeaderValue::try_from(*value).ok()?))
        };
        Self {
            status,
            headers: headers.iter().filter_map(parsed).collect(),
            body: body.into(),
            took: Duration::ZERO,
        }
    }

    /// The first value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Missing answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection: nothing was sent.
    #[error("no connection: {0}")]
    NotSent(String),
    /// There was no place for it in this process: nothing was sent, and nothing was asked of the server.
    #[error("not sent yet: {0}")]
    NoPlace(String),
    /// The request was sent, and no complete answer arrived in time.
    #[error("no whole answer within {0:?}")]
    TimedOut(Duration),
    /// The connection ended before the answer was complete.
    #[error("the connection was closed before a whole answer had come")]
    Closed,
    /// The answer was not HTTP.
    #[error("the answer is not HTTP: {0}")]
    Garbage(String),
    /// The answer exceeds the size limit.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

#[cfg(test)]
mod tests {
    use super::{Answer, Method, Request};

    #[test]
    fn debug_output_of_requests_and_answers_has_no_secrets() {
        let request = Request::new(Method::Put, &["v2"])
            .header("X-Secret", "hush")
            .body(r#"{"password":"hush"}"#);
        let answer = Answer::new(200, &[("X-Secret", "hush")], r#"{"password":"hush"}"#);
        let printed = format!("{request:?} {answer:?}");
        assert!(
            printed.contains("X-Secret") && printed.contains("200"),
            "{printed}"
        );
        assert!(!printed.contains("hush"), "{printed}");
    }

    #[test]
    fn ids_of_any_kind_are_one_segment_and_one_value() {
        let request = Request::new(Method::Get, &["v2", "a/b ä"]).query("operation", "x&y=z?");
        assert_eq!(
            request.target(),
            "/v2/a%2Fb%20%C3%A4?operation=x%26y%3Dz%3F"
        );
    }
}
