//! One request and its outcome, kept as evidence.

use serde_json::Value;
use std::fmt;
use std::time::{Duration, SystemTime};
use sutler_client::RetryAfter;
use sutler_client::wire::{Answer, Request, TransportError};

/// Maximum characters of a broker's description quoted in our messages.
const DESCRIPTION_CHARACTERS_MAX: usize = 200;

/// A request with its answer, or with the reason why there is none.
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The answer, or the error.
    pub outcome: Result<Answer, TransportError>,
    /// The body, if it is JSON.
    json: Option<Value>,
}

/// Without bodies: they contain credentials. The report shows them redacted.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("request", &self.request)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    pub(crate) fn new(request: Request, outcome: Result<Answer, TransportError>) -> Self {
        let json = outcome
            .as_ref()
            .ok()
            .and_then(|answer| serde_json::from_slice(&answer.body).ok());
        Self {
            request,
            outcome,
            json,
        }
    }

    /// A sample answer, for tests of rules.
    #[cfg(test)]
    pub(crate) fn answered(status: u16, body: &Value) -> Self {
        let answer = Answer {
            status,
            headers: Default::default(),
            body: body.to_string().into(),
            took: std::time::Duration::ZERO,
        };
        let request = Request::new(sutler_client::wire::Method::Put, &[]);
        Self::new(request, Ok(answer))
    }

    /// The status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.outcome.as_ref().ok().map(|answer| answer.status)
    }

    /// The answer's body, if it is JSON.
    pub fn json(&self) -> Option<&Value> {
        self.json.as_ref()
    }

    /// A field of the answer's body.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.json.as_ref()?.get(name)
    }

    /// A header of the answer.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.outcome.as_ref().ok()?.header(name)
    }

    /// Wait before the next request: the broker's `Retry-After`, but at least our own pause, so that no
    /// broker can make us send requests without end, and at most
    /// `most`.
    pub(crate) fn wait(&self, pause: Duration, most: Duration) -> Duration {
        let requested = self.header("Retry-After").and_then(RetryAfter::parse);
        let requested = requested.map(|it| it.from_now(SystemTime::now()));
        requested.unwrap_or(pause).max(pause).min(most)
    }

    /// Whether the status is one of these.
    pub fn is(&self, statuses: &[u16]) -> bool {
        self.status().is_some_and(|it| statuses.contains(&it))
    }

    /// Fails with a sentence unless the status is one of these.
    pub(crate) fn must_be(&self, statuses: &[u16]) -> Result<(), String> {
        if self.is(statuses) {
            return Ok(());
        }
        let expected: Vec<String> = statuses.iter().map(u16::to_string).collect();
        Err(format!(
            "expected {}, got {}",
            expected.join(" or "),
            self.got()
        ))
    }

    /// Fails with a sentence unless the request was refused: 4xx.
    pub(crate) fn must_be_refused(&self) -> Result<(), String> {
        match self.status() {
            Some(400..=499) => Ok(()),
            _ => Err(format!("expected a refusal (4xx), got {}", self.got())),
        }
    }

    /// Fails with a sentence unless the answer is this status with this `error`.
    pub(crate) fn must_be_error(&self, status: u16, error: &str) -> Result<(), String> {
        self.must_be(&[status])?;
        match self.field("error").and_then(Value::as_str) {
            Some(code) if code == error => Ok(()),
            Some(code) => Err(format!("expected error {error:?}, got {code:?}")),
            None => Err(format!("expected error {error:?}, and there is none")),
        }
    }

    /// Whether this answer to a poll reports an operation in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.is(&[200]) && self.field("state").and_then(Value::as_str) == Some("in progress")
    }

    /// The operation that a 202 named.
    pub(crate) fn operation(&self) -> Option<&str> {
        self.field("operation").and_then(Value::as_str)
    }

    /// Summary of the outcome with the broker's description.
    pub(crate) fn describe(&self) -> String {
        match self.field("description").and_then(Value::as_str) {
            Some(text) => {
                let short: String = text.chars().take(DESCRIPTION_CHARACTERS_MAX).collect();
                format!("{} ({short})", self.got())
            }
            None => self.got(),
        }
    }

    /// Short summary of the outcome.
    pub(crate) fn got(&self) -> String {
        match &self.outcome {
            Ok(answer) => answer.status.to_string(),
            Err(reason) => reason.to_string(),
        }
    }
}
