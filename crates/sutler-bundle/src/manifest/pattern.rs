//! Patterns of text, as JSON Schema has them, in linear time and bounded size.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 4_096;

/// Largest compiled pattern, in bytes; what the broker allows too.
const COMPILED_BYTES_MAX: usize = 10 * 1024 * 1024;

/// A pattern that some part of a text must match.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    validator: Arc<Validator>,
}

impl Pattern {
    /// Reads a pattern, or says why it is none.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("must not be longer than {PATTERN_BYTES_MAX} bytes"));
        }
        let options = PatternOptions::regex()
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX);
        let built = jsonschema::options()
            .with_pattern_options(options)
            .offline()
            .build(&json!({ "pattern": text }));
        match built {
            Ok(validator) => Ok(Self {
                text: text.to_owned(),
                validator: Arc::new(validator),
            }),
            Err(_) => Err(
                "is no regular expression that can be used: look-around and back-references \
                 cannot, and everything must be closed"
                    .to_owned(),
            ),
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether some part of the text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::String(text.to_owned()))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.text)
    }
}
