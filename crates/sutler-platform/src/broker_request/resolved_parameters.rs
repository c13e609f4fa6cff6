//! Parameters of a request: those of the intent, and those of the secrets that it names.
//!
//! A source with a key is one JSON object, whose top-level keys are parameters; a source without one makes each key of
//! the secret a parameter, a string. As in Service Catalog, no parameter may come from two places: that is an error, not
//! a question of order. Errors name secrets, keys and parameters, never values. Not here: reading secrets, and which
//! parameters an update sends (`parameter_difference.rs`).

use crate::spec::{self, ParametersError};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use sutler_osb::{JsonTextError, Parameters, check_json_text};

/// Most parameters of one request, in bytes of JSON: a request has to fit into one record with its answer.
pub const RESOLVED_PARAMETERS_BYTES_MAX: usize = 128 * 1024;
/// Longest name in an error, in characters: names come from users and from secrets.
const NAME_CHARS_MAX: usize = 100;

/// Keys and values of a secret. `Debug` shows the keys only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretContent(BTreeMap<String, Vec<u8>>);

impl From<BTreeMap<String, Vec<u8>>> for SecretContent {
    fn from(values: BTreeMap<String, Vec<u8>>) -> Self {
        Self(values)
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A secret that parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretReference<'a> {
    /// Name of the secret, in the namespace of the instance.
    pub secret: &'a str,
    /// Key whose value is a JSON object; without one every key of the secret is a parameter.
    pub key: Option<&'a str>,
}

/// Where a parameter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterOrigin {
    /// The intent itself.
    Inline,
    /// All of a secret.
    Secret(String),
    /// A key of a secret.
    SecretKey(String, String),
}

impl fmt::Display for ParameterOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline => f.write_str("the inline parameters"),
            Self::Secret(secret) => write!(f, "the secret `{}`", shortened(secret)),
            Self::SecretKey(secret, key) => {
                let (secret, key) = (shortened(secret), shortened(key));
                write!(f, "the key `{key}` of the secret `{secret}`")
            }
        }
    }
}

/// Why parameters cannot be resolved. `Display` is a sentence for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterResolutionError {
    /// The secret does not exist or cannot be read.
    #[error("the secret `{}` does not exist or cannot be read", shortened(secret))]
    NoSecret {
        /// Its name.
        secret: String,
    },
    /// The secret has no such key.
    #[error("the secret `{}` has no key `{}`", shortened(secret), shortened(key))]
    NoKey {
        /// Name of the secret.
        secret: String,
        /// The key.
        key: String,
    },
    /// The value of a key is not a JSON object.
    #[error("{origin} is not a JSON object")]
    NotAnObject {
        /// The key.
        origin: ParameterOrigin,
    },
    /// The JSON object is one that brokers do not read.
    #[error("{origin} {fault}")]
    Unreadable {
        /// The key.
        origin: ParameterOrigin,
        /// What it is.
        fault: JsonTextError,
    },
    /// The JSON object is too large to be worked with.
    #[error("{origin}: {fault}")]
    OutOfBounds {
        /// The key.
        origin: ParameterOrigin,
        /// What is exceeded.
        fault: ParametersError,
    },
    /// The value of a key is not text.
    #[error("{origin} is not UTF-8 text")]
    NotText {
        /// The key.
        origin: ParameterOrigin,
    },
    /// Two places have the same parameter.
    #[error(
        "the parameter `{}` is in {first} and in {second}: leave one out",
        shortened(parameter)
    )]
    Duplicate {
        /// Its name.
        parameter: String,
        /// The first place.
        first: ParameterOrigin,
        /// The second place.
        second: ParameterOrigin,
    },
    /// Larger than [`RESOLVED_PARAMETERS_BYTES_MAX`].
    #[error(
        "the parameters with those of secrets are larger than {RESOLVED_PARAMETERS_BYTES_MAX} bytes"
    )]
    TooLarge,
}

/// Merges the inline parameters with those of secrets, in their order. `secrets` has the secrets that exist.
pub fn resolve_parameters(
    inline: &Map<String, Value>,
    sources: &[SecretReference<'_>],
    secrets: &BTreeMap<String, SecretContent>,
) -> Result<Parameters, ParameterResolutionError> {
    let mut merged = MergedParameters::default();
    for source in sources {
        add_source(&mut merged, *source, secrets)?;
    }
    merged.add(inline.clone(), &ParameterOrigin::Inline)?;
    // Parameters that cannot be written have no size and cannot be sent either.
    let bytes = serde_json::to_vec(&merged.parameters).map_or(usize::MAX, |json| json.len());
    match bytes > RESOLVED_PARAMETERS_BYTES_MAX {
        true => Err(ParameterResolutionError::TooLarge),
        false => Ok(Parameters(merged.parameters)),
    }
}

/// Parameters so far, and the origin of each.
#[derive(Default)]
struct MergedParameters {
    parameters: Map<String, Value>,
    origins: BTreeMap<String, ParameterOrigin>,
}

impl MergedParameters {
    fn add(
        &mut self,
        parameters: Map<String, Value>,
        origin: &ParameterOrigin,
    ) -> Result<(), ParameterResolutionError> {
        for (parameter, value) in parameters {
            if let Some(first) = self.origins.insert(parameter.clone(), origin.clone()) {
                return Err(ParameterResolutionError::Duplicate {
                    parameter,
                    first,
                    second: origin.clone(),
                });
            }
            self.parameters.insert(parameter, value);
        }
        Ok(())
    }
}

fn add_source(
    merged: &mut MergedParameters,
    source: SecretReference<'_>,
    secrets: &BTreeMap<String, SecretContent>,
) -> Result<(), ParameterResolutionError> {
    let secret = source.secret.to_owned();
    let Some(SecretContent(values)) = secrets.get(source.secret) else {
        return Err(ParameterResolutionError::NoSecret { secret });
    };
    let Some(key) = source.key else {
        let parameters = strings(source.secret, values)?;
        return merged.add(parameters, &ParameterOrigin::Secret(secret));
    };
    let key = key.to_owned();
    let Some(value) = values.get(&key) else {
        return Err(ParameterResolutionError::NoKey { secret, key });
    };
    let origin = ParameterOrigin::SecretKey(secret, key);
    let parameters = object(value, &origin)?;
    merged.add(parameters, &origin)
}

/// Each key of a secret as a parameter.
fn strings(
    secret: &str,
    values: &BTreeMap<String, Vec<u8>>,
) -> Result<Map<String, Value>, ParameterResolutionError> {
    let parameter = |(key, value): (&String, &Vec<u8>)| match std::str::from_utf8(value) {
        Ok(text) => Ok((key.clone(), Value::from(text))),
        Err(_) => Err(ParameterResolutionError::NotText {
            origin: ParameterOrigin::SecretKey(secret.to_owned(), key.clone()),
        }),
    };
    values.iter().map(parameter).collect()
}

/// The value of one key as parameters, under the rules of inline ones: bounded, and without `null` members. White space
/// counts for its size, so that a large text is not parsed first.
fn object(
    value: &[u8],
    origin: &ParameterOrigin,
) -> Result<Map<String, Value>, ParameterResolutionError> {
    if value.len() > RESOLVED_PARAMETERS_BYTES_MAX {
        return Err(ParameterResolutionError::TooLarge);
    }
    check_json_text(value).map_err(|fault| ParameterResolutionError::Unreadable {
        origin: origin.clone(),
        fault,
    })?;
    // The parser's message may quote the value.
    let object = serde_json::from_slice::<Map<String, Value>>(value).map_err(|_| {
        ParameterResolutionError::NotAnObject {
            origin: origin.clone(),
        }
    })?;
    match spec::Parameters::try_from(object) {
        Ok(parameters) => Ok(parameters.as_map().clone()),
        Err(fault) => Err(ParameterResolutionError::OutOfBounds {
            origin: origin.clone(),
            fault,
        }),
    }
}

/// A name for a message: on one line, and not longer than [`NAME_CHARS_MAX`].
fn shortened(name: &str) -> String {
    let one_line = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = name.chars().take(NAME_CHARS_MAX).map(one_line).collect();
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        text.push('…');
    }
    text
}
