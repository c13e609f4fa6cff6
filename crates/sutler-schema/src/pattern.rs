//! Single text patterns with the semantics of the JSON Schema keyword `pattern`: linear time, bounded size.
//!
//! For texts outside of JSON Schemas that must obey the same rules; schemas compile their own patterns.

use crate::compiled_schema::PATTERN_BYTES_MAX;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Longest pattern, in bytes of its text.
const TEXT_BYTES_MAX: usize = 4_096;

/// A regular expression that matches if any part of a text matches. Cheap to clone.
#[derive(Clone)]
pub struct TextPattern {
    text: String,
    validator: Arc<Validator>,
}

/// A pattern that cannot be used; reads as the rest of a sentence that begins with the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Longer than 4096 bytes.
    #[error("must not be longer than {TEXT_BYTES_MAX} bytes")]
    TooLong,
    /// Not a regular expression, or not one that is matched in linear time and bounded memory.
    #[error(
        "is no regular expression that can be used: look-around and back-references cannot, and everything must be closed"
    )]
    Unusable,
}

impl TextPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The pattern is too long, or cannot be matched in linear time within 10 MB.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(PatternError::TooLong);
        }
        let options = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let built = jsonschema::options()
            .with_pattern_options(options)
            .offline()
            .build(&json!({ "pattern": text }));
        match built {
            Ok(validator) => Ok(Self {
                text: text.to_owned(),
                validator: Arc::new(validator),
            }),
            Err(_) => Err(PatternError::Unusable),
        }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether any part of the text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::String(text.to_owned()))
    }
}

impl PartialEq for TextPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextPattern({:?})", self.text)
    }
}
