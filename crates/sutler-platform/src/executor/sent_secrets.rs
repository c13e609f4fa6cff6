//! Leaves values of secrets out of the words of a broker, before they are stored.
//!
//! A broker gets parameters from secrets, and its errors and descriptions are shown to people who may not read those. What
//! a broker writes in another form, e.g. encoded, is not found.

use super::request_material::RequestMaterial;
use crate::context::PlatformContext;
use crate::records::PreparedRequest;
use crate::spec::ParameterSource;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use sutler_client::{BrokerMessage, Meaning, PollUpdate};
use sutler_osb::ErrorCode;

/// Shortest value that is looked for, in characters: shorter ones are parts of ordinary words.
const VALUE_CHARS_MIN: usize = 4;
/// Most values that are looked for; with more of them no words of the broker are kept.
const VALUES_MAX: usize = 1_000;
/// In place of a value.
const MARK: &str = "(secret)";
/// In place of words if the values are not known.
const NOT_SHOWN: &str = "(not shown: it may contain values of secrets)";

/// What a broker got from secrets.
pub(super) enum SentSecrets {
    /// These values, the longest first.
    Known(Vec<String>),
    /// The secrets cannot be read now, or are too many.
    Unknown,
}

/// Where the values of a broker's secrets are found.
pub(super) struct SecretPlaces<'a> {
    /// Namespace of the secrets.
    pub(super) namespace: &'a str,
    /// Sources of all parameters that the broker has got.
    pub(super) sources: Vec<&'a ParameterSource>,
    /// The request that was sent: a secret may have changed since.
    pub(super) sent: Option<&'a PreparedRequest>,
    /// Parameters that are not secret.
    pub(super) inline: Vec<&'a Map<String, Value>>,
}

/// Whether an answer has words of the broker.
pub(super) fn has_words<B>(meaning: &Meaning<B>) -> bool {
    match meaning {
        Meaning::Succeeded(_) => false,
        Meaning::Polling { update, .. } => match update {
            PollUpdate::Accepted(_) | PollUpdate::InProgress(None) => false,
            PollUpdate::InProgress(Some(_)) | PollUpdate::Nothing(_) => true,
        },
        Meaning::Rejected { .. }
        | Meaning::Retry { .. }
        | Meaning::Unknown { .. }
        | Meaning::Failed { .. } => true,
    }
}

impl SecretPlaces<'_> {
    /// Reads the values.
    pub(super) async fn read(&self, context: &PlatformContext) -> SentSecrets {
        if self.sources.is_empty() {
            return SentSecrets::Known(Vec::new());
        }
        let sources = self.sources.iter().copied();
        let Ok(Ok(material)) = RequestMaterial::read(context, self.namespace, sources).await else {
            return SentSecrets::Unknown;
        };
        let mut values = BTreeSet::new();
        for source in &self.sources {
            let resolved = material.resolve(&Map::new(), std::slice::from_ref(*source));
            // Nothing in use can be deleted, so it was not sent.
            let resolved = resolved.unwrap_or_default();
            for value in resolved.values() {
                collect_texts(value, &mut values);
            }
        }
        for (_, value) in self.sent_parameters() {
            collect_texts(&value, &mut values);
        }
        SentSecrets::of(values)
    }

    /// Parameters of the request that are not inline.
    fn sent_parameters(&self) -> Map<String, Value> {
        let request = self.sent.and_then(|sent| sent.request().ok());
        let body = request.and_then(|request| request.body);
        let body: Option<Value> = body.and_then(|body| serde_json::from_slice(&body).ok());
        let Some(Value::Object(mut sent)) = body.and_then(|mut it| {
            let parameters = it.get_mut("parameters")?;
            Some(parameters.take())
        }) else {
            return Map::new();
        };
        sent.retain(|name, _| !self.inline.iter().any(|it| it.contains_key(name)));
        sent
    }
}

fn collect_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if has_chars(text, VALUE_CHARS_MIN) {
                texts.insert(text.clone());
            }
        }
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(object) => object.values().for_each(|it| collect_texts(it, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn has_chars(text: &str, count: usize) -> bool {
    text.chars().nth(count - 1).is_some()
}

impl SentSecrets {
    fn of(values: BTreeSet<String>) -> Self {
        if values.len() > VALUES_MAX {
            return Self::Unknown;
        }
        let mut values = Vec::from_iter(values);
        values.sort_by_key(|it| std::cmp::Reverse(it.len()));
        Self::Known(values)
    }

    /// The same answer without the values.
    pub(super) fn hidden_in<B>(&self, mut meaning: Meaning<B>) -> Meaning<B> {
        match &mut meaning {
            Meaning::Succeeded(_) => {}
            Meaning::Polling { update, .. } => match update {
                PollUpdate::Accepted(_) | PollUpdate::InProgress(None) => {}
                PollUpdate::InProgress(Some(text)) => *text = self.hidden(text),
                PollUpdate::Nothing(message) => self.hide_in(message),
            },
            Meaning::Rejected { message, .. }
            | Meaning::Retry { message, .. }
            | Meaning::Unknown { message, .. }
            | Meaning::Failed { message, .. } => self.hide_in(message),
        }
        meaning
    }

    fn hide_in(&self, message: &mut BrokerMessage) {
        if let Some(text) = &mut message.description {
            *text = self.hidden(text);
        }
        if let Some(ErrorCode::Other(word)) = &mut message.error {
            *word = self.hidden(word);
        }
    }

    /// A text without the values. In one pass, so that a mark is never searched again.
    fn hidden(&self, text: &str) -> String {
        let values = match self {
            Self::Known(values) => values,
            Self::Unknown => return NOT_SHOWN.to_owned(),
        };
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let found = values.iter().find_map(|value| found_at_start(rest, value));
            if found.is_some() {
                shown.push_str(MARK);
            } else {
                shown.push(next);
            }
            rest = &rest[found.unwrap_or(next.len_utf8())..];
        }
        shown
    }
}

/// The bytes that a value takes at the start of a text. Of the last one there may be a beginning only: texts of brokers are
/// shortened.
fn found_at_start(text: &str, value: &str) -> Option<usize> {
    let is_cut = || value.starts_with(text) && has_chars(text, VALUE_CHARS_MIN);
    match text.starts_with(value) {
        true => Some(value.len()),
        false => is_cut().then_some(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{SentSecrets, VALUES_MAX, collect_texts};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn secrets(value: &Value) -> SentSecrets {
        let mut texts = BTreeSet::new();
        collect_texts(value, &mut texts);
        SentSecrets::of(texts)
    }

    #[test]
    fn values_of_secrets_are_left_out_of_words() {
        let secrets = secrets(&json!({
            "password": "hunter2", "longer": "hunter2-and-more", "pin": "123", "port": 5432,
            "nested": [{"token": "töken"}], "word": "secret",
        }));
        for (words, expected) in [
            ("", ""),
            ("no access", "no access"),
            ("bad password hunter2!", "bad password (secret)!"),
            ("hunter2hunter2", "(secret)(secret)"),
            ("hunter2-and-more", "(secret)"),
            ("hunter2-and-less", "(secret)-and-less"),
            ("pin 123 of port 5432", "pin 123 of port 5432"),
            ("\"töken\"", "\"(secret)\""),
            // A mark is not searched again.
            ("secret hunter2", "(secret) (secret)"),
            // The end of a text that was shortened.
            ("it was hunter2-and-m", "it was (secret)"),
            ("it was hun", "it was hun"),
        ] {
            assert_eq!(secrets.hidden(words), expected, "{words}");
        }
    }

    #[test]
    fn words_are_not_kept_if_there_are_too_many_values_to_look_for() {
        let many: Vec<String> = (0..=VALUES_MAX).map(|it| format!("value-{it}")).collect();
        let hidden = secrets(&json!(many)).hidden("value-7");
        assert!(hidden.starts_with("(not shown"), "{hidden}");
        let hidden = secrets(&json!(many[1..])).hidden("value-7");
        assert_eq!(hidden, "(secret)");
    }
}
