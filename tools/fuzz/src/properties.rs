//! Properties that many parsers share: helpful messages, no leaked secrets, round trips.

use crate::targets::Verdict;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use sutler_osb::from_json;

/// Longest message, in bytes.
const SENTENCE_BYTES_MAX: usize = 2_000;

/// Marker of secrets in the seeds; no error may repeat it.
const CANARY: &str = "hush";

/// Marker of secret numbers.
const CANARY_NUMBER: &str = "424242";

/// A body: round trips if it parses, otherwise the error is a sentence.
pub(crate) fn body<T>(input: &[u8]) -> Verdict
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    match from_json::<T>(input) {
        Ok(value) => round_trip(&value),
        Err(error) => refused(&error.to_string(), input),
    }
}

/// Writing a parsed value and parsing it again gives the same value.
pub(crate) fn round_trip<T>(value: &T) -> Verdict
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let written = serde_json::to_vec(value).map_err(|error| format!("not writable: {error}"))?;
    let again: T = from_json(&written).map_err(|error| {
        format!(
            "does not read what it wrote ({error}): {}",
            String::from_utf8_lossy(&written)
        )
    })?;
    if again != *value {
        return Err(format!(
            "changes when written: {}",
            String::from_utf8_lossy(&written)
        ));
    }
    Ok(format!("read: {}", skeleton(&written)))
}

/// A refusal of an input: its text must help, and must not repeat a secret.
pub(crate) fn refused(text: &str, input: &[u8]) -> Verdict {
    sentence(text)?;
    for canary in [CANARY, CANARY_NUMBER] {
        if text.contains(canary) && !is_name(canary, input) {
            return Err(format!("repeats a value: {text}"));
        }
    }
    Ok(kind_of(text))
}

/// A readable text: not empty, not too long, on one line, more than a word.
pub(crate) fn sentence(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("says nothing".to_owned());
    }
    if text.len() > SENTENCE_BYTES_MAX {
        let head: String = text.chars().take(300).collect();
        return Err(format!("says {} bytes: {head}…", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("has a control character: {text:?}"));
    }
    if text.split_whitespace().count() < 3 {
        return Err(format!("is no sentence: {text}"));
    }
    Ok(())
}

/// Two values that must be equal.
pub(crate) fn same<T: PartialEq + Debug + ?Sized>(
    one: &T,
    other: &T,
    what: &str,
) -> Result<(), String> {
    if one == other {
        Ok(())
    } else {
        Err(format!("{what}: {one:?} is not {other:?}"))
    }
}

/// Whether the word is part of a key or another name: names may be repeated.
fn is_name(word: &str, input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    text.match_indices(word).any(|(at, _)| {
        let rest = text[at..].trim_start_matches(|c: char| !matches!(c, '"' | '\'' | ':' | '\n'));
        let rest = rest.trim_start_matches(['"', '\'']).trim_start();
        rest.starts_with(':')
    })
}

/// A text without variable parts: digits, and all but the first words.
pub(crate) fn kind_of(text: &str) -> String {
    let mut kind = String::new();
    for c in text.chars().take(120) {
        match c {
            '0'..='9' if kind.ends_with('0') => (),
            '0'..='9' => kind.push('0'),
            c => kind.push(c),
        }
    }
    kind
}

/// The keys of a JSON text, three levels deep: the kind of success.
fn skeleton(written: &[u8]) -> String {
    let mut paths = BTreeSet::new();
    if let Ok(value) = serde_json::from_slice::<Value>(written) {
        collect(&value, "", 3, &mut paths);
    }
    paths.into_iter().take(40).collect::<Vec<_>>().join(" ")
}

fn collect(value: &Value, path: &str, levels: usize, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) if levels > 0 => {
            for (key, inner) in entries.iter().filter(|(key, _)| key.len() < 40) {
                collect(inner, &format!("{path}.{key}"), levels - 1, paths);
            }
        }
        Value::Array(items) => {
            if let Some(first) = items.first() {
                collect(first, &format!("{path}[]"), levels, paths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            paths.insert(path.to_owned());
        }
    }
}
