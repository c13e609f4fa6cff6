//! How credentials are delivered: keys are renamed, removed and added, one step after another. Pure.
//!
//! Each step sees what the steps before it made, so the order matters. What is delivered is computed again each time and
//! never stored: the document keeps what the broker returned. The steps are in `transform.rs`.

use crate::lifecycle::binding::{AddedKey, AddedValue, Transform};
use crate::quoted_text::quoted;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{fmt, io};
use sutler_osb::Credentials;

/// Most steps.
pub const TRANSFORMS_MAX: usize = 64;
/// Most bytes of all steps together, as JSON.
pub const TRANSFORMS_BYTES_MAX: usize = 64 * 1024;
/// Longest key, in bytes: as long as Kubernetes takes it.
pub const KEY_BYTES_MAX: usize = 253;
/// Most bytes of what is delivered, as JSON. It holds between the steps, too.
pub const RESULT_BYTES_MAX: usize = 128 * 1024;
/// Deepest nesting of what is delivered. JSON is read to a depth of 128.
pub const RESULT_DEPTH_MAX: usize = 120;

/// Steps that make of credentials what is delivered.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Transform>", into = "Vec<Transform>")]
pub struct Transforms(Vec<Transform>);

/// Steps that are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformsError {
    /// More than [`TRANSFORMS_MAX`].
    #[error("there must not be more than {TRANSFORMS_MAX} transforms")]
    TooMany,
    /// More than [`TRANSFORMS_BYTES_MAX`].
    #[error("all transforms together must not be longer than {TRANSFORMS_BYTES_MAX} bytes")]
    TooLong,
    /// A key that is empty or longer than [`KEY_BYTES_MAX`].
    #[error("a key must not be empty and not be longer than {KEY_BYTES_MAX} bytes")]
    WrongKey,
}

/// Credentials that cannot be delivered. No value is part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// There is nothing to copy.
    #[error(
        "the credentials have nothing at {}, which is to be delivered as {}",
        quoted(path),
        quoted(key)
    )]
    NothingAtPath {
        /// The added key.
        key: String,
        /// The path.
        path: String,
    },
    /// More than [`RESULT_BYTES_MAX`].
    #[error("the credentials to deliver must not be longer than {RESULT_BYTES_MAX} bytes")]
    TooLong,
    /// Deeper than [`RESULT_DEPTH_MAX`].
    #[error("the credentials to deliver must not be nested deeper than {RESULT_DEPTH_MAX} levels")]
    TooDeep,
}

impl Transforms {
    /// The steps.
    pub fn as_slice(&self) -> &[Transform] {
        &self.0
    }

    /// What is delivered of credentials.
    ///
    /// # Errors
    /// Nothing is at the path of an added key, or the result is too large to be delivered.
    pub fn apply(&self, credentials: Credentials) -> Result<Credentials, TransformError> {
        let mut document = Value::Object(credentials.0);
        check_size(&document)?;
        for transform in &self.0 {
            apply(transform, &mut document)?;
        }
        match document {
            Value::Object(delivered) => Ok(Credentials(delivered)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Ok(Credentials::default()),
        }
    }
}

impl TryFrom<Vec<Transform>> for Transforms {
    type Error = TransformsError;

    fn try_from(transforms: Vec<Transform>) -> Result<Self, TransformsError> {
        if transforms.len() > TRANSFORMS_MAX {
            return Err(TransformsError::TooMany);
        }
        if !transforms.iter().flat_map(Transform::keys).all(is_key) {
            return Err(TransformsError::WrongKey);
        }
        if byte_len(&transforms) > TRANSFORMS_BYTES_MAX {
            return Err(TransformsError::TooLong);
        }
        Ok(Self(transforms))
    }
}

impl From<Transforms> for Vec<Transform> {
    fn from(transforms: Transforms) -> Self {
        transforms.0
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= KEY_BYTES_MAX
}

fn apply(transform: &Transform, document: &mut Value) -> Result<(), TransformError> {
    match transform {
        Transform::Rename { from, to } => {
            let renamed = object(document).and_then(|object| object.remove(from));
            insert(document, to, renamed);
        }
        Transform::Remove(key) => {
            let _removed = object(document).and_then(|object| object.remove(key));
            return Ok(());
        }
        Transform::Add(AddedKey { key, value }) => {
            let value = added(key, value, document)?;
            // Before it is copied: steps that copy everything would double it each time.
            if byte_len(document).saturating_add(byte_len(value)) > RESULT_BYTES_MAX {
                return Err(TransformError::TooLong);
            }
            let value = value.clone();
            insert(document, key, Some(value));
        }
    }
    check_size(document)
}

/// The value of an added key.
fn added<'v>(
    key: &str,
    value: &'v AddedValue,
    document: &'v Value,
) -> Result<&'v Value, TransformError> {
    match value {
        AddedValue::Fixed(value) => Ok(value),
        AddedValue::Copied(path) => {
            path.find(document)
                .ok_or_else(|| TransformError::NothingAtPath {
                    key: key.to_owned(),
                    path: path.as_str().to_owned(),
                })
        }
    }
}

fn object(document: &mut Value) -> Option<&mut Map<String, Value>> {
    document.as_object_mut()
}

fn insert(document: &mut Value, key: &str, value: Option<Value>) {
    if let Some((object, value)) = object(document).zip(value) {
        object.insert(key.to_owned(), value);
    }
}

fn check_size(document: &Value) -> Result<(), TransformError> {
    if !is_within(document, RESULT_DEPTH_MAX) {
        return Err(TransformError::TooDeep);
    }
    if byte_len(document) > RESULT_BYTES_MAX {
        return Err(TransformError::TooLong);
    }
    Ok(())
}

/// Whether a value is nested at most so deep. It looks no deeper.
fn is_within(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels > 0 && is_within(value, levels - 1);
    match value {
        Value::Object(object) => levels > 0 && object.values().all(below),
        Value::Array(items) => levels > 0 && items.iter().all(below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Length as JSON, in bytes.
fn byte_len(value: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Counts what is written.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Transforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
