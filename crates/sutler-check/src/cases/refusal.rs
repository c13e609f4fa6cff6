//! Bodies that must be refused, and the expected refusals. Pure.
//!
//! Sent by `refusals.rs` and `update_refusals.rs`.

use crate::case::Case;
use crate::exchange::Exchange;
use crate::params::InvalidSample;
use serde_json::{Value, json};

/// An id that is in no catalog.
pub(crate) const NOWHERE: &str = "sutler-check-does-not-exist";
/// A version that is in no catalog.
const NO_VERSION: &str = "0.0.1-sutler-check";

/// Expected form of a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedRefusal {
    /// 400.
    BadRequest,
    /// 422.
    Unprocessable,
    /// 422 with this `error`.
    Error(&'static str),
    /// Any 4xx.
    Refused,
}

/// A body that must be refused.
pub(crate) struct BadBody {
    pub case: &'static Case,
    /// The fault, to follow "with".
    pub what: String,
    /// Body; not necessarily JSON.
    pub body: String,
    pub expected: ExpectedRefusal,
}

impl BadBody {
    pub(crate) fn new(
        case: &'static Case,
        what: &str,
        body: &Value,
        expected: ExpectedRefusal,
    ) -> Self {
        Self {
            case,
            what: what.to_owned(),
            body: body.to_string(),
            expected,
        }
    }

    /// Bodies with parameters that violate the schema, at most `most`.
    pub(crate) fn unfit(
        case: &'static Case,
        invalid: &[InvalidSample],
        most: usize,
        good: &Value,
    ) -> Vec<Self> {
        let bad = invalid.iter().take(most).map(|it| {
            let body = with(good, "parameters", it.parameters.clone());
            let what = format!("parameters {}", it.what);
            Self::new(case, &what, &body, ExpectedRefusal::BadRequest)
        });
        bad.collect()
    }

    /// A body with a version that is not in the catalog.
    pub(crate) fn of_no_version(case: &'static Case, good: &Value) -> Self {
        let body = with(good, "maintenance_info", json!({"version": NO_VERSION}));
        let what = "a version that the catalog does not have";
        Self::new(
            case,
            what,
            &body,
            ExpectedRefusal::Error("MaintenanceInfoConflict"),
        )
    }

    /// Checks that the answer is the expected refusal.
    pub(crate) fn check(&self, answer: &Exchange) -> Result<(), String> {
        let judgement = match self.expected {
            ExpectedRefusal::BadRequest => answer.must_be(&[400]),
            ExpectedRefusal::Unprocessable => answer.must_be(&[422]),
            ExpectedRefusal::Error(error) => answer.must_be_error(422, error),
            ExpectedRefusal::Refused => answer.must_be_refused(),
        };
        judgement.map_err(|message| format!("with {}: {message}", self.what))
    }
}

/// A body without a field.
pub(crate) fn without(body: &Value, field: &str) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove(field);
    }
    body
}

/// A body with another value in a field.
pub(crate) fn with(body: &Value, field: &str, value: impl Into<Value>) -> Value {
    let mut body = body.clone();
    body[field] = value.into();
    body
}

#[cfg(test)]
mod tests {
    use super::{BadBody, ExpectedRefusal};
    use crate::case::Case;
    use crate::exchange::Exchange;
    use serde_json::json;

    const CASE: Case = Case::must("some", "B-124", "Something is refused.");

    #[test]
    fn a_refusal_must_have_the_expected_form_and_the_message_names_the_request() {
        let judged = |expected, status, error: &str| {
            let bad = BadBody::new(&CASE, "half a body", &json!({}), expected);
            bad.check(&Exchange::answered(status, &json!({"error": error})))
        };
        assert_eq!(judged(ExpectedRefusal::BadRequest, 400, ""), Ok(()));
        assert_eq!(judged(ExpectedRefusal::Unprocessable, 422, ""), Ok(()));
        assert_eq!(judged(ExpectedRefusal::Error("X"), 422, "X"), Ok(()));
        assert_eq!(judged(ExpectedRefusal::Refused, 404, ""), Ok(()));
        for (expected, status) in [
            (ExpectedRefusal::BadRequest, 422),
            (ExpectedRefusal::Unprocessable, 400),
            (ExpectedRefusal::Error("X"), 422),
            (ExpectedRefusal::Refused, 201),
            (ExpectedRefusal::Refused, 500),
        ] {
            let message = judged(expected, status, "Y").unwrap_err();
            assert!(
                message.starts_with("with half a body: expected "),
                "{message}"
            );
        }
    }
}
