//! An exchange for display: redacted and limited in length.

use super::redact::Redaction;
use crate::exchange::Exchange;
use serde_json::Value;
use sutler_client::wire::{Answer, Proof, Request};

/// Longest body shown, in lines and in characters of each.
const LINES_MAX: usize = 40;
const LINE_CHARS_MAX: usize = 200;
/// Longest request line and longest header shown, in characters.
const HEAD_CHARS_MAX: usize = 1_000;
/// Maximum headers shown.
const HEADERS_MAX: usize = 40;

/// A request and its answer, ready for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownExchange {
    /// The request: method and target, headers, an empty line, the body.
    pub request: Vec<String>,
    /// The answer: its status, headers, an empty line, the body; or the reason why there is none.
    pub answer: Vec<String>,
}

impl ShownExchange {
    pub(crate) fn of(exchange: &Exchange, redaction: &Redaction) -> Self {
        let redaction = redaction.with(exchange);
        let answer = match &exchange.outcome {
            Ok(answer) => answered(exchange, answer, &redaction),
            Err(reason) => vec![redaction.text(&reason.to_string())],
        };
        Self {
            request: request_lines(&exchange.request, &redaction),
            answer,
        }
    }
}

fn request_lines(request: &Request, redaction: &Redaction) -> Vec<String> {
    let mut lines = vec![head(&format!("{} {}", request.method, request.target()))];
    match request.proof {
        Proof::Right => {}
        Proof::Missing => lines.push("(without credentials)".to_owned()),
        Proof::Wrong => lines.push("(with wrong credentials)".to_owned()),
    }
    for (name, value) in request.headers.iter().take(HEADERS_MAX) {
        lines.push(head(&format!("{name}: {}", redaction.header(name, value))));
    }
    if let Some(body) = &request.body {
        lines.push(String::new());
        match serde_json::from_slice::<Value>(body) {
            Ok(json) => lines.extend(pretty(&json, redaction)),
            Err(_) => lines.extend(raw(body, redaction)),
        }
    }
    lines
}

fn answered(exchange: &Exchange, answer: &Answer, redaction: &Redaction) -> Vec<String> {
    let mut lines = vec![answer.status.to_string()];
    for (name, value) in answer.headers.iter().take(HEADERS_MAX) {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = redaction.header(name.as_str(), &value);
        lines.push(head(&format!("{name}: {value}")));
    }
    if answer.body.is_empty() {
        return lines;
    }
    lines.push(String::new());
    let bytes = answer.body.len();
    match exchange.json() {
        Some(json) => lines.extend(pretty(json, redaction)),
        // An unreadable body cannot be searched for credentials.
        None if may_hold_credentials(exchange) => {
            lines.push(format!(
                "({bytes} bytes that are not JSON; not shown, they may hold credentials)"
            ));
        }
        None => lines.extend(raw(&answer.body, redaction)),
    }
    lines
}

fn may_hold_credentials(exchange: &Exchange) -> bool {
    let binds = exchange
        .request
        .path
        .iter()
        .any(|it| it == "service_bindings");
    binds && exchange.status().is_some_and(|it| it < 300)
}

fn pretty(json: &Value, redaction: &Redaction) -> Vec<String> {
    let text = serde_json::to_string_pretty(&redaction.value(json)).unwrap_or_default();
    bounded(&text)
}

fn raw(bytes: &[u8], redaction: &Redaction) -> Vec<String> {
    let most = &bytes[..bytes.len().min(LINES_MAX * LINE_CHARS_MAX)];
    bounded(&redaction.text(&String::from_utf8_lossy(most)))
}

fn bounded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().take(LINES_MAX).map(short).collect();
    match text.lines().count().saturating_sub(LINES_MAX) {
        0 => {}
        more => lines.push(format!("… and {more} more lines")),
    }
    lines
}

fn short(line: &str) -> String {
    cut(line, LINE_CHARS_MAX)
}

fn head(line: &str) -> String {
    cut(line, HEAD_CHARS_MAX)
}

fn cut(line: &str, most: usize) -> String {
    let mut kept: String = line.chars().take(most).collect();
    if line.chars().nth(most).is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::ShownExchange;
    use crate::exchange::Exchange;
    use crate::report::Redaction;
    use sutler_client::wire::{Answer, Method, Request};

    fn exchange(path: &[&str], body: &str) -> Exchange {
        let answer = Answer {
            status: 201,
            headers: Default::default(),
            body: body.to_owned().into(),
            took: Default::default(),
        };
        Exchange::new(Request::new(Method::Put, path), Ok(answer))
    }

    #[test]
    fn long_bodies_are_truncated_with_a_note() {
        let items: Vec<usize> = (0..100).collect();
        let text = serde_json::to_string(&items).expect("a list");
        let shown = ShownExchange::of(&exchange(&["v2"], &text), &Redaction::default());
        assert_eq!(
            shown.answer.last().map(String::as_str),
            Some("… and 62 more lines")
        );
        assert!(shown.answer.len() < 50);
    }

    #[test]
    fn an_unreadable_body_with_possible_credentials_is_not_shown() {
        let path = ["v2", "service_instances", "i", "service_bindings", "b"];
        let shown = ShownExchange::of(
            &exchange(&path, "{\"credentials\":{\"p\":\"hush-hush\"}"),
            &Redaction::default(),
        );
        assert!(!format!("{shown:?}").contains("hush"), "{shown:?}");
    }
}
