//! What must not be read in a log: the secrets that a run was told.
//!
//! Which of all values are secrets is decided here, purely; striking them out of a stream is the business
//! of `strike.rs`.

use super::strike::Striker;
use crate::given::Given;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Values shorter than this are not struck out: too much of any text would be.
const SECRET_CHARS_MIN: usize = 4;
/// Deepest value that is looked into.
const DEPTH_MAX: usize = 16;
/// What the key of a secret has in it, in small letters.
const TELLING: [&str; 7] = [
    "pass",
    "secret",
    "token",
    "private",
    "credential",
    "apikey",
    "api_key",
];

/// Gathers what is secret of what a run is told.
#[derive(Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Every value is a secret: credentials, and what the operator keeps as one.
    pub fn all_of(&mut self, values: &Map<String, Value>) {
        values.values().for_each(|value| self.add(value, 0));
    }

    /// Those whose keys say so, and those that are known to be.
    pub fn telling_of(&mut self, values: &Map<String, Value>, known: &BTreeSet<&str>) {
        for (key, value) in values {
            if known.contains(key.as_str()) || is_telling(key) {
                self.add(value, 0);
            } else if let Value::Object(inside) = value {
                self.telling_of(inside, &BTreeSet::new());
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

    /// Strikes them out.
    #[must_use]
    pub fn redaction(self) -> Redaction {
        let redactor = Striker::new(self.0.iter().map(String::as_bytes));
        Redaction {
            secrets: self.0,
            redactor,
        }
    }
}

/// Whether a key says that its value is a secret.
fn is_telling(key: &str) -> bool {
    let key = key.to_lowercase();
    TELLING.iter().any(|word| key.contains(word))
}

/// Strikes secrets out of what one run says.
pub struct Redaction {
    secrets: BTreeSet<String>,
    redactor: Striker,
}

impl Redaction {
    /// The same secrets, for a stream that begins anew.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Secrets(self.secrets.clone()).redaction()
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.redactor.feed(bytes)
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.redactor.finish()
    }

    /// A text by itself.
    #[must_use]
    pub fn clean_text(&self, text: &str) -> String {
        let mut fresh = self.afresh();
        let mut clean = fresh.feed(text.as_bytes());
        clean.extend(fresh.finish());
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// What is shown to users of what a run gave, without secrets.
    pub(super) fn clean(&self, mut given: Given) -> Given {
        given.error = given.error.map(|text| self.clean_text(&text));
        given
    }
}
