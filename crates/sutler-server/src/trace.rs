//! Trace context of requests, by the W3C header.
//!
//! This crate knows the header and where spans begin, but no exporter. The program connects spans and contexts by a
//! [`Propagation`], once, when it sets its subscriber. Without one, the context of a request is only passed on. Spans of
//! requests are opened in `request_context.rs`.

use hyper::header::HeaderMap;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::OnceLock;
use tracing::Span;

/// Name of the W3C header.
const TRACEPARENT: &str = "traceparent";

/// A trace and the span in it that caused a request: version 00 of the W3C header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent(String);

impl TraceParent {
    /// Parses a header. Later versions may append fields; only the known ones are read.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let known = text.get(..55)?;
        let ends = bytes.len() == 55 || (bytes.get(55) == Some(&b'-') && !text.starts_with("00"));
        let mut parts = known.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let sound = ends
            && parts.next().is_none()
            && is_hex(version, 2)
            && version != "ff"
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(flags, 2)
            && [trace, span].iter().all(|id| id.bytes().any(|b| b != b'0'));
        sound.then(|| Self(format!("00-{trace}-{span}-{flags}")))
    }

    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The trace id, 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.0[3..35]
    }

    /// Context of a request; an invalid header is ignored, as W3C demands.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get(TRACEPARENT)?.to_str().ok()?)
    }
}

fn is_hex(text: &str, digits: usize) -> bool {
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == digits && text.bytes().all(lower)
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a traceparent of W3C")
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Connects spans and trace contexts.
pub trait Propagation: Send + Sync + 'static {
    /// Makes a span that was not entered yet a child of a context.
    fn join(&self, span: &Span, parent: &TraceParent);

    /// The context of a span; `None` if it is not traced.
    fn context_of(&self, span: &Span) -> Option<TraceParent>;
}

static PROPAGATION: OnceLock<Box<dyn Propagation>> = OnceLock::new();

/// Sets the propagation of the process. Returns whether it was the first.
pub fn propagate_with(propagation: impl Propagation) -> bool {
    PROPAGATION.set(Box::new(propagation)).is_ok()
}

/// Makes a new span a child of a context.
pub fn join_trace(span: &Span, parent: Option<&TraceParent>) {
    if let (Some(propagation), Some(parent)) = (PROPAGATION.get(), parent) {
        propagation.join(span, parent);
    }
}

/// The context for work that a span starts: the span's own, else the given one.
pub(crate) fn onward(span: &Span, given: Option<TraceParent>) -> Option<TraceParent> {
    let own = PROPAGATION.get().and_then(|it| it.context_of(span));
    own.or(given)
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_parent_is_read_as_w3c_writes_it() {
        let parsed = TraceParent::parse(GOOD).unwrap();
        assert_eq!(parsed.as_str(), GOOD);
        assert_eq!(parsed.trace_id(), "0af7651916cd43dd8448eb211c80319c");
    }

    #[test]
    fn later_versions_are_read_by_their_known_fields() {
        let later = GOOD.replacen("00", "cc", 1) + "-more";
        assert_eq!(TraceParent::parse(&later).unwrap().as_str(), GOOD);
    }

    #[test]
    fn an_invalid_trace_parent_is_ignored() {
        let zero_trace = GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = GOOD.replace("b7ad6b7169203331", &"0".repeat(16));
        let cases = [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{GOOD}0"),
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replace('-', "_"),
            &zero_trace,
            &zero_span,
            &"ä".repeat(30),
        ];
        for text in cases {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
