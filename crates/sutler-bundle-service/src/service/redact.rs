//! Redacts the secrets of a run from its log.
//!
//! Decides which values are secrets, purely. The forms in which they may appear are `redact/encodings.rs`;
//! replacing them in a stream is `redact/stream.rs`.

mod encodings;
mod stream;

use encodings::SECRET_CHARS_MIN;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use stream::{SecretWords, StreamRedactor};
use sutler_runner::RunResult;

/// Maximum depth of nested values that are searched.
const DEPTH_MAX: usize = 16;
/// Parts of a key, in lower case, that mark its value as secret.
const SECRET_KEY_PARTS: [&str; 7] = [
    "pass",
    "secret",
    "token",
    "private",
    "credential",
    "apikey",
    "api_key",
];

/// Collects the secrets among the inputs of a run.
#[derive(Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Adds every value: credentials, and secrets of the operator.
    pub fn all_of(&mut self, values: &Map<String, Value>) {
        values.values().for_each(|value| self.add(value, 0));
    }

    /// Adds values whose keys indicate a secret, and those with known keys.
    pub fn add_by_key(&mut self, values: &Map<String, Value>, known: &BTreeSet<&str>) {
        for (key, value) in values {
            if known.contains(key.as_str()) || is_secret_key(key) {
                self.add(value, 0);
            } else if let Value::Object(inside) = value {
                self.add_by_key(inside, &BTreeSet::new());
            }
        }
    }

    fn add(&mut self, value: &Value, depth: usize) {
        match value {
            _ if depth > DEPTH_MAX => {}
            Value::String(text) if text.chars().count() >= SECRET_CHARS_MIN => {
                self.0.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|it| self.add(it, depth + 1)),
            Value::Object(inside) => inside.values().for_each(|it| self.add(it, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Builds the redaction of these secrets.
    #[must_use]
    pub fn redaction(self) -> Redaction {
        let mut forms = BTreeSet::new();
        for secret in &self.0 {
            encodings::add(secret, &mut forms);
        }
        Redaction::of(Arc::new(SecretWords::new(forms)))
    }
}

/// Whether a key indicates that its value is a secret.
fn is_secret_key(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRET_KEY_PARTS.iter().any(|word| key.contains(word))
}

/// Redacts secrets from the output of one run.
pub struct Redaction {
    words: Arc<SecretWords>,
    striker: StreamRedactor,
}

impl Redaction {
    fn of(words: Arc<SecretWords>) -> Self {
        let striker = StreamRedactor::new(words.clone());
        Self { words, striker }
    }

    /// The same secrets, for a new stream.
    #[must_use]
    pub fn restart(&self) -> Self {
        Self::of(self.words.clone())
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.striker.feed(bytes)
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.striker.finish()
    }

    /// Redacts a single text.
    #[must_use]
    pub fn clean_text(&self, text: &str) -> String {
        let mut fresh = self.restart();
        let mut clean = fresh.feed(text.as_bytes());
        clean.extend(fresh.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// Redacts the texts of a result that users see.
    pub(super) fn clean(&self, mut result: RunResult) -> RunResult {
        result.error = result.error.map(|text| self.clean_text(&text));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn redacted(secret: &str, output: &str, cut: usize) -> String {
        let mut secrets = Secrets::default();
        let Value::Object(values) = json!({ "password": secret }) else {
            return String::new();
        };
        secrets.all_of(&values);
        let mut redaction = secrets.redaction();
        let (one, other) = output.as_bytes().split_at(cut.min(output.len()));
        let mut clean = redaction.feed(one);
        clean.extend(redaction.feed(other));
        clean.extend(redaction.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// The secret as programs print it, with the surrounding text as it may be printed with it.
    fn printed(secret: &str, before: &str, after: &str) -> Vec<(String, String)> {
        let around = |form: String| (format!("{before}{form}{after}"), form);
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let inside = |quoted: String| quoted[1..quoted.len() - 1].to_owned();
        let encoded: String = secret.bytes().fold(String::new(), |text, byte| {
            match byte.is_ascii_alphanumeric() {
                true => text + &char::from(byte).to_string(),
                false => text + &format!("%{byte:02X}"),
            }
        });
        let encoded = encoded.replace("%2D", "-").replace("%5F", "_");
        let encoded = encoded.replace("%2E", ".").replace("%7E", "~");
        vec![
            around(secret.to_owned()),
            around(inside(quoted(secret))),
            around(inside(quoted(&inside(quoted(secret))))),
            around(encoded),
        ]
    }

    proptest! {
        #[test]
        fn no_encoding_of_a_secret_passes_at_any_chunking_of_the_output(
            secret in "[ -~äß\n]{6,60}",
            before in "[ -~]{0,9}",
            after in "[ -~]{0,9}",
            cut in 0_usize..120,
        ) {
            prop_assume!(!"***".contains(secret.trim()));
            for (output, form) in printed(&secret, &before, &after) {
                let clean = redacted(&secret, &output, cut);
                prop_assert!(!clean.contains(&form), "{form:?} in {clean:?}");
            }
            for line in secret.lines().map(str::trim).filter(|it| it.chars().count() > 3) {
                let clean = redacted(&secret, &format!("{before}\n{line}\n{after}"), cut);
                prop_assert!(!clean.contains(line), "{line:?} in {clean:?}");
            }
        }

        #[test]
        fn the_rest_of_base64_reveals_at_most_a_character_of_the_secret_on_each_side(
            secret in "[a-zA-Z0-9]{8,60}",
            before in "[a-z ]{0,9}",
            after in "[a-z ]{0,9}",
            cut in 0_usize..120,
        ) {
            let whole = format!("{before}{secret}{after}");
            for encoded in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let clean = redacted(&secret, &encoded, cut);
                // Everything except at most one character at either end of the secret is gone.
                let longest = encoded.len() - secret.len() * 8 / 6 + 2 + "***".len();
                prop_assert!(clean.len() <= longest, "{encoded} became {clean}");
            }
        }
    }
}
