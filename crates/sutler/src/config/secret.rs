//! Secrets of a configuration: parsed and read in one way, never printed.
//!
//! A secret is written literally, or as `${env:NAME}` or `${file:PATH}`, which is read at the start and at every
//! reload. `$${` is an escaped `${`. The purpose of a secret is not known here.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Maximum size of a secret file, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// Printed in place of a secret.
pub const HIDDEN: &str = "(hidden)";

/// A secret, or its location.
#[derive(Clone, Debug)]
pub enum SecretSource {
    /// The secret itself.
    Plain(SecretString),
    /// In a variable of the environment.
    Variable(String),
    /// In a file, without the newline at its end.
    File(PathBuf),
}

impl SecretSource {
    /// Parses the value of a configuration.
    ///
    /// # Errors
    /// The value begins like a reference, but is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(inner) = text.strip_prefix("${") else {
            let plain = match text.starts_with("$${") {
                true => &text[1..],
                false => text,
            };
            return Ok(Self::Plain(plain.into()));
        };
        let inner = inner.strip_suffix('}').and_then(|it| it.split_once(':'));
        match inner {
            Some(("env", name)) if is_name(name) => Ok(Self::Variable(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(_) | None => Err(
                "must be a secret, `${env:NAME}` or `${file:PATH}`; write `$${` for a secret that begins with `${`"
                    .to_owned(),
            ),
        }
    }

    /// Reads the secret from its location.
    ///
    /// # Errors
    /// The variable is not set, or the file cannot be read, is too large or empty.
    pub fn reveal(&self, variable: &EnvLookup<'_>) -> Result<SecretString, String> {
        let secret = match self {
            Self::Plain(secret) => secret.clone(),
            Self::Variable(name) => match variable(name) {
                Some(value) => value.into(),
                None => return Err(format!("is in {name}, which is not set: set it")),
            },
            Self::File(path) => read(path)?,
        };
        match secret.expose_secret().is_empty() {
            true => Err("is empty; give a secret of at least one character".to_owned()),
            false => Ok(secret),
        }
    }
}

/// Lookup of an environment variable.
pub type EnvLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read(path: &Path) -> Result<SecretString, String> {
    let shown = path.display();
    let unreadable = |error| format!("is in {shown}, which cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(format!(
            "is in {shown}, which has more than {SECRET_BYTES_MAX} bytes: is it the right file?"
        ));
    }
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    Ok(secret.strip_suffix('\r').unwrap_or(secret).into())
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = SecretString::deserialize(deserializer)?;
        Self::parse(text.expose_secret()).map_err(serde::de::Error::custom)
    }
}

/// Serializes the location, or that the value is hidden; never the secret.
impl Serialize for SecretSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(_) => serializer.serialize_str(HIDDEN),
            Self::Variable(name) => serializer.serialize_str(&format!("${{env:{name}}}")),
            Self::File(path) => serializer.serialize_str(&format!("${{file:{}}}", path.display())),
        }
    }
}

impl JsonSchema for SecretSource {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "secret",
            "examples": ["${file:/run/secrets/broker}"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SecretSource;
    use secrecy::ExposeSecret as _;

    fn revealed(text: &str) -> Result<String, String> {
        let variable = |name: &str| (name == "SET").then(|| "from the variable".to_owned());
        let secret = SecretSource::parse(text)?.reveal(&variable)?;
        Ok(secret.expose_secret().to_owned())
    }

    #[test]
    fn a_secret_is_literal_or_in_a_variable_or_in_a_file() {
        assert_eq!(revealed("hush").as_deref(), Ok("hush"));
        assert_eq!(revealed("$${x}").as_deref(), Ok("${x}"));
        assert_eq!(revealed("${env:SET}").as_deref(), Ok("from the variable"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "from the file\n").expect("a file");
        let reference = format!("${{file:{}}}", path.display());
        assert_eq!(revealed(&reference).as_deref(), Ok("from the file"));
    }

    #[test]
    fn a_missing_secret_is_named_with_a_suggestion() {
        let unset = revealed("${env:UNSET}");
        let sentence = "is in UNSET, which is not set: set it".to_owned();
        assert_eq!(unset, Err(sentence));
        assert!(revealed("${file:/nowhere/at/all}").is_err());
        for wrong in ["${hush}", "${env:}", "${env:a b}", "${vault:hush}", "${"] {
            let error = revealed(wrong).expect_err(wrong);
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_secret_does_not_print_itself() {
        let secret = SecretSource::parse("hush").expect("a secret");
        let json = serde_json::to_string(&secret).expect("JSON");
        assert_eq!(json, "\"(hidden)\"");
        assert!(!format!("{secret:?}").contains("hush"));
    }
}
