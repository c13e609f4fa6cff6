//! Redacts reports: credentials, secrets of dashboard clients, parameters of the caller, and passwords in
//! URLs. Pure.

use crate::exchange::Exchange;
use serde_json::{Map, Value};

/// Replacement for a secret.
pub(crate) const REDACTED: &str = "[redacted]";
/// Shorter texts are not searched for in sentences: they would be found everywhere.
const TEXT_CHARS_MIN: usize = 4;
/// Maximum texts searched for.
const TEXTS_MAX: usize = 1_000;
/// Members whose values are secret, with everything below them.
const SECRET_MEMBERS: [&str; 1] = ["credentials"];
/// Headers whose values are secret.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// Secrets that must not be shown.
#[derive(Clone, Default)]
pub struct Redaction {
    /// Whether parameters are the caller's, and therefore redacted.
    parameters: bool,
    /// Texts that are redacted everywhere, longest first.
    texts: Vec<String>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redaction")
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl Redaction {
    /// Redacts these parameters, wherever a broker may repeat them.
    pub(crate) fn of<'a>(given: impl Iterator<Item = &'a Map<String, Value>>) -> Self {
        let mut redaction = Self::default();
        for parameters in given {
            redaction.parameters = true;
            for value in parameters.values() {
                texts(value, &mut redaction.texts);
            }
        }
        redaction.settled()
    }

    /// The names of parameters without their values.
    pub(crate) fn hollow(parameters: &Map<String, Value>) -> Value {
        hollow(&Value::Object(parameters.clone()))
    }

    /// Adds the secrets of this exchange, for sentences about it.
    pub(crate) fn with(&self, exchange: &Exchange) -> Self {
        let mut redaction = self.clone();
        if let Some(answer) = exchange.json() {
            secrets(answer, &mut redaction.texts);
        }
        redaction.settled()
    }

    fn settled(mut self) -> Self {
        self.texts.sort_by_key(|it| std::cmp::Reverse(it.len()));
        self.texts.dedup();
        self.texts.truncate(TEXTS_MAX);
        self
    }

    /// A text without secrets and without control sequences for terminals.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = without_userinfo(text);
        for secret in &self.texts {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
        text.chars().map(plain).collect()
    }

    /// A value without secrets.
    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (self.text(name), self.member(name, value)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.iter().map(|it| self.value(it)).collect(),
            Value::String(text) => self.text(text).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn member(&self, name: &str, value: &Value) -> Value {
        if is_secret(name, value) || (name == "parameters" && self.parameters) {
            return hollow(value);
        }
        match (name, value) {
            ("dashboard_client", Value::Object(client)) => client
                .iter()
                .map(|(name, value)| match name.as_str() {
                    "secret" => (name.clone(), hollow(value)),
                    _ => (name.clone(), self.value(value)),
                })
                .collect::<Map<_, _>>()
                .into(),
            _ => self.value(value),
        }
    }

    /// The value of a header without secrets.
    pub(crate) fn header(&self, name: &str, value: &str) -> String {
        if SECRET_HEADERS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(name))
        {
            return REDACTED.to_owned();
        }
        self.text(value).replace('\n', " ")
    }
}

/// In a schema, `credentials` may be the name of a property, and its value a description.
fn is_secret(name: &str, value: &Value) -> bool {
    SECRET_MEMBERS.contains(&name) && value.get("type").is_none_or(|it| !is_type(it))
}

fn is_type(value: &Value) -> bool {
    let types = [
        "object", "string", "array", "integer", "number", "boolean", "null",
    ];
    value.as_str().is_some_and(|it| types.contains(&it))
}

/// The same names without values.
fn hollow(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), hollow(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) if !items.is_empty() => vec![Value::from(REDACTED)].into(),
        Value::Null | Value::Array(_) => value.clone(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => REDACTED.into(),
    }
}

/// Every text in a value that is long enough to be recognised.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|it| texts(it, into)),
        Value::Array(items) => items.iter().for_each(|it| texts(it, into)),
        Value::String(text) if text.chars().count() >= TEXT_CHARS_MIN => into.push(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every text below a secret member.
fn secrets(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match is_secret(name, value) {
                    true => texts(value, into),
                    false => secrets(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|it| secrets(it, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes user and password from URLs.
fn without_userinfo(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let ends = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\\') || c.is_whitespace();
        let authority = &after[..after.find(ends).unwrap_or(after.len())];
        rest = match authority.rfind('@') {
            Some(host) => {
                kept.push_str(REDACTED);
                &after[host..]
            }
            None => after,
        };
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::Redaction;
    use serde_json::json;

    #[test]
    fn credentials_are_hollow_at_any_depth() {
        let value = json!({ "a": [{ "credentials": {
            "user": "u", "ports": [1, 2], "deep": { "password": "p" }, "none": null } }] });
        let expected = json!({ "a": [{ "credentials": {
            "user": "[redacted]", "ports": ["[redacted]"],
            "deep": { "password": "[redacted]" }, "none": null } }] });
        assert_eq!(Redaction::default().value(&value), expected);
    }

    #[test]
    fn a_schema_that_describes_credentials_is_shown() {
        let schema = json!({ "properties": { "credentials": { "type": "object" } } });
        assert_eq!(Redaction::default().value(&schema), schema);
    }

    #[test]
    fn the_secret_of_a_dashboard_client_is_redacted() {
        let value = json!({ "dashboard_client": { "id": "d", "secret": "s" } });
        let expected = json!({ "dashboard_client": { "id": "d", "secret": "[redacted]" } });
        assert_eq!(Redaction::default().value(&value), expected);
    }

    #[test]
    fn parameters_of_the_caller_are_redacted_everywhere() {
        let given = json!({ "token": "open-sesame", "size": 3 });
        let redaction = Redaction::of(given.as_object().into_iter());
        let value = json!({ "parameters": given, "description": "open-sesame is too short" });
        let expected = json!({
            "parameters": { "token": "[redacted]", "size": "[redacted]" },
            "description": "[redacted] is too short",
        });
        assert_eq!(redaction.value(&value), expected);
        let derived = json!({ "parameters": { "size": 3 } });
        assert_eq!(Redaction::default().value(&derived), derived);
    }

    #[test]
    fn urls_lose_their_passwords_and_nothing_else() {
        let text = |text: &str| Redaction::default().text(text);
        assert_eq!(
            text("see https://me:p@ss@host:1/x@y and http://host/ or a@b"),
            "see https://[redacted]@host:1/x@y and http://host/ or a@b"
        );
        assert_eq!(text("red \u{1b}[31m\nnext"), "red  [31m\nnext");
    }

    #[test]
    fn headers_with_credentials_are_never_shown() {
        let redaction = Redaction::default();
        assert_eq!(redaction.header("Set-Cookie", "session=1"), "[redacted]");
        assert_eq!(
            redaction.header("Location", "http://u:p@h/"),
            "http://[redacted]@h/"
        );
    }
}
