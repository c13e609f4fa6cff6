//! The body of `PUT …/secrets/{name}`.

use crate::api::problem::Problem;
use crate::api::problem_word::ProblemWord;
use crate::commands::WantedSecret;
use crate::records::SECRET_BYTES_MAX;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest key, in bytes: as long as Kubernetes takes it.
const KEY_BYTES_MAX: usize = 253;

/// Named values. A text is kept as it is; any other value is kept as JSON, to be merged into parameters. No `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretBody {
    values: BTreeMap<String, Value>,
}

impl SecretBody {
    /// The values as they are stored.
    pub(crate) fn wanted(self) -> Result<WantedSecret, Problem> {
        let is_key = |key: &str| (1..=KEY_BYTES_MAX).contains(&key.len());
        if !self.values.keys().all(|key| is_key(key)) {
            let reason = format!("keys must have 1 to {KEY_BYTES_MAX} bytes");
            return Err(Problem::invalid_field("/values", reason));
        }
        let values = self.values.into_iter().map(|(key, value)| {
            let bytes = match value {
                Value::String(text) => text.into_bytes(),
                other => other.to_string().into_bytes(),
            };
            (key, bytes)
        });
        let values: BTreeMap<String, Vec<u8>> = values.collect();
        let bytes: usize = values.iter().map(|(key, it)| key.len() + it.len()).sum();
        if bytes > SECRET_BYTES_MAX {
            let detail = format!("A secret must not be larger than {SECRET_BYTES_MAX} bytes.");
            return Err(Problem::new(ProblemWord::TooLarge, detail));
        }
        Ok(WantedSecret(values))
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretBody, WantedSecret};
    use crate::api::problem_word::ProblemWord;
    use crate::records::SECRET_BYTES_MAX;
    use serde_json::{Value, json};

    fn body(values: Value) -> SecretBody {
        serde_json::from_value(json!({ "values": values })).expect("a body")
    }

    #[test]
    fn a_text_is_kept_as_it_is_and_an_object_as_json() {
        let values = body(json!({ "password": "\"quoted\"", "params": { "disk": 10 } }));
        let WantedSecret(values) = values.wanted().expect("values");
        assert_eq!(values["password"], b"\"quoted\"");
        assert_eq!(values["params"], br#"{"disk":10}"#);
    }

    #[test]
    fn keys_and_sizes_are_bounded() {
        let word = |values: Value| body(values).wanted().err().map(|it| it.word());
        assert_eq!(word(json!({ "": "x" })), Some(ProblemWord::Invalid));
        assert_eq!(
            word(json!({ "x".repeat(254): "x" })),
            Some(ProblemWord::Invalid)
        );
        let most = "x".repeat(SECRET_BYTES_MAX - 1);
        assert_eq!(word(json!({ "k": most })), None);
        let more = "x".repeat(SECRET_BYTES_MAX);
        assert_eq!(word(json!({ "k": more })), Some(ProblemWord::TooLarge));
    }
}
