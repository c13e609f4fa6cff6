//! Reads JSON bodies: their media type, their form, and where a fault is. No value is ever quoted: it may be a secret.

use super::problem::Problem;
use super::problem_word::ProblemWord;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sutler_osb::{BodyError, from_json};

/// Media type of bodies.
const JSON: &str = "application/json";
/// Media type of merge patches (RFC 7396), accepted by PATCH besides [`JSON`].
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Longest reason of a person, in characters.
const REASON_CHARS_MAX: usize = 1_000;

/// Media types that a body may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyMedia {
    /// JSON.
    Json,
    /// A merge patch, which is JSON too.
    MergePatch,
}

/// Reads a body.
pub(crate) fn read_json<T: DeserializeOwned>(
    media: BodyMedia,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<T, Problem> {
    check_media(media, headers)?;
    from_json(body).map_err(Problem::from)
}

/// The body of an order: why it is given, and what it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OrderBody {
    /// Why, in one line.
    pub reason: Option<String>,
    /// The intent, of a rollback.
    pub seq: Option<u64>,
    /// Whether deletes are refused from now on, of a protection.
    pub protected: Option<bool>,
}

/// Reads the body of an order; it may be left out.
pub(crate) fn read_order(headers: &HeaderMap, body: &[u8]) -> Result<OrderBody, Problem> {
    if body.is_empty() {
        return Ok(OrderBody::default());
    }
    let mut order: OrderBody = read_json(BodyMedia::Json, headers, body)?;
    let reason = order.reason.take().map(|it| it.trim().to_owned());
    order.reason = reason.filter(|it| !it.is_empty());
    if let Some(reason) = &order.reason
        && (reason.chars().count() > REASON_CHARS_MAX || reason.contains(char::is_control))
    {
        let sentence = format!("must be one line of at most {REASON_CHARS_MAX} characters");
        return Err(Problem::invalid_field("/reason", sentence));
    }
    Ok(order)
}

impl OrderBody {
    /// The reason of an order that must have one.
    pub(crate) fn required_reason(&self) -> Result<&str, Problem> {
        let reason = self.reason.as_deref();
        reason.ok_or_else(|| Problem::invalid_field("/reason", "a reason must be given"))
    }
}

/// Refuses a body of another media type.
pub(crate) fn check_media(media: BodyMedia, headers: &HeaderMap) -> Result<(), Problem> {
    let named = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let named = named.and_then(|it| it.split(';').next()).unwrap_or("");
    let is = |accepted: &str| named.trim().eq_ignore_ascii_case(accepted);
    let (accepted, sentence) = match media {
        BodyMedia::Json => (is(JSON), "The body must be application/json."),
        BodyMedia::MergePatch => (
            is(JSON) || is(MERGE_PATCH),
            "The body must be application/merge-patch+json or application/json.",
        ),
    };
    match accepted {
        true => Ok(()),
        false => Err(Problem::new(ProblemWord::UnsupportedMediaType, sentence)),
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Missing { path } => Self::invalid_field(&pointer(&path), "must be given"),
            BodyError::Field { path, reason } => Self::invalid_field(&pointer(&path), reason),
            BodyError::Whole { reason } => Self::invalid_field("", reason),
            error @ (BodyError::Empty
            | BodyError::NotJson { .. }
            | BodyError::NotAnObject
            | BodyError::TooDeep
            | BodyError::Reserved) => Self::invalid(error.to_string()),
        }
    }
}

/// The JSON pointer of a path such as `parametersFrom[0].key`.
fn pointer(path: &str) -> String {
    let mut pointer = String::with_capacity(path.len() + 1);
    for segment in path.split(['.', '[']) {
        pointer.push('/');
        pointer.push_str(segment.trim_end_matches(']'));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::{BodyMedia, OrderBody, REASON_CHARS_MAX, read_json, read_order};
    use crate::api::problem::Problem;
    use axum::http::{HeaderMap, HeaderValue};
    use serde::Deserialize;
    use serde_json::{Value, json};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        names: Vec<u8>,
    }

    fn headers(media: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert("content-type", HeaderValue::from_static(media));
        }
        headers
    }

    fn read(media: &'static str, body: &str) -> Result<Sample, Value> {
        let read = read_json(BodyMedia::Json, &headers(media), body.as_bytes());
        read.map_err(|problem: Problem| problem.document())
    }

    #[test]
    fn a_body_is_json_and_says_so() {
        let sample = Sample { names: vec![1] };
        for media in ["application/json", "Application/JSON; charset=utf-8"] {
            assert_eq!(
                read(media, r#"{"names": [1]}"#),
                Ok(Sample { names: vec![1] })
            );
        }
        for media in [
            "",
            "text/plain",
            "application/merge-patch+json",
            "application/jsonp",
        ] {
            let problem = read(media, r#"{"names": [1]}"#).expect_err("another media type");
            assert_eq!(problem["status"], 415, "{media}");
        }
        let patch = headers("application/merge-patch+json");
        let read = read_json(BodyMedia::MergePatch, &patch, br#"{"names": [1]}"#);
        assert_eq!(read.ok(), Some(sample));
    }

    #[test]
    fn a_fault_is_named_by_its_pointer_and_without_its_value() {
        for (body, pointer) in [
            (r#"{"names": [1, "s3cret"]}"#, "/names/1"),
            (r#"{}"#, "/names"),
        ] {
            let problem = read("application/json", body).expect_err("a fault");
            assert_eq!(problem["type"], "urn:sutler:invalid");
            assert_eq!(problem["violations"][0]["pointer"], pointer);
            assert!(!problem.to_string().contains("s3cret"), "{problem}");
        }
        for body in [
            "",
            "[]",
            "{",
            r#"{"names": [1], "names": [2]}"#,
            r#"{"other": 1}"#,
        ] {
            let problem = read("application/json", body).expect_err("a fault");
            assert_eq!(problem["status"], 400, "{body}");
        }
    }

    #[test]
    fn an_order_may_have_no_body_and_its_reason_is_one_short_line() {
        let order = |body: &str| read_order(&headers("application/json"), body.as_bytes()).ok();
        let without_media = read_order(&HeaderMap::new(), b"").ok();
        assert_eq!(without_media, Some(OrderBody::default()));
        let padded = order(r#"{"reason": "  broker is gone "}"#).expect("an order");
        assert_eq!(padded.reason.as_deref(), Some("broker is gone"));
        assert!(padded.required_reason().is_ok());
        let empty = order(r#"{"reason": " "}"#).expect("an order");
        assert!(empty.required_reason().is_err());
        assert!(order(r#"{"reason": "a\nb"}"#).is_none());
        assert!(order(r#"{"why": "x"}"#).is_none());
        let long = json!({ "reason": "x".repeat(REASON_CHARS_MAX + 1) });
        assert!(order(&long.to_string()).is_none());
    }
}
